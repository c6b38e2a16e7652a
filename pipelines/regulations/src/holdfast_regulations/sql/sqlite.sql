-- Queries of regulations that PostgreSQL spells differently.

-- name: regulations_add_bodies
-- Row by row: a batch of SQLite is JSON, which has no bytes.
insert into regulations_bodies (sha256, size, packed_size, place, packed, stored_at)
values (:sha256, :size, :packed_size, :place, :packed, @now)
on conflict (sha256) do nothing
returning sha256;
