"""Linker: names and properties in, reviewed links to Wikidata or a Reconciliation service out."""
