-- Queries of regulations that SQLite spells differently.

-- name: regulations_add_bodies
insert into regulations_bodies (sha256, size, packed_size, place, packed, stored_at)
select sha256, size, packed_size, place, packed, @now
from   @rows(sha256 text, size bigint, packed_size bigint, place text, packed bytea) batch
on conflict (sha256) do nothing
returning sha256;
