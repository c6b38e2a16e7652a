-- Jobs, their counters, decisions and errors. Nothing here writes.

-- fragment: is_idle
(standing = 1 and state = 'RUNNING' and not exists (select 1 from ranges where job_id = jobs.id))

-- name: jobs_page
-- The newest jobs first; an empty list of states or pipelines means any.
select   @job_columns
from     jobs
where    id < :before
         and (:any_state = 1 or state in (@each(:states, text)) or :idle = 1 and @is_idle)
         and (:any_pipeline = 1 or pipeline in (@each(:pipelines, text)))
order by id desc
limit    :limit;

-- name: jobs_page_of_owner
select   @job_columns
from     jobs
where    owner_id = :scope and id < :before
         and (:any_state = 1 or state in (@each(:states, text)) or :idle = 1 and @is_idle)
         and (:any_pipeline = 1 or pipeline in (@each(:pipelines, text)))
order by id desc
limit    :limit;

-- name: counters_of_jobs
-- The counters of several jobs, one row each.
select   job_id, cast(sum(accepted) as bigint) as accepted,
         coalesce(cast(sum(done) as bigint), 0) as done,
         coalesce(cast(sum(not_found) as bigint), 0) as not_found,
         coalesce(cast(sum(skipped) as bigint), 0) as skipped,
         coalesce(cast(sum(error) as bigint), 0) as error,
         coalesce(cast(sum(retried) as bigint), 0) as retried,
         coalesce(cast(sum(throttled) as bigint), 0) as throttled,
         coalesce(cast(sum(known) as bigint), 0) as known, max(updated_at) as updated_at
from     counters
where    job_id in (@each(:job_ids, bigint))
group by job_id;

-- name: heartbeat
-- When an item of the job was last settled or ingested.
select max(updated_at)
from   counters
where  job_id = :job_id;

-- name: live_jobs
-- Jobs that run or wait, and those that ended a moment ago.
select   @job_columns
from     jobs
where    state in ('QUEUED', 'RUNNING', 'PAUSED') or updated_at > @after(-1.0 * :seconds)
order by id desc
limit    500;

-- name: decisions_of_job
select   what, was, became, why, worker, at
from     decisions
where    job_id = :job_id
order by id desc
limit    :limit;

-- name: latest_errors_by_code
-- No more than `limit` are looked at, however many there are.
select   error_code, count(*) as count, min(updated_at) as first_at,
         max(updated_at) as last_at, min(error_message) as sample
from     (select   error_code, updated_at, error_message
          from     outcomes
          where    job_id = :job_id and status = 'ERROR'
          order by updated_at desc, seq desc
          limit    :limit) latest
group by error_code;

-- name: latest_errors_of_code
-- The same for one code; items that wait to be tried again have one too.
select   error_code, count(*) as count, min(updated_at) as first_at,
         max(updated_at) as last_at, min(error_message) as sample
from     (select   error_code, status, updated_at, error_message
          from     outcomes
          where    job_id = :job_id and error_code = :code
          order by updated_at desc, seq desc
          limit    :limit) latest
where    status = 'ERROR'
group by error_code;

-- name: codes_of_job
-- One seek for each code, whatever their number of items.
with recursive found (code) as (
    select min(error_code) from outcomes where job_id = :job_id and error_code is not null
    union all
    select (select min(o.error_code) from outcomes o
            where  o.job_id = :job_id and o.error_code > found.code)
    from   found
    where  found.code is not null)
select code
from   found
where  code is not null
limit  200;

-- name: code_began
select min(updated_at)
from   outcomes
where  job_id = :job_id and error_code = cast(:code as text);

-- name: item_span
-- Where the remaining items of a job begin and end, and how many there were. The items of other
-- jobs have numbers between those of a standing job.
select (select min(seq) from items where job_id = :job_id),
       (select max(seq) from items where job_id = :job_id),
       (select coalesce(cast(sum(accepted) as bigint), 0) from counters where job_id = :job_id);
