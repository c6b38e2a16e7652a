-- The figures of jobs over time. A bucket is ten seconds, counted from 1970.

-- name: take_samples
-- The jobs that run, and those that have just stopped, once in each bucket.
insert into samples (job_id, bucket, accepted, finished, error, throttled)
select   c.job_id, :bucket, sum(c.accepted),
         sum(coalesce(c.done + c.not_found + c.skipped + c.error, 0)), sum(coalesce(c.error, 0)),
         sum(coalesce(c.throttled, 0))
from     jobs j
         join counters c on c.job_id = j.id
where    j.state = 'RUNNING' or j.updated_at > @after(-15)
group by c.job_id
on conflict (job_id, bucket) do nothing;

-- name: forget_samples
delete from samples
where  bucket < :bucket;
