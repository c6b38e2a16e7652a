-- Every query that reads the same on both databases. See queries.py for the @ words.

-- name: add_job
-- A new job, not started yet.
insert into jobs (pipeline, name, state, owner_id, mode, lane, reference, input_key, columns,
                  options, reading, max_items, concludes, trace, ip, file_id, standing, topic,
                  next_seq, created_at, updated_at)
values (:pipeline, :name, 'QUEUED', :owner_id, :mode, :lane, :reference, :input_key, :columns,
        :options, :reading, :max_items, :concludes, :trace, :ip, :file_id, :standing, :topic,
        1, @now, @now)
returning id;

-- name: keep_files
-- Marks drafts that came with the request as kept, with the job.
update files
set    draft = 0
where  id in (@each(:ids, bigint)) and draft = 1
returning id, name, size, sha256;

-- name: hold_files
-- Stored files of which a job can be created. On PostgreSQL they are locked until it is: a deletion
-- waits, and finds the job.
select id
from   files
where  id in (@each(:ids, bigint)) and draft = 0;

-- name: job_state
-- The job's state, locked until the transaction ends.
select state, max_items, discovered_at, standing
from   jobs
where  id = :job_id
@for_update;

-- name: set_job_state
-- One legal transition; the caller has locked the row and checked it with the model.
update jobs
set    state       = :state,
       error       = :error,
       started_at  = coalesce(started_at, case when :state = 'RUNNING' then @now end),
       finished_at = case when :state in ('DONE', 'FAILED', 'CANCELLED') then @now end,
       updated_at  = @now
where  id = :job_id;

-- name: set_job_cap
-- A new cap on the job's items.
update jobs
set    max_items = :max_items, updated_at = @now
where  id = :job_id;

-- name: tell_workers
select :job_ids;

-- name: accepted_count
-- How many items the job has accepted, for its cap.
select coalesce(cast(sum(accepted) as bigint), 0) as accepted
from   counters
where  job_id = :job_id;

-- name: add_range
-- A stretch of work: fresh from ingest, or again after a retry or a reprocess.
insert into ranges (job_id, lo, hi, again, available_at, settled, expiries, lone_expiries,
                    item_bytes, waiting_for, since, owner_id, pipeline)
select :job_id, :lo, :hi, :again, @after(:delay), :settled, :expiries, 0, :item_bytes,
       cast(:waiting_for as text), @now, owner_id, pipeline
from   jobs
where  id = :job_id
returning id;

-- fragment: range_columns
id, job_id, lo, hi, again, settled, expiries, lone_expiries, item_bytes

-- fragment: may_run
exists (select 1 from jobs j
                     where j.id = :job_id and j.state = 'RUNNING'
                           and not exists (select 1 from kill_switches k
                                           where k.scope in ('all', 'pipeline:' || j.pipeline)))

-- fragment: claimable
job_id = :job_id and available_at <= @now and worker is null

-- name: claimable_ranges
-- Free ranges that are due, of a job that may run.
select   @range_columns, case when since >= @after(-5.0) then 1 else 0 end as recent
from     ranges
where    @claimable and @may_run
order by available_at, id
limit    :limit
@skip_locked;

-- name: recent_ranges
-- The same, for ranges that came within the last seconds.
select   @range_columns, 1 as recent
from     ranges
where    since >= @after(-5.0) and @claimable and @may_run
order by since, id
limit    :limit
@skip_locked;

-- name: cut_range
-- What is left of a range after its head was split off.
update ranges
set    lo = :lo
where  id = :id;

-- name: add_leased_range
-- The head that was split off, already leased.
insert into ranges (job_id, lo, hi, again, available_at, token, settled, worker, expiries,
                    lone_expiries, item_bytes, since, owner_id, pipeline)
select job_id, :lo, :hi, again, available_at, :token, settled, :worker, expiries, lone_expiries,
       item_bytes, since, owner_id, pipeline
