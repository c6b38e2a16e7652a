"""Shared limits: what may be asked of a host or a service, over all processes."""
