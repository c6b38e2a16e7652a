-- Streams. Nothing here writes.

-- name: streams_page
-- Streams of jobs in scope, the latest moved first.
select   s.id, s.source, s.mode, s.state, s.generation, s.cursor, s.pages_count, s.records_count,
         s.items_count, s.max_items, s.expected_count, s.failures, s.error, s.available_at,
         s.worker, s.updated_at, case when s.available_at <= @now then 1 else 0 end as due,
         case when s.expires_at > @now then 1 else 0 end as leased, s.actual_count, s.verified_at,
         s.pipeline, s.job_id, s.full_completed_at, j.owner_id
from     streams s
         join jobs j on j.id = s.job_id
where    s.id < :before and (:scope = '' or j.owner_id = :scope)
         and (:state = '' or s.state = :state) and (:pipeline = '' or s.pipeline = :pipeline)
order by s.id desc
limit    :limit;

-- name: stream_job
-- The job that walks a stream, if it is in scope.
select s.job_id, s.state
from   streams s
       join jobs j on j.id = s.job_id
where  s.id = :id and (:scope = '' or j.owner_id = :scope);
