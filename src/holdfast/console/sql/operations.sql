-- Bulk operations: they act on everything that matches a filter, in small steps.

-- name: add_operation
insert into operations (owner_id, kind, target, job_ids, state, expected_count, done_count,
                        left_count, result, before, created_at)
values (:owner_id, :kind, :target, :job_ids, 'QUEUED', :expected, 0, 0, '[]', @now, @now)
returning id;

-- name: operation
select id, owner_id, kind, target, job_ids, state, expected_count, done_count, left_count,
       position, result, error, before, created_at, finished_at
from   operations
where  id = :id and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: operations
select   id, owner_id, kind, target, job_ids, state, expected_count, done_count, left_count,
         position, result, error, before, created_at, finished_at
from     operations
where    id < :before_id
order by id desc
limit    :limit;

-- name: operations_of_owner
select   id, owner_id, kind, target, job_ids, state, expected_count, done_count, left_count,
         position, result, error, before, created_at, finished_at
from     operations
where    owner_id = :scope and id < :before_id
order by id desc
limit    :limit;

-- name: operations_to_do
-- Of each owner the first that has not ended: nobody's wait behind another's.
select   id
from     operations
where    id in (select min(id) from operations
                where state in ('QUEUED', 'RUNNING') group by owner_id)
         and (worker is null or expires_at <= @now)
order by id
limit    20;

-- name: lease_operation
-- Compare and set: of two that saw it free, one goes on with it.
update operations
set    state = 'RUNNING', worker = :worker, expires_at = @after(:seconds)
where  id = :id and state in ('QUEUED', 'RUNNING') and (worker is null or expires_at <= @now)
returning id, owner_id, kind, target, job_ids, state, expected_count, done_count, left_count,
          position, result, error, before, created_at, finished_at;

-- name: step_operation
-- The fence of a step: it counts only while the operation is ours and nobody cancelled it.
update operations
set    position = :position, done_count = done_count + :done, left_count = left_count + :left,
       result = :result, expires_at = @after(:seconds)
where  id = :id and worker = :worker and state = 'RUNNING'
returning id;

-- name: finish_operation
update operations
set    state = :state, error = cast(:error as text), worker = null, expires_at = null,
       finished_at = @now
where  id = :id and worker = :worker and state = 'RUNNING'
returning id;

-- name: cancel_operation
update operations
set    state = 'CANCELLED', worker = null, expires_at = null, finished_at = @now
where  id = :id and state in ('QUEUED', 'RUNNING')
returning kind;

-- name: release_operation
update operations
set    worker = null, expires_at = null
where  id = :id and worker = :worker;

-- name: matching_outcomes
-- A chunk of finished items that an operation looks at, in the order they were finished.
select   seq, status, updated_at, error_code, attempts, misses
from     outcomes
where    job_id = :job_id and status = :status
         and (:any_code = 1 or error_code = :code)
         and (updated_at, seq) > (:updated_at, :seq) and updated_at <= :until
         and updated_at <= :before
order by updated_at, seq
limit    :limit;

-- name: chosen_outcomes
-- Those of the named items that are finished, and were before the operation.
select   seq, status, updated_at, error_code, attempts, misses
from     outcomes
where    job_id = :job_id and seq in (@each(:seqs, bigint)) and status <> 'PENDING'
         and updated_at <= :before
order by seq;

-- name: count_matching
-- As many as there are, up to the limit.
select count(*)
from   (select 1
        from   outcomes
        where  job_id = :job_id and status = :status
               and (:any_code = 1 or error_code = :code)
               and updated_at >= :since and updated_at <= :until
        limit  :limit) found;

-- name: skippable_range
-- The next range that nobody works on.
select   id, lo, hi, again, since
from     ranges
where    job_id = :job_id and worker is null and (since, id) > (:since, :id)
         and since <= :until and (:only_again = 0 or again = 1)
order by since, id
limit    1
@skip_locked;

-- name: skippable_seqs
-- The first open items of a fresh range.
select   i.seq
from     items i
where    i.job_id = :job_id and i.seq >= :lo and i.seq <= :hi
         and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
order by i.seq
limit    :limit;

-- name: skip_again
update outcomes
set    status = 'SKIPPED', range_id = null, error_message = cast(:reason as text),
       updated_at = @now
where  range_id = :range_id and (:any_code = 1 or error_code = :code)
returning seq;
