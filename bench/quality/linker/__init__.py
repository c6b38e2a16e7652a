"""How good the linking is, on entries whose right item is known."""
