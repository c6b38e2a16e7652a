-- Feature flags.

-- name: flags
select   name, enabled, actor, at
from     flags
order by name;

-- name: set_flag
insert into flags (name, enabled, actor, at)
values (:name, :enabled, :actor, @now)
on conflict (name) do update
set enabled = excluded.enabled, actor = excluded.actor, at = excluded.at;
