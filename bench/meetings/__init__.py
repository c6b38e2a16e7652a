"""Backfills a very large municipality, and fetches it in four ways."""
