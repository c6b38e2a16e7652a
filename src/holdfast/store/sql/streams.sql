-- Streams of a pipeline, for its pages and commands, and the history of a stream.

-- name: streams_of_pipeline
-- In order of id; of one owner's jobs, or all.
select   s.id, s.source, s.mode, s.state, s.generation, s.job_id, j.state, s.pages_count,
         s.records_count, s.expected_count, s.actual_count, s.full_completed_at, s.verified_at,
         s.force_full, s.rerun_requested, s.error, s.cursor, s.updated_at, j.owner_id
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
-- The streams of these sources, whoever owns their jobs.
select   s.id, s.source, s.mode, s.state, s.generation, s.job_id, j.state, s.pages_count,
         s.records_count, s.expected_count, s.actual_count, s.full_completed_at, s.verified_at,
         s.force_full, s.rerun_requested, s.error, s.cursor, s.updated_at, j.owner_id
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = :pipeline and s.source in (@each(:sources, text))
order by s.id;

-- name: slices_of_stream
-- The latest first.
select   id, generation, job_id, worker, started_at, ended_at, pages_count, ended, error
from     stream_slices
where    stream_id = :stream_id
order by id desc
limit    :limit;
