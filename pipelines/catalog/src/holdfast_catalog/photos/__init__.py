"""Photographs: what can be read on one, in a child process with limited memory."""

#: The error of the child process if it has too little memory for an image.
NO_MEMORY = "NO_MEMORY"
