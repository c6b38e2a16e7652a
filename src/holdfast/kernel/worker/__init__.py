"""The life of a worker process, what it does for items, and upkeep."""
