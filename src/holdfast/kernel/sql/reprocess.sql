-- Opens finished items again.

-- name: next_finished_items
-- The finished items after a position, in the order they finished.
select   seq, status, updated_at, error_code, attempts, misses
from     outcomes
where    job_id = :job_id and status = :status
         and (:any_code = 1 or error_code = :code)
         and (updated_at, seq) > (:since, :seq) and updated_at <= :until
order by updated_at, seq
limit    :limit;

-- name: finished_items
-- The named items that are finished, and were by then.
select   seq, status, updated_at, error_code, attempts, misses
from     outcomes
where    job_id = :job_id and seq in (@each(:seqs, bigint)) and status <> 'PENDING'
         and updated_at <= :until
order by seq;

-- name: mean_input_bytes
-- How large the items are that are opened again, for the byte limit of claims.
select coalesce(cast(avg(length(cast(input as text))) as bigint), 0)
from   items
where  job_id = :job_id and seq in (@each(:seqs, bigint));

-- name: keep_attempts
-- The outcomes that a reprocess replaces become history.
insert into attempts (job_id, seq, number, status, result, error_code, error_message, seconds,
                      worker, at)
select job_id, seq, tries, status, result, error_code, error_message, seconds, 'reprocess',
       updated_at
from   outcomes
where  job_id = :job_id and seq in (@each(:seqs, bigint))
on conflict (job_id, seq, number) do nothing;

-- name: open_again
-- Finished items become open, in the given again range.
update outcomes
set    status = 'PENDING', range_id = :range_id, result = null, error_code = null,
       error_message = null, attempts = case when :reset = 1 then 0 else attempts end,
       misses = case when :reset = 1 then 0 else misses end, updated_at = @now
where  job_id = :job_id and seq in (@each(:seqs, bigint));
