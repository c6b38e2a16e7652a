-- Stored files.

-- name: add_file
insert into files (owner_id, name, kind, key, size, sha256, detected, created_at)
values (:owner_id, :name, :kind, :key, :size, :sha256, :detected, @now)
returning id;

-- name: file
-- With an owner, only theirs.
select id, owner_id, name, kind, key, size, sha256, detected, created_at
from   files
where  id = :id and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: files
select   id, owner_id, name, kind, key, size, sha256, detected, created_at
from     files
where    id < :before
order by id desc
limit    :limit;

-- name: files_of_owner
select   id, owner_id, name, kind, key, size, sha256, detected, created_at
from     files
where    owner_id = :scope and id < :before
order by id desc
limit    :limit;

-- name: stored_keys
-- Those of some keys that a file or an export has.
select key
from   files
where  key in (@each(:keys, text))
union all
select key
from   exports
where  key in (@each(:keys, text));
