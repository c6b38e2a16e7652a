-- Adapters: places where files arrive, and the files that came.

-- fragment: adapter_columns
id, name, kind, address, pipeline, owner_id, options, marker, settle_seconds, interval_seconds,
       enabled, scanned_at, error, case when token is not null then 1 else 0 end as scanning

-- name: set_adapter
insert into adapters (name, kind, address, pipeline, owner_id, options, marker, settle_seconds,
                      interval_seconds, enabled, due_at, created_at)
values (:name, :kind, :address, :pipeline, :owner_id, :options, :marker, :settle_seconds,
        :interval_seconds, 1, @now, @now)
on conflict (name) do update
set    kind = excluded.kind, address = excluded.address, pipeline = excluded.pipeline,
       owner_id = excluded.owner_id, options = excluded.options, marker = excluded.marker,
       settle_seconds = excluded.settle_seconds, interval_seconds = excluded.interval_seconds,
       enabled = 1, due_at = @now, scanned_at = null, error = null
returning id;

-- name: adapters
select   @adapter_columns
from     adapters
where    owner_id = coalesce(cast(:scope as text), owner_id)
order by name;

-- name: adapter_named
select @adapter_columns
from   adapters
where  name = :name and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: due_adapters
-- A time further ahead than it can have been set is from before the clock was set back.
select   @adapter_columns
from     adapters
where    enabled = 1 and (due_at <= @now or due_at > @after(interval_seconds))
         and token is null
         and pipeline in (@each(:pipelines, text))
order by due_at, id
limit    20;

-- name: lease_adapter
-- Compare and set: if two processes saw it free, one scans it.
update adapters
set    token = :token
where  id = :id and token is null
returning id;

-- name: is_scanner
-- Whether the adapter is still held under this token.
select id
from   adapters
where  id = :id and token = :token;

-- name: release_adapter
update adapters
set    token = null, scanned_at = @now, error = :error,
       due_at = @after(interval_seconds)
where  id = :id and token = :token
returning id;

-- name: hold_adapter
-- Locked: no file of it is noted while it is removed.
select id from adapters where id = :id @for_update;

-- name: remove_adapter_files
delete from adapter_files where adapter_id = :id;

-- name: remove_adapter
delete from adapters where id = :id returning id;

-- name: hold_adapters_of_user
select id from adapters where owner_id = :name order by id @for_update;

-- name: delete_adapter_files_of_user
delete from adapter_files
where  adapter_id in (select id from adapters where owner_id = :name);

-- name: delete_adapters_of_user
delete from adapters where owner_id = :name;

-- name: see_adapter_file
-- The first sight of a file is kept, which says how long it has been unchanged. If the clock was
-- set back, it begins again.
insert into adapter_files (adapter_id, identity, name, size, state, seen_at, updated_at)
values (:adapter_id, :identity, :name, :size, 'WAITING', @now, @now)
on conflict (adapter_id, identity) do update
set seen_at = excluded.seen_at
where adapter_files.seen_at > excluded.seen_at;

-- name: adapter_file
select id, state, sha256, file_id, job_id, error, @seconds_since(seen_at) as seconds
from   adapter_files
where  adapter_id = :adapter_id and identity = :identity;

-- name: adapter_file_with_content
-- A file that came before with the same content.
select   id, name, job_id
from     adapter_files
where    adapter_id = :adapter_id and sha256 = :sha256 and id <> :id and job_id is not null
order by id
limit    1;

-- name: note_adapter_file
-- Only the scanner that holds the adapter may do this.
update adapter_files
set    state = :state, sha256 = :sha256, file_id = :file_id, job_id = :job_id, error = :error,
       updated_at = @now
where  id = :id
       and exists (select 1 from adapters a
                   where  a.id = adapter_files.adapter_id and a.token = :token)
returning id;

-- name: forget_adapter_file
update adapter_files
set    identity = identity || ' moved ' || cast(id as text)
where  id = :id
       and exists (select 1 from adapters a
                   where  a.id = adapter_files.adapter_id and a.token = :token);

-- name: hold_adapter_file
-- Locks the adapter too: another scanner leases it before this transaction or after it.
select f.id
from   adapter_files f join adapters a on a.id = f.adapter_id
where  f.id = :id and f.job_id is null and a.token = :token
@for_update;

-- name: files_of_adapter
select   id, name, size, state, sha256, file_id, job_id, error, seen_at, updated_at
from     adapter_files
where    adapter_id = :adapter_id
order by id desc
limit    :limit;