from   ranges
where  id = :id
returning id;

-- name: lease_ranges
-- Gives free ranges to a worker.
update ranges
set    token = :token, worker = :worker
where  id in (@each(:ids, bigint));

-- name: fresh_items
-- The items of a range that no settlement has touched: none of them has an outcome.
select   seq, input, 0, 0, 0
from     items
where    job_id = :job_id and seq between :lo and :hi
order by seq;

-- name: remaining_items
-- The items of a range that came back: those without an outcome.
select   i.seq, i.input, 0, 0, 0
from     items i
where    i.job_id = :job_id and i.seq between :lo and :hi
         and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
order by i.seq;

-- name: again_items
-- The items of an again range: exactly the outcomes that carry its id.
select   o.seq, i.input, o.tries, o.attempts, o.misses
from     outcomes o
         join items i on i.job_id = o.job_id and i.seq = o.seq
where    o.range_id = :range_id
order by o.seq;

-- name: remaining_seqs
-- The same as remaining_items, the numbers alone.
select   i.seq
from     items i
where    i.job_id = :job_id and i.seq between :lo and :hi
         and not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
order by i.seq;

-- name: again_seqs
-- The same as again_items, the numbers alone.
select   seq
from     outcomes
where    range_id = :range_id
order by seq;

-- name: release_range
-- Puts unstarted items back, uncharged.
update ranges
set    token = null, worker = null, available_at = @after(:delay),
       waiting_for = cast(:waiting_for as text)
where  id = :id and token = :token
returning id;

-- name: tokens_of_worker
-- The claims in a worker's name.
select token
from   ranges
where  worker = :worker
union
select token
from   streams
where  worker = :worker;

-- name: give_back_streams
update streams
set    token = null, worker = null
where  worker = :worker and token in (@each(:tokens, text));

-- name: give_back_claims
-- Frees claims whose answers were lost: none of their items was started.
update ranges
set    token = null, worker = null
where  worker = :worker and token in (@each(:tokens, text))
returning job_id;

-- name: settle_part
-- The fence: the lease is ours, this settlement is its next, and the job takes results.
update ranges
set    settled = settled + 1
where  id = :id and token = :token and settled = :settled
       and exists (select 1 from jobs j
                   where j.id = :job_id and j.state in ('RUNNING', 'PAUSED'))
returning id;

-- name: settled_number
-- Tells a resent settlement from a lost lease.
select settled
from   ranges
where  id = :id and token = :token;

-- name: count
-- Adds to the counters of a job: a row for each change, summed on reading. In rows of records that
-- arrived, everything but their number may be null, which counts as 0.
insert into counters (job_id, accepted, done, not_found, skipped, error, retried, throttled,
                      known, updated_at)
values (:job_id, :accepted, :done, :not_found, :skipped, :error, :retried, :throttled, :known,
        @now);

-- name: scattered_counters
-- Jobs whose counters consist of many rows.
select   job_id
from     counters
group by job_id
having   count(*) > :rows;

-- name: take_counters
-- All rows of a job's counters, to be folded into one. If two processes fold, the second gets what
-- the first did not see.
delete from counters
where  job_id = :job_id
returning accepted, coalesce(done, 0) as done, coalesce(not_found, 0) as not_found,
          coalesce(skipped, 0) as skipped, coalesce(error, 0) as error,
          coalesce(retried, 0) as retried, coalesce(throttled, 0) as throttled,
          coalesce(known, 0) as known, updated_at;

-- name: add_folded
insert into counters (job_id, accepted, done, not_found, skipped, error, retried, throttled,
                      known, updated_at)
values (:job_id, :accepted, :done, :not_found, :skipped, :error, :retried, :throttled, :known,
        :updated_at);

-- name: open_range_exists
-- Whether anything of the job is still to be worked.
select 1
from   ranges
where  job_id = :job_id
limit  1;

