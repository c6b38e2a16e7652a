"""The client alone, without Holdfast."""
