-- Bulk operations: they act on everything that matches a filter, in small steps.

-- fragment: operation_columns
id, owner_id, kind, target, job_ids, state, expected_count, done_count, left_count, position,
result, error, before as begun_at, created_at, finished_at

-- name: add_operation
insert into operations (owner_id, kind, target, job_ids, state, expected_count, done_count,
                        left_count, result, before, created_at)
values (:owner_id, :kind, :target, :job_ids, 'QUEUED', :expected, 0, 0, '[]', @now, @now)
returning id;

-- name: operation
select @operation_columns
from   operations
where  id = :id and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: operations
select   @operation_columns
from     operations
where    id < :before_id
order by id desc
limit    :limit;

-- name: operations_of_owner
select   @operation_columns
from     operations
where    owner_id = :scope and id < :before_id
order by id desc
limit    :limit;

-- name: operations_to_do
-- The first unfinished operation of each owner: no owner waits behind another.
select   id
from     operations
where    id in (select min(id) from operations
                where state in ('QUEUED', 'RUNNING') group by owner_id)
         and worker is null
order by id
limit    20;

-- name: lease_operation
-- Compare and set: if two processes saw it free, one gets it.
update operations
set    state = 'RUNNING', worker = :worker
where  id = :id and state in ('QUEUED', 'RUNNING') and worker is null
returning @operation_columns;

-- name: step_operation
-- The fence of a step: it counts only while the operation is ours and not cancelled.
update operations
set    position = :position, done_count = done_count + :done, left_count = left_count + :left,
       result = :result
where  id = :id and worker = :worker and state = 'RUNNING'
returning id;

-- name: finish_operation
update operations
set    state = :state, error = cast(:error as text), worker = null,
       finished_at = @now
where  id = :id and worker = :worker and state = 'RUNNING'
returning id;

-- name: cancel_operation
update operations
set    state = 'CANCELLED', worker = null, finished_at = @now
where  id = :id and state in ('QUEUED', 'RUNNING')
returning kind;

-- name: release_operation
update operations
set    worker = null
where  id = :id and worker = :worker;

-- name: count_matching
-- As many as there are, up to the limit.
select count(*)
from   (select 1
        from   outcomes
        where  job_id = :job_id and status = :status
               and (:any_code = 1 or error_code = :code)
               and updated_at >= :since and updated_at <= :until
        limit  :limit) matching;
