"""Matches ten thousand entries with a Wikidata on the same machine that throttles."""
