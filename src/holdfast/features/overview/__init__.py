"""The first page: what runs, what waits, what failed."""
