-- name: enqueue
-- All that one call adds, in one round trip.
select fitting_jobs, standing_job
from   enqueue_records_1(:pipeline, :owner, :topic, cast(cast(:inputs as text) as json),
                       cast(:total as bigint), cast(:item_bytes as bigint),
                       cast(cast(:run_at as text) as timestamptz));

-- name: standing_jobs
-- The standing jobs of a pipeline for a topic: of one owner, or of any.
select id, cast(reading as text), owner_id
from   jobs
where  standing = 1 and state not in ('CANCELLED', 'DELETING') and pipeline = :pipeline
       and (:owner = '' or owner_id = :owner) and topic = :topic
limit  2;

-- name: take_sequence
-- A block of sequence numbers; a crash leaves a harmless gap. To a standing job many add at once, who
-- would wait for each other at its row: it takes numbers from a sequence instead.
with moved as (
    update jobs
    set    next_seq = next_seq + :count
    where  id = :job_id and standing = 0
    returning next_seq - :count as first_seq
)
select first_seq, cast(null as bigint[]) as seqs
from   moved
union all
select null, (
           select array_agg(nextval(cast('standing_seqs' as regclass)))
           from   generate_series(cast(1 as bigint), cast(:count as bigint))
       )
from   jobs
where  id = :job_id and standing = 1;

-- name: known_keys
-- The page's keys that exist already: their content and the status of their items.
select k.key, k.content_hash, k.job_id, k.seq, j.state, o.status
from   keys k
       left join jobs j on j.id = k.job_id
       left join outcomes o on o.job_id = k.job_id and o.seq = k.seq
where  k.scope = :scope and k.key in (select unnest(cast(:keys as text[])));

-- name: add_keys
-- Of two jobs that meet the same new key, one gets it.
insert into keys (scope, key, content_hash, job_id, seq)
select :scope, value ->> 0, value ->> 1, :job_id, cast(value ->> 2 as bigint)
from   json_array_elements(cast(cast(:rows as text) as json))
on conflict (scope, key) do nothing
returning key;

-- name: move_keys
-- A known key now names a newer item, unless it was moved since.
update keys
set    content_hash = value ->> 1, job_id = :job_id, seq = cast(value ->> 2 as bigint)
from   json_array_elements(cast(cast(:rows as text) as json)) v(value)
where  keys.scope = :scope and keys.key = value ->> 0
       and keys.job_id = cast(value ->> 3 as bigint) and keys.seq = cast(value ->> 4 as bigint)
returning keys.key;

-- name: add_enqueued_items
-- Inputs are text in the rows: as JSON they could not be taken out if they hold a NUL.
insert into items (job_id, seq, key, input)
select :job_id, cast(value ->> 0 as bigint), value ->> 1, cast(value ->> 2 as json)
from   json_array_elements(cast(cast(:rows as text) as json));

-- name: add_enqueued_range
insert into ranges (job_id, lo, hi, again, available_at, settled, expiries, lone_expiries,
                    item_bytes, since, owner_id, pipeline)
select :job_id, cast(:lo as bigint), cast(:hi as bigint), 0,
       coalesce(cast(cast(:run_at as text) as timestamptz), (select clock_timestamp())), 0, 0, 0,
       cast(:item_bytes as bigint), (select clock_timestamp()), owner_id, pipeline
from   jobs
where  id = :job_id;

-- name: count_added
-- Adds to the counters of a job: a row for each change, summed on reading.
insert into counters (job_id, accepted, done, not_found, skipped, error, retried, throttled,
                      known, updated_at)
values (:job_id, :accepted, 0, 0, 0, 0, 0, 0, :known, (select clock_timestamp()));

-- name: notify_work
-- Wakes workers when this transaction commits.
select give_notice_1(:job_id);
