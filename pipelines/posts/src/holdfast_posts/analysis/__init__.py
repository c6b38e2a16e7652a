"""Reads the text and the numbers of a post. Pure: no input, no output, no clock."""
