-- The queries of weather that differ on PostgreSQL.

-- name: weather_add_readings
-- All rows at once; a later reading of a station replaces the earlier one.
insert into weather_readings (station, degrees)
select k.station, k.degrees
from   @rows(station bigint, degrees bigint) k
on conflict (station) do update set degrees = excluded.degrees, read_at = excluded.read_at
returning station;