-- name: drop_ranges
-- Removes a cancelled job's ranges. Repeated until none is left: it waits for a process that holds
-- a range, and the range that this one put in its place is visible only to the next statement.
delete from ranges
where  job_id = :job_id;

-- name: drop_range
delete from ranges
where  id = :id;

-- name: free_range
-- The range of a lost worker: free again, with one expiry more.
update ranges
set    token = null, worker = null, expiries = :expiries, lone_expiries = :lone_expiries
where  id = :id;

-- name: leases_of_worker
-- Frees what a lost worker held. What a transaction of it still locks is left for the next look:
-- the worker may be frozen within it.
select @range_columns
from   ranges
where  worker = :worker
limit  1000
@skip_locked;

-- name: names_of_the_gone
-- Names that hold anything and belong to no live worker.
select distinct holder
from   (select worker as holder from ranges where worker is not null
        union all
        select worker from streams where worker is not null
        union all
        select worker from operations where worker is not null
        union all
        select worker from exports where worker is not null
        union all
        select token from adapters where token is not null
        union all
        select worker from taken_keys where worker <> '' and status is null and made is null
        union all
        select worker from gate_holds
        union all
        select holder from duties) held
where  not exists (select 1 from workers w
                   where  w.name = held.holder and w.stopped_at is null);

-- name: end_transactions_of
-- SQLite has one writer, so every process would notice.
select :worker;

-- name: free_operations_of
update operations
set    worker = null
where  worker = :worker;

-- name: free_exports_of
update exports
set    worker = null
where  worker = :worker;

-- name: free_adapters_of
update adapters
set    token = null
where  token = :worker;

-- name: move_to_range
-- Items of an again range that was cut in pieces.
update outcomes
set    range_id = :range_id
where  job_id = :job_id and seq in (@each(:seqs, bigint));

-- name: quarantine_item
-- An item that was alone when its worker died, three times.
insert into outcomes (job_id, seq, status, tries, attempts, misses, error_code, error_message,
                      seconds, updated_at)
values (:job_id, :seq, 'ERROR', :tries, 0, 0, 'CRASHED', :message, 0, @now)
on conflict (job_id, seq) do update
set status = 'ERROR', tries = outcomes.tries + excluded.tries, error_code = 'CRASHED',
    error_message = excluded.error_message, range_id = null, updated_at = excluded.updated_at;

-- name: add_dead_letter
insert into dead_letters (kind, job_id, seq, pipeline, code, message, state, created_at)
select 'item', :job_id, :seq, pipeline, :code, :message, 'OPEN', @now
from   jobs
where  id = :job_id;

-- name: act_on_dead_letter
-- A person's decision; only an open one can be decided.
update dead_letters
set    state = :state, acted_at = @now, actor = :actor
where  id = :id and state = 'OPEN'
returning job_id, seq, kind;

-- name: replay_dead_letters
-- Items that are opened again, in whatever way, are no longer set aside.
update dead_letters
set    state = 'REPLAYED', acted_at = @now, actor = :actor
where  job_id = :job_id and seq in (@each(:seqs, bigint)) and state = 'OPEN';

-- name: runnable_jobs
-- Jobs with work that is due, of the pipelines a worker has loaded.
select j.id, j.lane, j.owner_id
from   jobs j
where  j.state = 'RUNNING' and j.pipeline in (@each(:pipelines, text))
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline))
       and exists (select 1 from ranges r
                   where r.job_id = j.id and r.available_at <= @now and r.worker is null)
order by j.id;

-- name: finishable_jobs
-- Running jobs without open work, which a completion may have missed.
select j.id
from   jobs j
where  j.state = 'RUNNING' and j.standing = 0
       and not exists (select 1 from ranges r where r.job_id = j.id)
       and not exists (select 1 from streams s where s.job_id = j.id and s.state = 'RUNNING');

