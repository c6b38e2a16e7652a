"""Measures Holdfast beside raw SQL floors and its peers, all in one run on one machine."""
