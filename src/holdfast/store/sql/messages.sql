-- Messages: outbox, turns, dead letters of messages, duties.

-- name: announce
-- A slice of a job is wanted; the relay creates its message. The rows of an upload are ingested
-- by the process that received the file, not by a worker.
insert into outbox (message_id, job_id, kind, trace, available_at, failures, created_at)
select @uuid, id, :kind, trace, @after(:delay), 0, @now
from   jobs
where  id = :job_id and (:kind <> 'discover' or lane <> 'UPLOAD');

-- name: add_message
-- A message as it goes on the wire.
insert into outbox (message_id, job_id, kind, queue, payload, available_at, failures, created_at)
values (:message_id, :job_id, 'message', :queue, :payload, @after(:delay), 0, @now);

-- name: send_message
-- A message for an exchange of others, in order with the other such messages.
insert into outbox (message_id, job_id, kind, exchange, routing_key, headers, payload, available_at,
                    failures, created_at)
values (coalesce(cast(:message_id as text), @uuid), 0, 'message', :exchange, :routing_key, :headers,
        :payload, @now, 0, @now)
returning message_id;

-- name: lock_due_jobs
-- The jobs whose due messages this relay takes now; one lock for each keeps their order.
select distinct job_id
from   (select job_id from outbox where available_at <= @now order by available_at limit :limit) d;

-- name: due_messages
-- Read after the lock: what another relay sent before is gone.
select   o.id, o.message_id, o.job_id, o.kind, o.queue, o.exchange, o.routing_key, o.headers,
         o.payload, o.trace, j.lane, o.failures, o.created_at
from     outbox o
         left join jobs j on j.id = o.job_id
where    o.job_id in (@each(:job_ids, bigint)) and o.available_at <= @now
order by o.job_id, o.id
limit    :limit;

-- name: await_relay
-- SQLite has one writer at a time: the next one waits by itself.
select :job_id;

-- name: open_turn
-- Of the messages for one kind of slice of a job, only one is out at a time.
insert into turns (job_id, kind, message_id, sent_at, resent)
values (:job_id, :kind, :message_id, @now, 0)
on conflict (job_id, kind) do update
set message_id = excluded.message_id, sent_at = excluded.sent_at
where turns.message_id is null
returning message_id;

-- name: close_turn
-- The message was taken, or never left.
update turns
set    message_id = null, resent = 0
where  job_id = :job_id and kind = :kind and message_id = :message_id;

-- name: turn_is_out
select 1
from   turns
where  job_id = :job_id and kind = :kind and message_id is not null;

-- name: drop_messages
delete from outbox
where  id in (@each(:ids, bigint));

-- name: delay_message
-- The broker did not take it; it is tried again later.
update outbox
set    available_at = @after(:delay), failures = failures + 1, error = :error
where  id = :id;

-- name: job_of_turn
-- What a worker has to know before it follows a message.
select j.state, j.pipeline, j.lane,
       (select k.scope from kill_switches k
        where k.scope in ('all', 'pipeline:' || j.pipeline) limit 1)
from   jobs j
where  j.id = :job_id;

-- name: claimable_span
-- How many items are free now, as far as it matters for inviting another worker.
select coalesce(sum(hi - lo + 1), 0)
from   (select hi, lo from ranges
        where job_id = :job_id and available_at <= @now
              and worker is null
        order by available_at, id limit 16) free;

-- name: free_streams
-- How many streams of a job could be walked now.
select count(*)
from   streams s
       join jobs j on j.id = s.job_id
where  s.job_id = :job_id and s.state = 'RUNNING' and s.available_at <= @now
       and s.worker is null and j.lane <> 'UPLOAD'
       and not exists (select 1 from kill_switches k where k.scope = 'source:' || s.source);

-- name: hasten_owner
-- Its owner may have another worker now: what was put off until then is sent at once.
update outbox
set    available_at = @now
where  kind = 'process' and available_at > @now
       and job_id in (select other.id
                      from   jobs j
                             join jobs other on other.owner_id = j.owner_id and other.id <> j.id
                      where  j.id = :job_id and other.state = 'RUNNING')
returning job_id;

-- name: next_range_due
-- In how many seconds something of a job that may run can be claimed.
select   @seconds_until(available_at)
from     ranges
where    job_id = :job_id and worker is null
         and exists (select 1 from jobs j
                     where j.id = :job_id and j.state = 'RUNNING'
                           and not exists (select 1 from kill_switches k
                                           where k.scope in ('all', 'pipeline:' || j.pipeline)))
order by available_at
limit    1;

