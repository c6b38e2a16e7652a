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
       and j.file_id is not null
       and s.state = 'RUNNING' and s.available_at <= @now
       and (s.worker is null or s.expires_at <= @now)
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline, 'source:' || s.source));

-- name: page_by_seq
-- A page of all items, in their order.
select   i.seq, substr(cast(i.input as text), 1, :input_chars), o.status,
         case when length(cast(o.result as text)) <= :result_chars then o.result end,
         o.error_code, o.error_message, o.tries, o.attempts, o.updated_at, o.range_id
from     items i
         left join outcomes o on o.job_id = i.job_id and o.seq = i.seq
where    i.job_id = :job_id and i.seq > :after
order by i.seq
limit    :limit;

-- name: page_by_status
-- A page of the items with one final status, in the order they came to it.
select   o.seq, substr(cast(i.input as text), 1, :input_chars), o.status,
         case when length(cast(o.result as text)) <= :result_chars then o.result end,
         o.error_code, o.error_message, o.tries, o.attempts, o.updated_at, o.range_id
from     outcomes o
         join items i on i.job_id = o.job_id and i.seq = o.seq
where    o.job_id = :job_id and o.status = :status
         and (o.updated_at, o.seq) > (:updated_at, :seq) and o.updated_at <= :until
order by o.updated_at, o.seq
limit    :limit;

-- name: page_by_code
-- A page of the items with one error code, finished or waiting to be tried again.
select   o.seq, substr(cast(i.input as text), 1, :input_chars), o.status,
         case when length(cast(o.result as text)) <= :result_chars then o.result end,
         o.error_code, o.error_message, o.tries, o.attempts, o.updated_at, o.range_id
from     outcomes o
         join items i on i.job_id = o.job_id and i.seq = o.seq
where    o.job_id = :job_id and o.error_code = :code
         and o.status in (@each(:statuses, text))
         and (o.updated_at, o.seq) > (:updated_at, :seq) and o.updated_at <= :until
order by o.updated_at, o.seq
limit    :limit;

-- name: page_of_cancelled
-- A page of the items that a cancelled job left open.
select   i.seq, substr(cast(i.input as text), 1, :input_chars), o.status, null, null, null,
         o.tries, o.attempts, o.updated_at, o.range_id
from     items i
         left join outcomes o on o.job_id = i.job_id and o.seq = i.seq
where    i.job_id = :job_id and i.seq > :after and (o.status is null or o.status = 'PENDING')
order by i.seq
limit    :limit;

-- name: normalized_of_items
select seq, cast(normalized as text)
from   outcomes
where  job_id = :job_id and seq in (@each(:seqs, bigint))
       and length(cast(normalized as text)) <= :chars;

-- name: page_of_fresh
-- A page of the open items of one fresh range.
select   i.seq, substr(cast(i.input as text), 1, :input_chars)
from     items i
where    i.job_id = :job_id and i.seq > :after and i.seq <= :hi
         and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
order by i.seq
limit    :limit;

-- name: page_of_again
-- A page of the open items of one again range.
select   o.seq, substr(cast(i.input as text), 1, :input_chars), o.error_code, o.error_message,
         o.tries, o.attempts, o.updated_at
from     outcomes o
         join items i on i.job_id = o.job_id and i.seq = o.seq
where    o.range_id = :range_id and o.seq > :after
order by o.seq
limit    :limit;

-- name: open_of_fresh_ranges
-- The open items of several small fresh ranges.
select r.id, i.seq, substr(cast(i.input as text), 1, :input_chars)
from   ranges r
       join items i on i.job_id = r.job_id and i.seq >= r.lo and i.seq <= r.hi
where  r.id in (@each(:range_ids, bigint))
       and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq);

-- name: open_of_again_ranges
-- The open items of several small again ranges.
select o.range_id, o.seq, substr(cast(i.input as text), 1, :input_chars), o.error_code,
       o.error_message, o.tries, o.attempts, o.updated_at
from   outcomes o
       join items i on i.job_id = o.job_id and i.seq = o.seq
where  o.range_id in (@each(:range_ids, bigint));

-- name: open_ranges_of_job
-- Where a job's open items lie, the longest waiting first; `want` 1 are leased ones, 2 free ones.
-- Last, how many items each holds at most; of again ranges, no more than `size` are counted.
select   id, job_id, lo, hi, again, since, worker, case when expires_at > @now then 1 else 2 end,
         case when again = 0 then hi - lo + 1
              else (select count(*)
                    from (select 1 from outcomes o where o.range_id = r.id limit :size) few) end
