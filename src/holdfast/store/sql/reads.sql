-- Queries behind the command line, the API and the pages. None of them writes.

-- name: oldest_transaction
-- SQLite has one writer, whom everybody would notice.
select null;

-- name: schema_revisions
-- The schema that the database has: core's revision, and one of each extension.
select version_num
from   alembic_version;

-- name: job
select id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
       max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace,
       ip, file_id
from   jobs
where  id = :job_id;

-- name: jobs
-- The newest jobs first.
select   id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
         max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace,
         ip, file_id
from     jobs
where    id < :before
order by id desc
limit    :limit;

-- name: job_by_input
-- The newest job of a pipeline on the same input that can be continued or looked at.
select   id
from     jobs
where    pipeline = :pipeline and input_key = :input_key and owner_id = :owner_id
         and state <> 'CANCELLED'
order by id desc
limit    1;

-- name: running_jobs
select id
from   jobs
where  state = 'RUNNING' and pipeline in (@each(:pipelines, text));

-- name: counters
select coalesce(cast(sum(accepted) as bigint), 0), coalesce(cast(sum(done) as bigint), 0),
       coalesce(cast(sum(not_found) as bigint), 0), coalesce(cast(sum(skipped) as bigint), 0),
       coalesce(cast(sum(error) as bigint), 0), coalesce(cast(sum(retried) as bigint), 0),
       coalesce(cast(sum(throttled) as bigint), 0), coalesce(cast(sum(known) as bigint), 0)
from   counters
where  job_id = :job_id;

-- name: heartbeat
-- When something of the job was last settled or ingested.
select max(updated_at)
from   counters
where  job_id = :job_id;

-- name: count_items
select count(*)
from   items
where  job_id = :job_id;

-- name: count_outcomes
select   status, count(*)
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

-- name: ranges_of_job
select   id, lo, hi, again, available_at, worker, expires_at, expiries, settled, waiting_for,
         since, case when available_at <= @now then 1 else 0 end,
         case when expires_at > @now then 1 else 0 end
from     ranges
where    job_id = :job_id
order by since, id
limit    :limit;

-- name: count_ranges
select count(*)
from   ranges
where  job_id = :job_id;

-- name: next_due
-- The next range that is due, and what it waits for.
select   available_at, waiting_for, case when available_at <= @now then 1 else 0 end
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
select   worker, count(*), max(expires_at)
from     ranges
where    job_id = :job_id and worker is not null and expires_at > @now
group by worker
order by worker;

-- name: leased_ranges
-- What workers hold now: its open items are PROCESSING.
select id, lo, hi, again, worker
from   ranges
where  job_id = :job_id and expires_at > @now;

-- name: streams_of_job
select   id, source, mode, state, generation, cursor, pages_count, records_count, items_count,
         max_items, expected_count, failures, error, available_at, worker, updated_at,
         case when available_at <= @now then 1 else 0 end,
         case when expires_at > @now then 1 else 0 end, actual_count, verified_at
from     streams
where    job_id = :job_id
order by id;

-- name: live_workers
select   name, host, pid, pipelines, started_at, seen_at
from     workers
where    stopped_at is null and seen_at > @after(-1.0 * :lost_seconds)
order by name;

-- name: item
select i.seq, i.key, i.input, o.status, o.normalized, o.result, o.error_code, o.error_message,
       o.tries, o.attempts, o.misses, o.seconds, o.range_id, o.updated_at
from   items i
       left join outcomes o on o.job_id = i.job_id and o.seq = i.seq
where  i.job_id = :job_id and i.seq = :seq;

-- name: attempts_of_item
select   number, status, result, error_code, error_message, seconds, worker, at
from     attempts
where    job_id = :job_id and seq = :seq
order by number;

-- name: latest_errors_by_code
-- No more than `limit` are looked at, however many there are.
select   error_code, count(*), min(updated_at), max(updated_at), min(error_message)
from     (select   error_code, updated_at, error_message
          from     outcomes
          where    job_id = :job_id and status = 'ERROR'
          order by updated_at desc, seq desc
          limit    :limit) latest
group by error_code;

-- name: latest_errors_of_code
-- The same of one code; items that wait to be tried again bear one too.
select   error_code, count(*), min(updated_at), max(updated_at), min(error_message)
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

-- name: dead_letters
select   id, kind, job_id, seq, pipeline, code, message, state, created_at, acted_at, actor
from     dead_letters
where    state = :state
order by id
limit    :limit;

-- name: dead_letter
select id, kind, job_id, seq, pipeline, code, message, state, created_at, acted_at, actor,
       message_id, queue, payload, history
from   dead_letters
where  id = :id;

-- name: dead_letters_of_item
select   id, code, message, state, created_at, acted_at, actor
from     dead_letters
where    job_id = :job_id and seq = :seq
order by id;

-- name: range
select id, lo, hi, again, available_at, worker, expires_at, expiries, settled, waiting_for, since,
       case when available_at <= @now then 1 else 0 end,
       case when expires_at > @now then 1 else 0 end
from   ranges
where  id = :range_id;

-- name: count_dead_letters
select   pipeline, count(*)
from     dead_letters
where    state = 'OPEN'
group by pipeline;

-- name: kill_switches
select   scope, actor, reason, since
from     kill_switches
order by scope;

-- name: gates
select   name, spacing, jitter, concurrency, next_at, closed_until, reason,
         case when closed_until > @now then 1 else 0 end
from     gates
order by name;

-- name: schedules
select   name, reference, cron, zone, options, enabled, next_at, last_at, last_job_id, error
from     schedules
order by name;

-- name: decisions_of_job
select   what, was, became, why, worker, at
from     decisions
where    job_id = :job_id
order by id desc
limit    :limit;

-- name: audit_of_job
select   actor, action, subject, detail, at
from     audit
where    job_id = :job_id
order by id;

-- name: backlog
-- What running jobs could work on now, and for how long the oldest of it waits.
select coalesce(cast(sum(r.hi - r.lo + 1) as bigint), 0),
       coalesce(max(@seconds_since(r.since)), 0)
from   ranges r
       join jobs j on j.id = r.job_id
where  j.state = 'RUNNING' and r.available_at <= @now;

-- name: queue_depth
-- Open items and the age of the oldest, by pipeline. What is open lies in ranges, but those of items
-- that wait to be tried again span others too: the jobs' counters know how many there are.
select   r.pipeline, cast(sum(c.open) as bigint), min(r.since), @now
from     (select job_id, pipeline, min(since) as since
          from   ranges
          group by job_id, pipeline) r
         join (select job_id, sum(accepted - done - not_found - skipped - error) as open
               from   counters
               where  job_id in (select job_id from ranges)
               group by job_id) c on c.job_id = r.job_id
group by r.pipeline;
