-- The queries of tides.

-- name: tides_heights
select   harbour, metres
from     tides_heights
order by harbour;

-- name: tides_add_heights
insert into tides_heights (harbour, metres)
select k.harbour, k.metres
from   @rows(harbour text, metres double precision) k
where  true
on conflict (harbour) do update set metres = excluded.metres
returning harbour;
