"""One view function per page."""
