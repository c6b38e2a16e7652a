"""Uploaded files and images, and what is read from them."""
