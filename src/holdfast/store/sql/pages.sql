-- Lists behind the API and the pages: scoped to an owner, paged by keyset. None of them writes.

-- name: job_in_scope
-- With an owner, only theirs.
select id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
       max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace, ip,
       file_id
from   jobs
where  id = :job_id and owner_id = coalesce(cast(:scope as text), owner_id);

-- name: jobs_page
-- The newest jobs first; an empty list of states or pipelines means any.
select   id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
         max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace, ip,
         file_id
from     jobs
where    id < :before
         and (:any_state = 1 or state in (@each(:states, text)))
         and (:any_pipeline = 1 or pipeline in (@each(:pipelines, text)))
order by id desc
limit    :limit;

-- name: jobs_page_of_owner
select   id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
         max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace, ip,
         file_id
from     jobs
where    owner_id = :scope and id < :before
         and (:any_state = 1 or state in (@each(:states, text)))
         and (:any_pipeline = 1 or pipeline in (@each(:pipelines, text)))
order by id desc
limit    :limit;

-- name: counters_of_jobs
-- The counters of several jobs, one row each.
select   job_id, cast(sum(accepted) as bigint), cast(sum(done) as bigint),
         cast(sum(not_found) as bigint), cast(sum(skipped) as bigint),
         cast(sum(error) as bigint), cast(sum(retried) as bigint),
         cast(sum(throttled) as bigint), cast(sum(known) as bigint), max(updated_at)
from     counters
where    job_id in (@each(:job_ids, bigint))
group by job_id;

-- name: upload_jobs
-- Jobs over stored files whose rows are not all taken in yet, and nobody does it.
select distinct j.id, j.pipeline
from   jobs j
       join streams s on s.job_id = j.id
where  j.state = 'RUNNING' and j.pipeline in (@each(:pipelines, text))
       and j.lane = 'UPLOAD' and j.file_id is not null
       and s.state = 'RUNNING' and s.available_at <= @now
       and (s.worker is null or s.expires_at <= @now)
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline, 'source:' || s.source));
