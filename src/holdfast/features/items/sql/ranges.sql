-- Where a job's open items are, and what they wait for. Nothing here writes.

-- name: ranges_of_job
select   id, lo, hi, again, available_at, worker, expiries, settled, waiting_for,
         since, case when available_at <= @now then 1 else 0 end as due,
         case when worker is not null then 1 else 0 end as leased
from     ranges
where    job_id = :job_id
order by since, id
limit    :limit;

-- name: range
select id, lo, hi, again, available_at, worker, expiries, settled, waiting_for, since,
       case when available_at <= @now then 1 else 0 end as due,
       case when worker is not null then 1 else 0 end as leased
from   ranges
where  id = :range_id;

-- name: count_ranges
select count(*)
from   ranges
where  job_id = :job_id;

-- name: next_due
-- The next range that is due, and what it waits for.
select   available_at, waiting_for, case when available_at <= @now then 1 else 0 end as due
from     ranges
where    job_id = :job_id and worker is null
order by available_at, id
limit    1;

-- name: latest_retry
select   error_code, error_message
from     outcomes
where    job_id = :job_id and status = 'PENDING' and error_code is not null
order by updated_at desc, seq desc
limit    1;

-- name: lease_holders
select distinct worker
from     ranges
where    job_id = :job_id and worker is not null
order by worker;