-- name: cancelled_jobs_with_ranges
-- Cancelled jobs whose ranges were not all removed yet.
select distinct j.id
from   jobs j
       join ranges r on r.job_id = j.id
where  j.state = 'CANCELLED';

-- name: job_controls
-- The jobs that a worker works on: their states and whether they may run.
select j.id, j.state, j.pipeline, j.lane,
       (select k.scope from kill_switches k
        where k.scope in ('all', 'pipeline:' || j.pipeline) limit 1) as kill_switch
from   jobs j
where  j.id in (@each(:job_ids, bigint));

-- name: hold_input
-- If two processes start a job on the same input, the second waits here and finds the first's job.
-- SQLite has one writer at a time, so there is nothing to hold.
select :input;

-- name: live_job_by_input
select   id
from     jobs
where    pipeline = :pipeline and input_key = :input_key and owner_id = :owner_id
         and state in ('QUEUED', 'RUNNING', 'PAUSED')
order by id
limit    1;

-- name: job_to_resume
select j.owner_id, j.state, j.standing,
       (select coalesce(cast(sum(c.accepted) as bigint), 0) from counters c
        where  c.job_id = j.id) as accepted
from   jobs j
where  j.id = :job_id;

-- name: hold_account
-- The account of an owner, unless it is being deleted. On PostgreSQL it is locked until what is
-- added for it is committed: a deletion waits, and finds that.
select name
from   users
where  name = :owner_id and deleting = 0;

-- name: hold_adapters
-- Adapters that take files for an owner, who need not have an account.
select id
from   adapters
where  owner_id = :owner_id;

-- name: count_open_jobs
select count(*)
from   jobs
where  owner_id = :owner_id and state in ('QUEUED', 'RUNNING', 'PAUSED');

-- name: count_open_items
select coalesce(sum(c.accepted - coalesce(c.done + c.not_found + c.skipped + c.error, 0)), 0)
from   jobs j join counters c on c.job_id = j.id
where  j.owner_id = :owner_id and j.state in ('QUEUED', 'RUNNING', 'PAUSED');

-- name: standing_job
-- The standing job of a pipeline and owner for a topic.
select id
from   jobs
where  pipeline = :pipeline and owner_id = :owner_id and topic = :topic and standing = 1
       and state not in ('CANCELLED', 'DELETING');

-- name: database_now
select @now;

-- name: add_stream
-- A source's position, for the first job that walks it.
insert into streams (pipeline, source, mode, job_id, state, generation, fingerprint, available_at,
                     pages_count, records_count, items_count, max_items, failures, updated_at)
values (:pipeline, :source, :mode, :job_id, 'RUNNING', 1, :fingerprint, @now,
        0, 0, 0, :max_items, 0, @now)
on conflict (pipeline, source, mode) do nothing
returning id;

-- name: lock_stream
select id
from   streams
where  pipeline = :pipeline and source = :source and mode = :mode
@for_update;

-- name: checkpoint_owner
-- The owner whose checkpoint a new job on this stream would discard; none if the pass was completed
-- or its job is cancelled for good.
select j.id as job_id, j.owner_id
from   streams s
       join jobs j on j.id = s.job_id
where  s.pipeline = :pipeline and s.source = :source and s.mode = :mode
       and s.state <> 'COMPLETE' and j.state not in ('CANCELLED', 'DELETING');

-- name: take_over_stream
-- A new job on a source that was walked before opens a new generation, unless a live job needs
-- the stream to continue or to know how its discovery ended.
update streams
set    job_id = :job_id, state = 'RUNNING', generation = generation + 1, cursor = null,
       fingerprint = :fingerprint, token = null, worker = null, available_at = @now,
       pages_count = 0, records_count = 0, items_count = 0,
       max_items = :max_items, expected_count = null, failures = 0, error = null,
       waiting_for = null, updated_at = @now
