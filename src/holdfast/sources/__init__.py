"""Sources of records besides tables. They only read; a cursor is plain JSON."""
