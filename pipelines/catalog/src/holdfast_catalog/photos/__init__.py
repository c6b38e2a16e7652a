"""Photographs: what can be read on one, in a child process with limited memory."""

#: What the child process answers if it has too little memory for an image.
NO_MEMORY = "NO_MEMORY"
