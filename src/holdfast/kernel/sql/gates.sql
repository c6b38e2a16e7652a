-- Gates: their limits, places in flight, budgets, and what passed.

-- name: declare_gate
-- The gate's limits as its pipeline declares them.
insert into gates (name, spacing, jitter, concurrency, requests, units, period, next_at,
                   updated_at)
values (:name, :spacing, :jitter, :concurrency, :requests, :units, :period, @now, @now)
on conflict (name) do update
set spacing = excluded.spacing, jitter = excluded.jitter, concurrency = excluded.concurrency,
    requests = excluded.requests, units = excluded.units, period = excluded.period,
    updated_at = excluded.updated_at;

-- name: default_gate
-- Creates a gate that does not exist yet, with the limits of the settings unless others are given.
insert into gates (name, spacing, jitter, concurrency, requests, units, period, next_at,
                   updated_at)
values (:name, :spacing, :jitter, :concurrency, :requests, :units, :period, @now, @now)
on conflict (name) do nothing;

-- name: slow_gate
-- A host's Crawl-delay raises the spacing and never lowers it.
update gates
set    spacing = :spacing, updated_at = @now
where  name = :name and spacing < :spacing;

-- name: gate
-- The gate, locked, with the database's time and the kill switch that covers it.
select g.spacing, g.jitter, g.concurrency, g.next_at, g.closed_until, g.reason, g.requests, g.units,
       g.period, g.share, g.requests_left, g.units_left, g.filled_at, g.throttled_at, @now as now,
       (select k.scope from kill_switches k
        where k.scope in ('all', 'source:' || g.name) limit 1) as kill_switch
from   gates g
where  g.name = :name
@for_update;

-- name: closing_of_gate
select @seconds_until(closed_until) as seconds, reason
from   gates
where  name = :name and closed_until > @now;

-- name: reserve_gate
-- Start times up to then are reserved.
update gates
set    next_at = @after(:seconds)
where  name = :name;

-- name: spend_budget
-- What the budget has left, and what it may be now.
update gates
set    share = :share, requests_left = :requests_left, units_left = :units_left, filled_at = @now
where  name = :name;

-- name: learn_budget
-- The same after a throttle.
update gates
set    share = :share, requests_left = :requests_left, units_left = :units_left, filled_at = @now,
       throttled_at = @now
where  name = :name;

-- name: held_slots
-- Slots that other workers hold, the weight of those workers' work, and of the most urgent work
-- that waits for a slot.
select coalesce(cast(sum(slots) as bigint), 0), coalesce(cast(sum(weight) as bigint), 0),
       coalesce(max(case when slots = 0 then weight end), 0)
from   gate_holds
where  gate = :gate and worker <> :worker;

-- name: hold_slots
insert into gate_holds (gate, worker, slots, weight, most)
values (:gate, :worker, :slots, :weight, cast(:most as integer))
on conflict (gate, worker) do update
set slots = excluded.slots, weight = excluded.weight,
    most = coalesce(excluded.most, gate_holds.most);

-- name: leave_gate
-- A worker that needs no place.
delete from gate_holds
where  gate = :gate and worker = :worker;

-- name: drop_slots
-- A worker that stops returns its slots.
delete from gate_holds
where  worker = :worker;

-- name: close_gate
-- No request passes before then; a later end wins.
update gates
set    closed_until = case when closed_until is null or closed_until < @after(:seconds)
                           then @after(:seconds) else closed_until end,
       reason = :reason, updated_at = @now
where  name = :name;

-- name: order_gate
-- Set by a person: closed for that long from now, or open.
update gates
set    closed_until = case when :seconds > 0 then @after(:seconds) end,
       reason = cast(:reason as text), updated_at = @now
where  name = :name
returning name;

-- name: count_passes
-- Adds to what passed a gate in this minute.
insert into gate_minutes (gate, minute, passed, units, waits, wait_seconds, throttles, failures)
values (:gate, :minute, :passed, :units, :waits, :wait_seconds, :throttles, :failures)
on conflict (gate, minute) do update
set passed       = gate_minutes.passed + excluded.passed,
    units        = gate_minutes.units + excluded.units,
    waits        = gate_minutes.waits + excluded.waits,
    wait_seconds = gate_minutes.wait_seconds + excluded.wait_seconds,
    throttles    = gate_minutes.throttles + excluded.throttles,
    failures     = gate_minutes.failures + excluded.failures;

-- name: count_use
-- Adds to what a job sent through a gate; nothing is added for a job that is gone.
insert into gate_uses
       (job_id, gate, passed, waits, wait_seconds, throttles, failures, first_at, last_at)
select j.id, cast(:gate as text), :passed, :waits, :wait_seconds, :throttles, :failures,
       @now, @now
from   jobs j
where  j.id = :job_id and j.state <> 'DELETING'
on conflict (job_id, gate) do update
set passed       = gate_uses.passed + excluded.passed,
    waits        = gate_uses.waits + excluded.waits,
    wait_seconds = gate_uses.wait_seconds + excluded.wait_seconds,
    throttles    = gate_uses.throttles + excluded.throttles,
    failures     = gate_uses.failures + excluded.failures,
    last_at      = excluded.last_at;

-- name: note_decision
-- A decision about a gate, for a job that used it.
insert into decisions (job_id, worker, what, was, became, why, at)
select j.id, cast(:worker as text), cast(:what as text), :was, :became, cast(:why as text), @now
from   jobs j
where  j.id = :job_id and j.state <> 'DELETING';

-- name: uses_of_job
-- The busiest gates of a job, with their limits.
select   u.gate, u.passed, u.waits, u.wait_seconds, u.throttles, u.failures, u.first_at,
         u.last_at, g.concurrency, g.spacing, g.closed_until, g.reason,
         case when g.closed_until > @now then 1 else 0 end as closed,
         (select cast(sum(h.most) as bigint) from gate_holds h
          where h.gate = u.gate) as most
from     gate_uses u left join gates g on g.name = u.gate
where    u.job_id = :job_id
order by u.passed desc, u.gate
limit    :limit;

-- name: forget_passes
delete from gate_minutes
where  minute < :minute;

-- name: gates
-- Every gate with its budget, what workers have and may have in flight, and what passed recently.
select   g.name, g.spacing, g.jitter, g.concurrency, g.next_at, g.closed_until, g.reason,
         case when g.closed_until > @now then 1 else 0 end as closed, g.requests, g.units, g.period,
         g.share, g.requests_left, g.units_left, g.filled_at, g.throttled_at, @now as now,
         (select cast(sum(h.slots) as bigint) from gate_holds h
          where h.gate = g.name) as held,
         (select cast(sum(h.most) as bigint) from gate_holds h
          where h.gate = g.name) as most,
         coalesce(p.passed, 0) as passed, coalesce(p.passed_units, 0) as passed_units,
         coalesce(p.waits, 0) as waits, coalesce(p.wait_seconds, 0) as wait_seconds,
         coalesce(p.throttles, 0) as throttles, coalesce(p.failures, 0) as failures
from     gates g
         left join (select   gate, cast(sum(passed) as bigint) as passed,
                             sum(units) as passed_units, cast(sum(waits) as bigint) as waits,
                             sum(wait_seconds) as wait_seconds,
                             cast(sum(throttles) as bigint) as throttles,
                             cast(sum(failures) as bigint) as failures
                    from     gate_minutes
                    where    minute >= :since
                    group by gate) p on p.gate = g.name
order by g.name;
