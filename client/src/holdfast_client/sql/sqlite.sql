-- name: standing_jobs
-- The standing jobs of a pipeline for a topic: of one owner, or of any.
select id, cast(reading as text), owner_id
from   jobs
where  standing = 1 and state not in ('CANCELLED', 'DELETING') and pipeline = :pipeline
       and (:owner = '' or owner_id = :owner) and topic = :topic
limit  2;

-- name: take_sequence
-- A block of sequence numbers; a crash leaves a harmless gap.
update jobs
set    next_seq = next_seq + :count
where  id = :job_id
returning next_seq - :count as first_seq, null as seqs;

-- name: known_keys
-- The page's keys that exist already: their content and the status of their items.
select k.key, k.content_hash, k.job_id, k.seq, j.state, o.status
from   keys k
       left join jobs j on j.id = k.job_id
       left join outcomes o on o.job_id = k.job_id and o.seq = k.seq
where  k.scope = :scope and k.key in (select value from json_each(:keys));

-- name: add_keys
-- Of two jobs that meet the same new key, one gets it.
insert into keys (scope, key, content_hash, job_id, seq)
select :scope, value ->> 0, value ->> 1, :job_id, value ->> 2
from   json_each(:rows)
where  true
on conflict (scope, key) do nothing
returning key;

-- name: move_keys
-- A known key now names a newer item, unless it was moved since.
update keys
set    content_hash = v.hash, job_id = :job_id, seq = v.seq
from   (select value ->> 0 as key, value ->> 1 as hash, value ->> 2 as seq,
               value ->> 3 as was_job, value ->> 4 as was_seq
        from json_each(:rows)) v
where  keys.scope = :scope and keys.key = v.key
       and keys.job_id = v.was_job and keys.seq = v.was_seq
returning keys.key;

-- name: add_enqueued_items
insert into items (job_id, seq, key, input)
select :job_id, value ->> 0, value ->> 1, value ->> 2
from   json_each(:rows);

-- name: add_enqueued_range
insert into ranges (job_id, lo, hi, again, available_at, settled, expiries, lone_expiries,
                    item_bytes, since, owner_id, pipeline)
select :job_id, :lo, :hi, 0, coalesce(:run_at, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), 0, 0, 0,
       :item_bytes, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), owner_id, pipeline
from   jobs
where  id = :job_id;

-- name: count_added
-- Adds to the counters of a job: a row for each change, summed on reading.
insert into counters (job_id, accepted, done, not_found, skipped, error, retried, throttled,
                      known, updated_at)
values (:job_id, :accepted, 0, 0, 0, 0, 0, 0, :known, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));

-- name: notify_work
-- SQLite gives no notices: workers watch the file.
select :job_id;