-- name: announced_by
-- Whether a message for the slice will be sent within this many seconds.
select 1
from   outbox
where  job_id = :job_id and kind = :kind
       and (available_at <= @now or @seconds_until(available_at) <= :seconds)
limit  1;

-- name: next_stream_due
-- In how many seconds a stream of a job that may run can be walked on.
select min(@seconds_until(s.available_at))
from   streams s
       join jobs j on j.id = s.job_id
where  s.job_id = :job_id and s.state = 'RUNNING' and s.worker is null and j.state = 'RUNNING'
       and j.lane <> 'UPLOAD'
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline, 'source:' || s.source));

-- name: silent_jobs
-- Jobs of the pipelines that workers listen for, with items that can be claimed within this many
-- seconds and no message on its way by then; and in how many seconds they can.
select waiting.id, waiting.seconds
from   (select j.id,
               (select   @seconds_until(r.available_at)
                from     ranges r
                where    r.job_id = j.id and r.worker is null
                order by r.available_at
                limit    1) as seconds
        from   jobs j
        where  j.state = 'RUNNING' and j.pipeline in (@each(:pipelines, text))
               and not exists (select 1 from kill_switches k
                               where k.scope in ('all', 'pipeline:' || j.pipeline))
               and not exists (select 1 from turns t
                               where t.job_id = j.id and t.kind = 'process'
                                     and t.message_id is not null)) waiting
where  waiting.seconds <= :ahead
       and not exists (select 1 from outbox o
                       where o.job_id = waiting.id and o.kind = 'process'
                             and (o.available_at <= @now
                                  or @seconds_until(o.available_at) <= waiting.seconds + 0.1))
limit  1000;

-- name: silent_walks
-- The same for jobs with a stream to walk.
select distinct j.id
from   jobs j
       join streams s on s.job_id = j.id
where  j.state = 'RUNNING' and j.pipeline in (@each(:pipelines, text)) and j.lane <> 'UPLOAD'
       and s.state = 'RUNNING' and s.available_at <= @now
       and s.worker is null
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline, 'source:' || s.source))
       and not exists (select 1 from turns t
                       where t.job_id = j.id and t.kind = 'discover' and t.message_id is not null)
       and not exists (select 1 from outbox o
                       where o.job_id = j.id and o.kind = 'discover' and o.available_at <= @now)
limit  1000;

-- name: lost_turns
-- Messages that are out for longer than any should wait.
select job_id, kind, message_id, resent, @seconds_since(sent_at)
from   turns
where  message_id is not null and sent_at <= @after(:ago)
order by sent_at
limit  1000;

-- name: forget_turn
-- A message that is taken for lost; if it comes after all, it finds little to do.
update turns
set    message_id = null, resent = resent + 1
where  job_id = :job_id and kind = :kind and message_id = :message_id
returning job_id;

-- name: listened_pipelines
-- What the workers that hear messages have loaded.
select pipelines
from   workers
where  listens = 1 and stopped_at is null and seen_at > @after(:ago);

-- name: add_dead_message
insert into dead_letters (kind, job_id, pipeline, code, message, state, created_at, message_id,
                          payload, queue, history)
values ('message', cast(:job_id as bigint),
        coalesce((select pipeline from jobs where id = cast(:job_id as bigint)), ''),
        :code, :message, 'OPEN', @now, :message_id, :payload, :queue, :history);

-- name: dead_message
-- A dead letter of the same message, from an earlier death; locked. By its payload too: another
-- program may give all of its messages the same id.
select id, state, history
from   dead_letters
where  message_id = :message_id and kind = 'message' and payload = :payload
order by id desc
limit  1
@for_update;

-- name: reopen_dead_message
-- It died again after a replay: the first error stays, the history grows.
update dead_letters
set    state = 'OPEN', acted_at = null, actor = null, history = :history
where  id = :id;

-- name: replayable_message
select message_id, payload, queue, coalesce(job_id, 0)
from   dead_letters
where  id = :id and kind = 'message';

-- name: hold_duty
-- Of all that could do it, one does, as long as it is alive.
insert into duties (name, holder, acted_at)
values (:name, :holder, @now)
on conflict (name) do update
set holder = excluded.holder, acted_at = excluded.acted_at
where duties.holder = excluded.holder
      or not exists (select 1 from workers w
                     where  w.name = duties.holder and w.stopped_at is null)
returning name;

-- name: drop_duties
-- A process that stops makes room for the next.
delete from duties
where  holder = :holder;

-- name: duties
select name, holder, @seconds_since(acted_at)
from   duties;

-- name: outbox_reading
-- How many messages are due, and for how long the oldest.
select count(*), coalesce(max(@seconds_since(available_at)), 0), max(failures), max(error)
from   outbox
where  available_at <= @now;
