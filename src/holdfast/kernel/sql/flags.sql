-- Flags.

-- name: flags
select   name, value, actor, at
from     flags
order by name;

-- name: set_flag
insert into flags (name, value, actor, at)
values (:name, :value, :actor, @now)
on conflict (name) do update
set value = excluded.value, actor = excluded.actor, at = excluded.at;

-- name: flag_value
select value
from   flags
where  name = :name;
