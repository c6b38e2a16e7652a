"""A row for every table of the toy extension."""

ROWS = {"weather_readings": "(station, degrees) values (1, 21)"}