where  pipeline = :pipeline and source = :source and mode = :mode
       and not exists (select 1 from jobs j
                       where j.id = streams.job_id and j.state in ('QUEUED', 'RUNNING', 'PAUSED')
                             and streams.state in ('RUNNING', 'FAILED'))
returning id;

-- name: leasable_stream
-- A stream with pages to fetch that no worker holds.
select   s.id
from     streams s
         join jobs j on j.id = s.job_id
where    s.job_id = :job_id and s.state = 'RUNNING' and s.available_at <= @now
         and s.worker is null
         and j.state = 'RUNNING'
         and not exists (select 1 from kill_switches k
                         where k.scope in ('all', 'pipeline:' || j.pipeline,
                                           'source:' || s.source))
order by s.updated_at, s.id
limit    1;

-- name: lease_stream
-- Compare and set: if two workers saw it free, one gets it.
update streams
set    token = :token, worker = :worker
where  id = :id and state = 'RUNNING' and worker is null
returning id, pipeline, source, mode, job_id, generation, cursor, fingerprint, pages_count,
          records_count, items_count, max_items, failures;

-- name: advance_stream
-- The fence of ingest: the cursor moves with the rows, only for the lease's holder, only once.
update streams
set    cursor = :cursor, pages_count = pages_count + 1,
       records_count = records_count + :records, items_count = items_count + :items,
       state = :state, error = cast(:error as text), failures = 0, waiting_for = null,
       expected_count = coalesce(cast(:expected_count as bigint), expected_count),
       full_completed_at = case when :state = 'COMPLETE'
                                     and exists (select 1 from jobs j
                                                 where j.id = streams.job_id and j.concludes = 0)
                                then @now else full_completed_at end,
       updated_at = @now
where  id = :id and token = :token and pages_count = :pages_count
returning id;

-- name: stream_pages_count
-- Tells a resent page from a lost lease.
select pages_count, state
from   streams
where  id = :id and token = :token;

-- name: add_stream_page
-- One page of a stream's history; a cursor that was seen before in this generation conflicts.
insert into stream_pages (stream_id, generation, cursor_hash, number, records_count, items_count,
                          at)
values (:stream_id, :generation, :cursor_hash, :number, :records, :items, @now)
on conflict (stream_id, generation, cursor_hash) do nothing
returning number;

-- name: prune_stream_pages
-- Keeps the latest pages of this pass, and those whose number is a power of two: whatever the length
-- of a loop of cursors, one of these is in it and comes again.
delete from stream_pages
where  stream_id = :stream_id
       and (generation < :generation
            or number <= :before and (number & (number - 1)) <> 0);

-- name: release_stream
-- The slice ended; the stream continues later.
update streams
set    token = null, worker = null, available_at = @after(:delay),
       failures = :failures, error = cast(:error as text),
       waiting_for = cast(:waiting_for as text), updated_at = @now
where  id = :id and token = :token;

-- name: fail_stream
update streams
set    state = 'FAILED', token = null, worker = null, error = :error,
       waiting_for = null, updated_at = @now
where  id = :id and token = :token;

-- name: reopen_streams
-- Streams that failed or stopped at a cap continue from their cursors.
update streams
set    state = 'RUNNING', failures = 0, error = null, waiting_for = null, available_at = @now,
       token = null, worker = null,
       max_items = coalesce(cast(:max_items as bigint), max_items), updated_at = @now
where  job_id = :job_id and state in ('FAILED', 'CAPPED')
returning id;

-- name: stream_ends
-- The state of a job's discovery.
select state, error
from   streams
where  job_id = :job_id;

-- name: discover_job
-- Discovery's end, noted in the transaction of its last page.
update jobs
set    discovered_at = @now, updated_at = @now
where  id = :job_id
       and not exists (select 1 from streams s where s.job_id = :job_id and s.state = 'RUNNING');

-- name: undiscover_job
update jobs
set    discovered_at = null, updated_at = @now
where  id = :job_id;

