"""Jobs that start at set times."""
