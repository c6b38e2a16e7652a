"""Decisions of people about items that wait for one."""
