-- Streams as people, the engine and extensions see them. Nothing here writes.

-- fragment: stream_columns
s.id, s.source, s.mode, s.state, s.generation, s.cursor, s.pages_count, s.records_count,
s.items_count, s.max_items, s.expected_count, s.failures, s.error, s.waiting_for, s.available_at,
s.worker,
s.updated_at, case when s.available_at <= @now then 1 else 0 end as due,
case when s.worker is not null then 1 else 0 end as leased, s.actual_count, s.verified_at

-- name: streams_of_job
select   @stream_columns
from     streams s
where    s.job_id = :job_id
order by s.id;

-- name: streams_page
-- Streams of jobs in scope, the newest first.
select   @stream_columns, s.pipeline, s.job_id, s.full_completed_at, j.owner_id
from     streams s
         join jobs j on j.id = s.job_id
where    s.id < :before and (:scope = '' or j.owner_id = :scope)
         and (:state = '' or s.state = :state) and (:pipeline = '' or s.pipeline = :pipeline)
order by s.id desc
limit    :limit;

-- name: stream_job
-- The job that walks a stream, if it is in scope.
select s.job_id
from   streams s
       join jobs j on j.id = s.job_id
where  s.id = :id and (:scope = '' or j.owner_id = :scope);

-- fragment: stream_progress
s.id, s.source, s.mode, s.state, s.generation, s.job_id, j.state as job_state, s.pages_count,
s.records_count, s.expected_count, s.actual_count, s.full_completed_at, s.verified_at,
s.force_full, s.rerun_requested, s.error, s.cursor, s.updated_at, j.owner_id

-- name: streams_of_pipeline
-- Streams in order of id; of one owner's jobs, or all.
select   @stream_progress
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = :pipeline and s.id > :after
         and s.mode = coalesce(cast(:mode as text), s.mode)
         and s.source like cast(:pattern as text) escape '\'
         and j.state = coalesce(cast(:job_state as text), j.state)
         and j.owner_id = coalesce(cast(:owner as text), j.owner_id)
order by s.id
limit    :limit;

-- name: streams_of_sources
-- The streams of these sources, for any owner.
select   @stream_progress
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = :pipeline and s.source in (@each(:sources, text))
order by s.id;

-- name: slices_of_stream
-- Slices, the latest first.
select   id, generation, job_id, worker, started_at, ended_at, pages_count, ended, error
from     stream_slices
where    stream_id = :stream_id
order by id desc
limit    :limit;
