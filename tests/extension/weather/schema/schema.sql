-- The latest reading of each station.
create table weather_readings (
    station bigint primary key,
    degrees bigint not null,
    read_at @instant not null default @now
);
create index weather_readings_by_degrees on weather_readings (degrees);
