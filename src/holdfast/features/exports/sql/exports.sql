-- Exports, and the processes that write them.

-- name: add_export
insert into exports (owner_id, job_id, format, statuses, narrowed, with_input, state, partial,
                     rows_count, notes, created_at)
values (:owner_id, :job_id, :format, :statuses, :narrowed, :with_input, 'QUEUED', 0, 0, '[]', @now)
returning id;

-- name: export
select id, owner_id, job_id, format, statuses, with_input, state, partial, rows_count, size,
       notes, error, created_at, finished_at, narrowed, key, sha256
from   exports
where  id = :id and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: exports
select   id, owner_id, job_id, format, statuses, with_input, state, partial, rows_count, size,
         notes, error, created_at, finished_at, narrowed, key, sha256
from     exports
where    id < :before
order by id desc
limit    :limit;

-- name: exports_of_owner
select   id, owner_id, job_id, format, statuses, with_input, state, partial, rows_count, size,
         notes, error, created_at, finished_at, narrowed, key, sha256
from     exports
where    owner_id = :scope and id < :before
order by id desc
limit    :limit;

-- name: exports_to_do
-- Exports that no process writes.
select   id
from     exports
where    state in ('QUEUED', 'RUNNING') and worker is null
order by id
limit    20;

-- name: lease_export
-- Compare and set: if two processes saw it free, one writes it.
update exports
set    state = 'RUNNING', worker = :worker
where  id = :id and state in ('QUEUED', 'RUNNING') and worker is null
returning id, owner_id, job_id, format, statuses, with_input, state, partial, rows_count, size,
          notes, error, created_at, finished_at, narrowed, key, sha256;

-- name: note_rows
-- How far an export is.
update exports
set    rows_count = :rows
where  id = :id and worker = :worker and state = 'RUNNING'
returning id;

-- name: finish_export
update exports
set    state = :state, partial = :partial, rows_count = :rows, size = cast(:size as bigint),
       notes = :notes, error = cast(:error as text), worker = null,
       key = cast(:key as text), sha256 = cast(:sha256 as text), finished_at = @now
where  id = :id and worker = :worker and state = 'RUNNING'
returning id;
