-- Charts of jobs over time. A bucket is ten seconds, counted from 1970.

-- name: samples_of_job
-- Every :step-th bucket, from the first that is requested.
select   bucket, accepted, finished, error, throttled
from     samples
where    job_id = :job_id and bucket >= :since and (bucket % :step = 0 or bucket >= :fresh)
order by bucket;

-- name: sampled_span
select min(bucket), max(bucket)
from   samples
where  job_id = :job_id;

-- name: samples_of_jobs
-- What jobs did between two of their samples, and how much they had open, added up.
select   bucket, cast(sum(finished - finished_before) as bigint),
         cast(sum(error - error_before) as bigint), cast(sum(accepted - finished) as bigint)
from     (select s.bucket, s.accepted, s.finished, s.error,
                 coalesce(lag(s.finished) over job, s.finished) as finished_before,
                 coalesce(lag(s.error) over job, s.error) as error_before
          from   samples s
                 join jobs j on j.id = s.job_id
          where  s.bucket >= :since and s.bucket % :step = 0
                 and (:scope = '' or j.owner_id = :scope)
          window job as (partition by s.job_id order by s.bucket)) as steps
group by bucket
order by bucket;

-- name: latest_errors
-- Recent errors, by code.
select   o.error_code, count(*)
from     jobs j
         join outcomes o on o.job_id = j.id
where    j.id in (@each(:job_ids, bigint)) and o.status = 'ERROR'
         and o.updated_at > @after(-1.0 * :seconds)
group by o.error_code
order by 2 desc;
