"""Prices a long list from the local catalogue."""
