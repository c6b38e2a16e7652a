-- The queries of weather that differ on SQLite.

-- name: weather_add_readings
-- Row by row; a later reading of a station replaces the earlier one.
insert into weather_readings (station, degrees)
values (?, ?)
on conflict (station) do update set degrees = excluded.degrees, read_at = excluded.read_at
returning station;