-- name: job_cap
-- Whether the job has a cap, to choose the lock that its ingest needs; and whether the stream has to
-- stop after this page.
select max_items,
       case when state <> 'RUNNING'
                 or exists (select 1 from kill_switches k
                            where k.scope in ('all', 'pipeline:' || jobs.pipeline,
                                              'source:' || cast(:source as text)))
            then 1 else 0 end as held_back
from   jobs
where  id = :job_id;

-- name: share_job
-- The job's state for ingest. On PostgreSQL it is held until the page is committed, so that a
-- cancel waits for the page and then removes its range too.
select state
from   jobs
where  id = :job_id;

-- name: hold_job
-- Keeps others from changing the job, though not from adding pages to it.
select id
from   jobs
where  id = :job_id;

-- name: discovering_jobs
-- Jobs with a stream to walk. A file that is not in the file store is read by the command that was
-- given it.
select distinct j.id, j.lane, j.owner_id
from   jobs j
       join streams s on s.job_id = j.id
where  j.state = 'RUNNING'
       and (j.reference is null and j.pipeline in (@each(:discovering, text))
            or j.file_id is not null and j.pipeline in (@each(:reading, text)))
       and s.state = 'RUNNING' and s.available_at <= @now
       and s.worker is null
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline, 'source:' || s.source));

-- name: switches_over_job
-- Of the kill switches, those that cover a pipeline or one of the sources.
select scope, reason
from   kill_switches
where  scope in ('all', 'pipeline:' || cast(:pipeline as text)) or scope in (@each(:sources, text));

-- name: set_kill_switch
insert into kill_switches (scope, actor, reason, since)
values (:scope, :actor, :reason, @now)
on conflict (scope) do nothing
returning scope;

-- name: clear_kill_switch
delete from kill_switches
where  scope = :scope
returning scope;

-- name: add_worker
-- Adds a worker; if the answer was lost and it is sent again, it is a sign of life.
insert into workers (name, host, machine, pid, pipelines, started_at, seen_at, lost_after_seconds)
values (:name, :host, :machine, :pid, :pipelines, @now, @now, :lost_after_seconds)
on conflict (name) do update
set seen_at = excluded.seen_at, stopped_at = null;

-- name: see_worker
-- Notes a sign of life; a worker that was taken for lost is alive again.
update workers
set    seen_at = @now, lost_after_seconds = :lost_after_seconds, stopped_at = null
where  name = :name
returning name;

-- fragment: is_silent
-- Whether it was not seen for too long, or was last seen before the database's clock was set back.
(seen_at <= @after(-1.0 * lost_after_seconds) or seen_at > @after(lost_after_seconds))

-- name: silent_workers
-- Workers that count as lost, except the one that looks.
select   name
from     workers
where    stopped_at is null and name <> :observer and @is_silent
order by name;

-- name: lose_worker
-- Compare and set: if two processes see it lost, one frees what it held. A worker whose process is
-- known to be gone need not have been silent for long.
update workers
set    stopped_at = @now
where  name = :name and stopped_at is null and (:gone = 1 or @is_silent)
returning name;

-- name: stop_worker
update workers
set    stopped_at = @now
where  name = :name;

-- name: forget_workers
-- Workers that stopped, or were not seen for a day.
delete from workers
where  stopped_at <= @after(-86400) or seen_at <= @after(-86400);

-- name: add_decision
insert into decisions (job_id, worker, what, was, became, why, at)
values (:job_id, :worker, :what, :was, :became, :why, @now);

-- name: add_audit
insert into audit (actor, action, job_id, subject, detail, at)
values (:actor, :action, cast(:job_id as bigint), :subject, :detail, @now);

-- name: drop_streams_of_worker
-- Frees a dead worker's streams at once; as with ranges, what a transaction of it still locks is
-- left for the next look.
update streams
set    token = null, worker = null
where  id in (select id from streams where worker = :worker @skip_locked)
returning job_id;
