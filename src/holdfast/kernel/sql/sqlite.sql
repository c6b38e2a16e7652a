-- Queries that SQLite spells differently: batches are rows passed one after the other.

-- name: replace_outcomes
insert into outcomes (job_id, seq, status, tries, attempts, misses, normalized, result,
                      error_code, error_message, seconds, range_id, updated_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, @now)
on conflict (job_id, seq) do update
set status = excluded.status, tries = excluded.tries, attempts = excluded.attempts,
    misses = excluded.misses, normalized = excluded.normalized, result = excluded.result,
    error_code = excluded.error_code, error_message = excluded.error_message,
    seconds = excluded.seconds, range_id = excluded.range_id, updated_at = excluded.updated_at;

-- name: add_attempts
insert into attempts (job_id, seq, number, status, error_code, error_message, seconds, worker, at)
values (?, ?, ?, ?, ?, ?, ?, ?, @now)
on conflict (job_id, seq, number) do nothing;

-- name: settle_rest
-- The same fence for the last settlements of leases, which end their ranges.
delete from ranges
where  job_id = ? and id = ? and token = ? and settled = ?
       and exists (select 1 from jobs j
                   where j.id = ranges.job_id and j.state in ('RUNNING', 'PAUSED'))
returning id;

-- name: fresh_items_of
-- The same as fresh_items, for several stretches; a cross join keeps the planner from reading the
-- whole job.
select i.seq, i.input, 0, 0, 0
from   json_each(:spans) s
       cross join items i
where  i.job_id = :job_id and i.seq between s.value ->> 0 and s.value ->> 1;
