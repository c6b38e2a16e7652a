"""Photographs: what can be read on one, in a child process with limited memory."""
