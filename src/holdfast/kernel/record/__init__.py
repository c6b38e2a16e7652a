"""The path of a record, from its source to its outcome."""
