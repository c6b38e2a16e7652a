-- Skips open items that are not being processed.

-- name: skip_fresh
insert into outcomes (job_id, seq, status, tries, attempts, misses, error_message, seconds,
                      updated_at)
select i.job_id, i.seq, 'SKIPPED', 0, 0, 0, cast(:reason as text), 0, @now
from   items i
where  i.job_id = :job_id and i.seq in (@each(:seqs, bigint));

-- name: left_in_range
select 1
from   outcomes
where  range_id = :range_id
limit  1;

-- name: free_ranges_between
-- Fresh ranges without a lease that may contain the named items.
select   id, lo, hi
from     ranges
where    job_id = :job_id and again = 0 and worker is null and lo <= :last and hi >= :first
order by lo;

-- name: hold_fresh_ranges
-- The ranges as they are now; locked, so that claims pass over them.
select   id, lo, hi
from     ranges
where    id in (@each(:ids, bigint)) and again = 0 and worker is null
order by id
@skip_locked;

-- name: hold_again_ranges
select   id
from     ranges
where    id in (@each(:ids, bigint)) and again = 1 and worker is null
order by id
@skip_locked;

-- name: unfinished_items
-- The named items that no settlement has touched.
select   i.seq
from     items i
where    i.job_id = :job_id and i.seq in (@each(:seqs, bigint))
         and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
order by i.seq;

-- name: waiting_items
-- The named items that wait to be tried again.
select   range_id, seq
from     outcomes
where    job_id = :job_id and seq in (@each(:seqs, bigint)) and range_id is not null
order by range_id, seq;

-- name: split_range
-- A part of a free range, as due and as old as the whole; with `settled`, it has outcomes.
insert into ranges (job_id, lo, hi, again, available_at, settled, expiries, lone_expiries,
                    item_bytes, waiting_for, since, owner_id, pipeline)
select job_id, :lo, :hi, again, available_at, settled + :settled, expiries, lone_expiries,
       item_bytes, waiting_for, since, owner_id, pipeline
from   ranges
where  id = :id
returning id;

-- name: skip_waiting
update outcomes
set    status = 'SKIPPED', range_id = null, error_message = cast(:reason as text),
       updated_at = @now
where  range_id = :range_id and seq in (@each(:seqs, bigint))
returning seq;

-- name: waiting_seqs
-- The items of an again range, all or those with one error code.
select   seq
from     outcomes
where    range_id = :range_id and (:any_code = 1 or error_code = :code)
order by seq;

-- name: next_free_range
-- The next range without a lease.
select   id, lo, hi, again, since
from     ranges
where    job_id = :job_id and worker is null and (since, id) > (:since, :id)
         and since <= :until and (:only_again = 0 or again = 1)
order by since, id
limit    1
@skip_locked;

-- name: first_unfinished_items
-- The first open items of a fresh range.
select   i.seq
from     items i
where    i.job_id = :job_id and i.seq >= :lo and i.seq <= :hi
         and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
order by i.seq
limit    :limit;
