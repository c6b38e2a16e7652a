-- What the engine asks about jobs and the state of the whole. None of these writes.

-- name: oldest_transaction
-- SQLite has one writer, so every process would notice.
select null;

-- name: schema_versions
-- The versions of the schemas that the database has: core's, and one of each extension.
select branch, version
from   schema_versions;

-- fragment: job_columns
id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
reading, max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace,
ip, file_id, pruned_at, standing, topic, removed

-- name: job
select @job_columns
from   jobs
where  id = :job_id;

-- name: job_by_input
-- The newest job of a pipeline on the same input that can be continued or looked at.
select   id
from     jobs
where    pipeline = :pipeline and input_key = :input_key and owner_id = :owner_id
         and state not in ('CANCELLED', 'DELETING')
order by id desc
limit    1;

-- name: unfinished_jobs
-- Running jobs with something left to do. A standing job has nothing left while none of its items
-- is open and none of its streams is being read or due.
select j.id
from   jobs j
where  j.state = 'RUNNING' and j.pipeline in (@each(:pipelines, text))
       and (j.standing = 0
            or exists (select 1 from ranges r where r.job_id = j.id)
            or exists (select 1 from streams s
                       where s.job_id = j.id and s.state = 'RUNNING'
                             and (s.available_at <= @now or s.worker is not null)));

-- name: counters
select coalesce(cast(sum(accepted) as bigint), 0) as accepted, coalesce(cast(sum(done) as bigint), 0) as done,
       coalesce(cast(sum(not_found) as bigint), 0) as not_found, coalesce(cast(sum(skipped) as bigint), 0) as skipped,
       coalesce(cast(sum(error) as bigint), 0) as error, coalesce(cast(sum(retried) as bigint), 0) as retried,
       coalesce(cast(sum(throttled) as bigint), 0) as throttled, coalesce(cast(sum(known) as bigint), 0) as known
from   counters
where  job_id = :job_id;

-- name: count_items
select count(*)
from   items
where  job_id = :job_id;

-- name: count_outcomes
select   status, count(*) as count
from     outcomes
where    job_id = :job_id
group by status;

-- name: count_fresh_open
-- The open items of fresh ranges.
select count(*)
from   ranges r
       join items i on i.job_id = r.job_id and i.seq between r.lo and r.hi
where  r.job_id = :job_id and r.again = 0
       and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq);

-- name: count_again_open
-- The open items of again ranges.
select count(*)
from   ranges r
       join outcomes o on o.range_id = r.id
where  r.job_id = :job_id and r.again = 1 and o.status = 'PENDING';

-- name: workers_not_stopped
-- Includes workers that may be lost.
select   name, host, machine, pid, pipelines, started_at, seen_at
from     workers
where    stopped_at is null
order by name;

-- name: live_workers
select   name, host, machine, pid, pipelines, started_at, seen_at
from     workers
where    stopped_at is null and seen_at > @after(-1.0 * lost_after_seconds)
order by name;

-- name: count_dead_letters
select   pipeline, count(*) as count
from     dead_letters
where    state = 'OPEN'
group by pipeline;

-- name: kill_switches
select   scope, actor, reason, since
from     kill_switches
order by scope;

-- name: backlog
-- Counts what running jobs could work on now.
select coalesce(cast(sum(r.hi - r.lo + 1) as bigint), 0) as items
from   ranges r
       join jobs j on j.id = r.job_id
where  j.state = 'RUNNING' and r.available_at <= @now;

-- name: queue_depth
-- Open items and the age of the oldest, by pipeline. Open items are in ranges, but those of items
-- that wait to be tried again span others too: the jobs' counters know how many there are. Each job
-- is queried separately: joined, a table without statistics is compared row by row.
select   pipeline, cast(sum(open) as bigint) as open, min(since) as since, @now as now
from     (select   r.pipeline, min(r.since) as since,
                   (select sum(c.accepted
                               - coalesce(c.done + c.not_found + c.skipped + c.error, 0))
                    from   counters c
                    where  c.job_id = r.job_id) as open
          from     ranges r
          group by r.job_id, r.pipeline) waiting
group by pipeline;

-- name: stored_content
select name, key, size, sha256
from   files
where  id = :id;
