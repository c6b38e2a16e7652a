"""Where records come from. Sources only read; a cursor is plain JSON."""
