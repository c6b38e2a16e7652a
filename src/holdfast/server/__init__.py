"""The HTTP API: one router file for each noun."""
