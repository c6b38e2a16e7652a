"""Reading and writing tables: CSV, XLSX and JSON lines."""
