-- Messages: outbox, nudges, dead letters of messages, duties.

-- name: add_message
-- A message for a queue, as it goes on the wire.
insert into outbox (message_id, queue, payload, available_at, failures, created_at)
values (:message_id, :queue, :payload, @after(:delay), 0, @now);

-- name: send_message
-- A message for another program's exchange, in order with the other such messages.
insert into outbox (message_id, exchange, routing_key, headers, payload, available_at, failures,
                    created_at)
values (coalesce(cast(:message_id as text), @uuid), :exchange, :routing_key, :headers, :payload,
        @now, 0, @now)
returning message_id;

-- name: hold_outbox
-- SQLite has one writer at a time: another relay waits.
select 1;

-- name: due_messages
-- Read after the lock: what another relay sent before is gone.
select   id, message_id, queue, exchange, routing_key, headers, payload, failures
from     outbox
where    available_at <= @now
order by id
limit    :limit;

-- name: drop_messages
delete from outbox
where  id in (@each(:ids, bigint));

-- name: delay_message
-- The broker did not take it; it is tried again later.
update outbox
set    available_at = @after(:delay), failures = failures + 1, error = :error
where  id = :id;

-- fragment: has_work
j.state = 'RUNNING'
       and not exists (select 1 from kill_switches k
                       where k.scope in ('all', 'pipeline:' || j.pipeline))
       and (exists (select 1 from ranges r where r.job_id = j.id and r.available_at <= @now)
            or ((j.reference is null or j.file_id is not null)
                and exists (select 1 from streams s
                            where s.job_id = j.id and s.state = 'RUNNING' and s.available_at <= @now
                                  and not exists (select 1 from kill_switches k
                                                  where k.scope = 'source:' || s.source))))

-- name: add_nudges
-- Adds a nudge for each job that has work, held or not, and no nudge.
insert into nudges (job_id, pipeline, message_id, seen_at)
select j.id, j.pipeline, @uuid, @now
from   jobs j
where  @has_work
       and (:backfill = 1 or j.lane <> 'BACKFILL')
       and not exists (select 1 from nudges n where n.job_id = j.id)
limit  1000
on conflict (job_id) do nothing
returning job_id, pipeline, message_id;

-- name: see_nudges
-- Nudges that a worker holds, and whose jobs still have work.
update nudges
set    seen_at = @now
where  job_id in (@each(:job_ids, bigint)) and message_id in (@each(:message_ids, text))
       and exists (select 1 from jobs j where j.id = nudges.job_id and @has_work)
returning message_id;

-- name: drop_nudges
delete from nudges
where  job_id in (@each(:job_ids, bigint)) and message_id in (@each(:message_ids, text));

-- name: unseen_nudges
-- Nudges that no worker has held for some time: they wait in their queue, or are lost.
select job_id, pipeline, message_id
from   nudges
where  seen_at <= @after(:ago);

-- name: renew_nudges
-- Another message in place of one that is lost, if its job still has work.
update nudges
set    message_id = @uuid, seen_at = @now
where  job_id in (@each(:job_ids, bigint)) and message_id in (@each(:message_ids, text))
       and exists (select 1 from jobs j where j.id = nudges.job_id and @has_work)
returning job_id, pipeline, message_id;

-- name: count_nudges
select   pipeline, count(*)
from     nudges
group by pipeline;

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
select message_id, payload, queue
from   dead_letters
where  id = :id and kind = 'message';

-- name: hold_duty
-- Of all processes that could do it, one does, as long as it is alive.
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
