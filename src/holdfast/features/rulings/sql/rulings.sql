-- What people decided about items.

-- name: item_to_rule
select cast(i.input as text) as input, o.status, cast(o.result as text) as result
from   items i
       left join outcomes o on o.job_id = i.job_id and o.seq = i.seq
where  i.job_id = :job_id and i.seq = :seq;

-- name: rulings_of_item
-- All decisions about one item, the oldest first.
select   version, kind, value, changes, reason, author, at
from     rulings
where    job_id = :job_id and seq = :seq
order by version;

-- name: add_ruling
-- Returns nothing if another decision was first.
insert into rulings (job_id, seq, version, kind, value, changes, reason, author, at)
values (:job_id, :seq, :version, :kind, :value, :changes, :reason, :author, @now)
on conflict (job_id, seq, version) do nothing
returning version;

-- name: job_has_rulings
select 1
from   rulings
where  job_id = :job_id
limit  1;

-- name: rulings_of_items
-- The decisions that count about these items.
select r.seq, r.version, r.kind, r.value, r.changes, r.reason, r.author, r.at
from   rulings r
where  r.job_id = :job_id and r.seq in (@each(:seqs, bigint)) and r.kind <> 'revoke'
       and not exists (select 1 from rulings n
                       where  n.job_id = r.job_id and n.seq = r.seq and n.version > r.version);

-- name: page_of_ruled
-- A page of the items about which a decision counts, in their order.
select   i.seq, substr(cast(i.input as text), 1, :input_chars), o.status,
         case when length(cast(o.result as text)) <= :result_chars then o.result end,
         o.error_code, o.error_message, o.tries, o.attempts, o.updated_at, o.range_id
from     rulings r
         join items i on i.job_id = r.job_id and i.seq = r.seq
         left join outcomes o on o.job_id = i.job_id and o.seq = i.seq
where    r.job_id = :job_id and r.seq > :after and r.kind in (@each(:kinds, text))
         and not exists (select 1 from rulings n
                         where  n.job_id = r.job_id and n.seq = r.seq and n.version > r.version)
order by i.seq
limit    :limit;

-- name: count_ruled
select count(*)
from   rulings r
where  r.job_id = :job_id and r.kind in (@each(:kinds, text))
       and not exists (select 1 from rulings n
                       where  n.job_id = r.job_id and n.seq = r.seq and n.version > r.version);
