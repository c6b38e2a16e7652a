"""Kill switches and flags."""
