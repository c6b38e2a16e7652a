"""The tests, and the servers they start for themselves."""
