-- The warmest stations are found by an index.
create index weather_readings_by_degrees on weather_readings (degrees);

-- down
drop index weather_readings_by_degrees;
