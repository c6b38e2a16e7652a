"""Changes of many items at once, as operations that people can watch."""