from     ranges r
where    job_id = :job_id and (since, id) >= (:since, :id) and since <= :until
         and (:want = 0 or :want = case when expires_at > @now then 1 else 2 end)
order by since, id
limit    :limit;

-- name: open_ranges
-- The same over all jobs.
select   id, job_id, lo, hi, again, since, worker, case when expires_at > @now then 1 else 2 end,
         case when again = 0 then hi - lo + 1
              else (select count(*)
                    from (select 1 from outcomes o where o.range_id = r.id limit :size) few) end
from     ranges r
where    (since, id) >= (:since, :id) and since <= :until
         and (:want = 0 or :want = case when expires_at > @now then 1 else 2 end)
         and (:any_pipeline = 1 or pipeline = :pipeline)
         and exists (select 1 from jobs j where j.id = r.job_id and j.state <> 'CANCELLED')
order by since, id
limit    :limit;

-- name: open_ranges_of_owner
-- The same over one owner's jobs.
select   id, job_id, lo, hi, again, since, worker, case when expires_at > @now then 1 else 2 end,
         case when again = 0 then hi - lo + 1
              else (select count(*)
                    from (select 1 from outcomes o where o.range_id = r.id limit :size) few) end
from     ranges r
where    owner_id = :scope and (since, id) >= (:since, :id) and since <= :until
         and (:want = 0 or :want = case when expires_at > @now then 1 else 2 end)
         and (:any_pipeline = 1 or pipeline = :pipeline)
         and exists (select 1 from jobs j where j.id = r.job_id and j.state <> 'CANCELLED')
order by since, id
limit    :limit;

-- name: pending_count
-- Open items of live jobs, by their counters; an empty scope or pipeline means any.
select coalesce(cast(sum(c.accepted - c.done - c.not_found - c.skipped - c.error) as bigint), 0)
from   jobs j
       join counters c on c.job_id = j.id
where  j.state in ('QUEUED', 'RUNNING', 'PAUSED', 'FAILED')
       and (:scope = '' or j.owner_id = :scope) and (:pipeline = '' or j.pipeline = :pipeline)
       and (:job_id = 0 or j.id = :job_id);

-- name: job_types
-- Pipeline and owner of several jobs.
select id, pipeline, owner_id, name
from   jobs
where  id in (@each(:job_ids, bigint));

-- name: streams_page
-- Streams of jobs in scope, the latest moved first.
select   s.id, s.source, s.mode, s.state, s.generation, s.cursor, s.pages_count, s.records_count,
         s.items_count, s.max_items, s.expected_count, s.failures, s.error, s.available_at,
         s.worker, s.updated_at, case when s.available_at <= @now then 1 else 0 end,
         case when s.expires_at > @now then 1 else 0 end, s.actual_count, s.verified_at,
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

-- name: dead_letters_page
-- Those of jobs in scope; messages without a job only for those who see all.
select   d.id, d.kind, d.job_id, d.seq, d.pipeline, d.code, d.message, d.state, d.created_at,
         d.acted_at, d.actor
from     dead_letters d
         left join jobs j on j.id = d.job_id
where    d.state = :state and d.id < :before and (:scope = '' or j.owner_id = :scope)
order by d.id desc
limit    :limit;

-- name: dead_letter_in_scope
select d.id
from   dead_letters d
       left join jobs j on j.id = d.job_id
where  d.id = :id and (:scope = '' or j.owner_id = :scope);

-- name: audit_page
-- What was done by the person or to their jobs; everything for those who see all.
select   a.id, a.actor, a.action, a.job_id, a.subject, a.detail, a.at
from     audit a
         left join jobs j on j.id = a.job_id
where    a.id < :before and (:scope = '' or a.actor = :scope or j.owner_id = :scope)
         and (:job_id = 0 or a.job_id = :job_id)
order by a.id desc
limit    :limit;

-- name: live_jobs
-- What runs or waits, and what ended a moment ago.
select   id, pipeline, name, state, owner_id, mode, lane, reference, input_key, columns, options,
         max_items, error, created_at, started_at, finished_at, updated_at, discovered_at, trace, ip,
         file_id
from     jobs
where    state in ('QUEUED', 'RUNNING', 'PAUSED') or updated_at > @after(-1.0 * :seconds)
order by id desc
limit    500;
