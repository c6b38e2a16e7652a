"""Decides how fast: controllers of batches, claims and concurrency, and when to retry."""
