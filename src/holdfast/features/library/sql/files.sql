-- Stored files.

-- name: add_file
insert into files (owner_id, name, kind, key, size, sha256, detected, draft, created_at)
values (:owner_id, :name, :kind, :key, :size, :sha256, :detected, :draft, @now)
returning id;

-- name: old_drafts
-- Files that came with a request whose process was killed.
select   id
from     files
where    draft = 1 and created_at <= @after(:ago)
         and owner_id = coalesce(cast(:owner as text), owner_id)
order by created_at
limit    :limit;

-- name: drop_drafts
-- Drafts from which no job was created.
delete from files
where  id in (@each(:ids, bigint)) and draft = 1
returning key;

-- name: file
-- With an owner, only theirs.
select id, owner_id, name, kind, key, size, sha256, detected, created_at
from   files
where  id = :id and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: files
select   id, owner_id, name, kind, key, size, sha256, detected, created_at
from     files
where    id < :before and draft = 0
order by id desc
limit    :limit;

-- name: files_of_owner
select   id, owner_id, name, kind, key, size, sha256, detected, created_at
from     files
where    owner_id = :scope and id < :before and draft = 0
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
