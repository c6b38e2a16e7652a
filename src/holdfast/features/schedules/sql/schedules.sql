-- Schedules: what is started when.

-- name: set_schedule
insert into schedules (name, reference, cron, zone, options, enabled, next_at)
values (:name, :reference, :cron, :zone, :options, 1, :next_at)
on conflict (name) do update
set reference = excluded.reference, cron = excluded.cron, zone = excluded.zone,
    options = excluded.options, enabled = 1, next_at = excluded.next_at, error = null;

-- name: schedule_was_set
-- Also true for one that was removed again.
select 1 as found
from   audit
where  action = 'schedule.set' and subject = :name
limit  1;

-- name: remove_schedule
delete from schedules
where  name = :name
returning name;

-- name: due_schedules
select name, reference, cron, zone, options, next_at, @now as now
from   schedules
where  enabled = 1 and next_at <= @now;

-- name: fire_schedule
-- Compare and set on next_at: if two sweepers try, one fires it.
update schedules
set    next_at = :next_at, last_at = @now
where  name = :name and next_at = :was
returning name;

-- name: note_schedule
-- The result of the last firing.
update schedules
set    last_job_id = coalesce(cast(:job_id as bigint), last_job_id), error = cast(:error as text)
where  name = :name;

-- name: schedules
select   name, reference, cron, zone, options, enabled, next_at, last_at, last_job_id, error
from     schedules
order by name;
