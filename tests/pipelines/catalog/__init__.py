"""The catalog pipeline."""
