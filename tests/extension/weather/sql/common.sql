-- The queries of weather that read the same on both databases.

-- name: weather_readings
-- The readings, by station.
select   station, degrees
from     weather_readings
order by station;
