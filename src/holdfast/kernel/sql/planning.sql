-- Slices of streams, plans and conclusions of pipelines.

-- name: end_lost_slices
-- Slices whose worker was lost: the stream's next lease shows it.
update stream_slices
set    ended_at = @now, ended = 'lost',
       pages_count = (select s.pages_count from streams s where s.id = stream_slices.stream_id)
                     - pages_before
where  stream_id = :stream_id and ended_at is null;

-- name: add_slice
-- A slice of discovery begins.
insert into stream_slices (stream_id, generation, job_id, worker, started_at, pages_before)
select id, generation, job_id, :worker, @now, pages_count
from   streams
where  id = :stream_id
returning id;

-- name: end_slice
-- How a slice of discovery ended, and how many pages it walked.
update stream_slices
set    ended_at = @now, ended = :ended, error = cast(:error as text),
       pages_count = (select s.pages_count from streams s where s.id = stream_slices.stream_id)
                     - pages_before
where  id = :id and ended_at is null;

-- name: drop_empty_slice
-- A look at a source that had nothing leaves no trace: a quiet source would fill the table.
delete from stream_slices
where  id = :id and ended_at is null
       and pages_before = (select s.pages_count from streams s where s.id = stream_slices.stream_id)
returning id;

-- name: prune_slices
-- The latest slices of a stream stay.
delete from stream_slices
where  stream_id = :stream_id
       and id <= (select   id
                  from     stream_slices
                  where    stream_id = :stream_id
                  order by id desc
                  limit    1 offset :kept);

-- name: job_concludes
select concludes
from   jobs
where  id = :job_id;

-- name: hold_jobs_of_streams
-- Locks jobs: none of them starts, ends or changes until the plan is committed. Its streams are
-- read in the next statement, which sees whatever the former holder did.
select   j.id
from     jobs j
         join streams s on s.job_id = j.id
where    s.pipeline = :pipeline and s.source in (@each(:sources, text))
order by j.id
@for_update_of(j);

-- name: plan_streams
-- How the streams of some sources stand.
select   s.id as stream_id, s.source, s.mode, s.state, s.generation, s.cursor, s.pages_count, s.records_count,
         s.job_id, j.state as job_state, s.full_completed_at, s.verified_at, s.force_full, s.rerun_requested,
         s.error
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = :pipeline and s.source in (@each(:sources, text))
order by s.id;

-- name: all_plan_streams
-- How all streams of a pipeline stand.
select   s.id as stream_id, s.source, s.mode, s.state, s.generation, s.cursor, s.pages_count, s.records_count,
         s.job_id, j.state as job_state, s.full_completed_at, s.verified_at, s.force_full, s.rerun_requested,
         s.error
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = :pipeline
order by s.id;

-- name: plan_streams_of_job
-- How the streams of a job stand.
select   s.id as stream_id, s.source, s.mode, s.state, s.generation, s.cursor, s.pages_count, s.records_count,
         s.job_id, j.state as job_state, s.full_completed_at, s.verified_at, s.force_full, s.rerun_requested,
         s.error
from     streams s
         join jobs j on j.id = s.job_id
where    s.job_id = :job_id
order by s.id;

-- name: mark_stream
-- What is requested of the stream once its job ends. It changes named columns only: a mark set in
-- between stays.
update streams
set    force_full = case when :force_full = 1 then 1 else force_full end,
       rerun_requested = case when :rerun = 1 then 1 else rerun_requested end,
       updated_at = @now
where  id = :id;

-- name: clear_marks
-- A new job fulfils what was requested of its source.
update streams
set    force_full = case when :mode = 'full' then 0 else force_full end, rerun_requested = 0
where  pipeline = :pipeline and source = :source;

-- name: reopen_stream
-- Its pipeline decided that the stream has to be read further.
update streams
set    state = 'RUNNING', cursor = :cursor, failures = 0, error = null, waiting_for = null,
       available_at = @after(:delay), token = null, worker = null,
       updated_at = @now
where  id = :id;

-- name: refuse_stream
-- Its pipeline decided that the stream's records cannot be right.
update streams
set    state = 'FAILED', error = :error, cursor = :cursor, token = null, worker = null,
       updated_at = @now
where  id = :id;

-- name: verify_stream
-- Its pass is complete, as far as its pipeline could tell.
update streams
set    full_completed_at = @now, expected_count = cast(:expected_count as bigint),
       actual_count = cast(:actual_count as bigint),
       verified_at = case when :proven = 1 then @now else verified_at end, updated_at = @now
where  id = :id;
