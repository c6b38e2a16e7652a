"""Reads and writes tables: CSV, XLSX and JSON lines."""
