-- Queries that PostgreSQL spells differently: batches are arrays, one for each column.

-- name: replace_outcomes
insert into outcomes (job_id, seq, status, tries, attempts, misses, normalized, result,
                      error_code, error_message, seconds, range_id, updated_at)
select *, @now
from   unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::int[], $6::int[],
              $7::json[], $8::json[], $9::text[], $10::text[], $11::real[], $12::bigint[])
on conflict (job_id, seq) do update
set status = excluded.status, tries = excluded.tries, attempts = excluded.attempts,
    misses = excluded.misses, normalized = excluded.normalized, result = excluded.result,
    error_code = excluded.error_code, error_message = excluded.error_message,
    seconds = excluded.seconds, range_id = excluded.range_id, updated_at = excluded.updated_at;

-- name: add_attempts
insert into attempts (job_id, seq, number, status, error_code, error_message, seconds, worker, at)
select *, @now
from   unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[],
              $7::real[], $8::text[])
on conflict (job_id, seq, number) do nothing;

-- name: hold_input
-- If two processes start a job on the same input, the second waits here and finds the first's job.
select pg_advisory_xact_lock(hashtextextended(:input, 0));

-- name: hold_account
-- The account of an owner, unless it is being deleted; locked until what is added for it is
-- committed: a deletion waits, and finds that.
select name
from   users
where  name = :owner_id and deleting = 0
for share;

-- name: hold_adapters
-- Adapters that take files for an owner, who need not have an account.
select id
from   adapters
where  owner_id = :owner_id
for share;

-- name: hold_files
-- Stored files of which a job can be created, locked until it is: a deletion waits, and finds the
-- job.
select id
from   files
where  id in (@each(:ids, bigint)) and draft = 0
for key share;

-- name: share_job
-- The job's state for ingest, held until the page is committed: a cancel waits for the page and
-- then removes its range too. The weakest lock that a cancel respects: sequence numbers are taken
-- and other pages committed in between.
select state
from   jobs
where  id = :job_id
for key share;

-- name: hold_job
-- Keeps others from changing the job, though not from adding pages to it.
select id
from   jobs
where  id = :job_id
for no key update;

-- name: add_message
with added as (
    insert into outbox (message_id, queue, payload, available_at, failures, created_at)
    values (:message_id, :queue, :payload, @after(:delay), 0, @now)
    returning 1
)
select pg_notify('holdfast_outbox', '')
from   added
where  cast(:delay as double precision) <= 0;

-- name: send_message
-- A message for another program's exchange, in order with the other such messages.
with added as (
    insert into outbox (message_id, exchange, routing_key, headers, payload, available_at,
                        failures, created_at)
    values (coalesce(cast(:message_id as text), @uuid), :exchange, :routing_key, :headers, :payload,
            @now, 0, @now)
    returning message_id
)
select message_id, pg_notify('holdfast_outbox', '')
from   added;

-- name: hold_outbox
-- If there are several relays, one sends at a time, so that messages stay in order.
select 1
where  pg_try_advisory_xact_lock(hashtextextended('outbox', 0));

-- name: end_transactions_of
-- A transaction that holds ranges or streams of a lost worker and has waited for its client for
-- seconds: the worker is frozen in it, perhaps in the middle of a COPY, which no timeout of the
-- server ends. Its locks end with it, and the next look frees what it held.
select pg_terminate_backend(l.pid)
from   (select xmax from ranges where worker = :worker
        union
        select xmax from streams where worker = :worker) held (writer)
       join pg_locks l on l.locktype = 'transactionid' and l.transactionid = held.writer
                          and l.granted
       join pg_stat_activity a on a.pid = l.pid and a.wait_event = 'ClientRead'
                                  and a.state_change < clock_timestamp() - interval '5 seconds'
where  l.pid <> pg_backend_pid();

-- name: oldest_transaction
-- How many seconds any transaction has been open; those of other roles are seen only by a member of
-- pg_read_all_stats. Autovacuum delays no one.
select cast(extract(epoch from clock_timestamp() - min(xact_start)) as double precision)
from   pg_stat_activity
where  datname = current_database() and pid <> pg_backend_pid()
       and backend_type <> 'autovacuum worker';

-- name: tell_workers
-- The same for other work, always: there are few such commits per second.
select pg_notify('holdfast_work', cast(job_id as text))
from   unnest(cast(:job_ids as bigint[])) job_id;

-- name: claim_arrivals
-- A claim in one statement, of small ranges that came within the last seconds and that no worker
-- has touched; if there are none, whether others came. Losing it in a crash of the server is
-- harmless, so it does not wait for the disk.
with free as materialized (
    select id
    from   ranges
    where  job_id = :job_id and since >= @after(-5.0) and available_at <= @now
           and worker is null and again = 0 and settled = 0 and expiries = 0
           and hi - lo < :most_items and item_bytes <= :most_bytes
           and @may_run
    order by since, id
    limit  :limit
    for update skip locked
),
leased as (
    update ranges
    set    token = :token, worker = :worker
    from   free
    where  ranges.id = free.id
    returning ranges.id, ranges.lo, ranges.hi
)
select l.id, l.lo, l.hi,
       l.id is null
       and exists (select 1
                   from   ranges
                   where  job_id = :job_id and since >= @after(-5.0) and available_at <= @now
                          and worker is null
                          and (again = 1 or settled > 0 or expiries > 0
                               or hi - lo >= :most_items or item_bytes > :most_bytes)),
       i.seq, i.input, 0, 0, 0
from   set_config('synchronous_commit', 'off', true) relaxed
       left join leased l on true
       left join lateral (select   seq, input
                          from     items
                          where    job_id = :job_id and seq between l.lo and l.hi
                          offset 0) i on true;

-- name: settle_rest
-- The same fence for the last settlements of leases, all of one job, which end their ranges. It
-- goes in the order of their ids: two transactions that end some of the same ranges must not wait
-- for each other. The job is looked up once: joined, it led the planner to read all of its ranges.
delete from ranges
using  (select *
        from   unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])
               f (job_id, id, token, settled)
        order by id) f
where  ranges.id = f.id and ranges.token = f.token and ranges.settled = f.settled
       and exists (select 1 from jobs j
                   where j.id = ($1::bigint[])[1] and j.state in ('RUNNING', 'PAUSED'))
returning ranges.id;

-- name: fresh_items_of
-- The same as fresh_items, for several stretches; offset 0 keeps the planner from reading the whole
-- job.
select i.seq, i.input, 0, 0, 0
from   json_array_elements(cast(:spans as json)) s
       cross join lateral (select   seq, input
                           from     items
                           where    job_id = :job_id
                                    and seq between cast(s.value ->> 0 as bigint)
                                                and cast(s.value ->> 1 as bigint)
                           offset 0) i;
