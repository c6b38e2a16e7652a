"""Items and messages that were set aside."""
