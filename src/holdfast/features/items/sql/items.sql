-- Items: single ones, and pages of them by keyset. Nothing here writes.

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

-- name: leased_ranges
-- What workers hold now: its open items are PROCESSING.
select id, lo, hi, again, worker
from   ranges
where  job_id = :job_id and worker is not null;

-- name: page_by_seq
-- A page of all items, in their order.
select   i.seq, substr(cast(i.input as text), 1, :input_chars), o.status,
         case when length(cast(o.result as text)) <= :result_chars then o.result end,
         o.error_code, o.error_message, o.tries, o.attempts + o.misses as attempts, o.updated_at, o.range_id
from     items i
         left join outcomes o on o.job_id = i.job_id and o.seq = i.seq
where    i.job_id = :job_id and i.seq > :after
order by i.seq
limit    :limit;

-- name: page_by_status
-- A page of the items with one final status, in the order they came to it.
select   o.seq, substr(cast(i.input as text), 1, :input_chars), o.status,
         case when length(cast(o.result as text)) <= :result_chars then o.result end,
         o.error_code, o.error_message, o.tries, o.attempts + o.misses as attempts, o.updated_at, o.range_id
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
         o.error_code, o.error_message, o.tries, o.attempts + o.misses as attempts, o.updated_at, o.range_id
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
         o.tries, o.attempts + o.misses as attempts, o.updated_at, o.range_id
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
         o.tries, o.attempts + o.misses as attempts, o.updated_at
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
       o.error_message, o.tries, o.attempts + o.misses as attempts, o.updated_at
from   outcomes o
       join items i on i.job_id = o.job_id and i.seq = o.seq
where  o.range_id in (@each(:range_ids, bigint));

-- name: open_ranges_of_job
-- Where a job's open items are, the longest waiting first; `want` 1 are leased ones, 2 free ones.
-- Last, how many items each range holds at most; of again ranges, no more than `size` are counted.
select   id, job_id, lo, hi, again, since, worker, case when worker is not null then 1 else 2 end,
         case when again = 0 then hi - lo + 1
              else (select count(*)
                    from (select 1 from outcomes o where o.range_id = r.id limit :size) few) end
from     ranges r
where    job_id = :job_id and (since, id) >= (:since, :id) and since <= :until
         and (:want = 0 or :want = case when worker is not null then 1 else 2 end)
order by since, id
limit    :limit;

-- name: open_ranges
-- The same over all jobs.
select   id, job_id, lo, hi, again, since, worker, case when worker is not null then 1 else 2 end,
         case when again = 0 then hi - lo + 1
              else (select count(*)
                    from (select 1 from outcomes o where o.range_id = r.id limit :size) few) end
from     ranges r
where    (since, id) >= (:since, :id) and since <= :until
         and (:want = 0 or :want = case when worker is not null then 1 else 2 end)
         and (:any_pipeline = 1 or pipeline = :pipeline)
         and exists (select 1 from jobs j where j.id = r.job_id and j.state not in ('CANCELLED', 'DELETING'))
order by since, id
limit    :limit;

-- name: open_ranges_of_owner
-- The same over one owner's jobs.
select   id, job_id, lo, hi, again, since, worker, case when worker is not null then 1 else 2 end,
         case when again = 0 then hi - lo + 1
              else (select count(*)
                    from (select 1 from outcomes o where o.range_id = r.id limit :size) few) end
from     ranges r
where    owner_id = :scope and (since, id) >= (:since, :id) and since <= :until
         and (:want = 0 or :want = case when worker is not null then 1 else 2 end)
         and (:any_pipeline = 1 or pipeline = :pipeline)
         and exists (select 1 from jobs j where j.id = r.job_id and j.state not in ('CANCELLED', 'DELETING'))
order by since, id
limit    :limit;

-- name: pending_count
-- Open items of live jobs, by their counters; an empty scope or pipeline means any.
select coalesce(cast(sum(c.accepted - coalesce(c.done + c.not_found + c.skipped + c.error, 0))
                     as bigint), 0)
from   jobs j
       join counters c on c.job_id = j.id
where  j.state in ('QUEUED', 'RUNNING', 'PAUSED', 'FAILED')
       and (:scope = '' or j.owner_id = :scope) and (:pipeline = '' or j.pipeline = :pipeline)
       and (:job_id = 0 or j.id = :job_id);

-- name: jobs_of_items
-- Pipeline, owner, name and progress of several jobs.
select   j.id, j.pipeline, j.owner_id, j.name,
         coalesce(cast(sum(c.accepted) as bigint), 0) as accepted,
         coalesce(cast(sum(c.done + c.not_found + c.skipped + c.error) as bigint), 0) as finished
from     jobs j
         left join counters c on c.job_id = j.id
where    j.id in (@each(:job_ids, bigint))
group by j.id, j.pipeline, j.owner_id, j.name;
