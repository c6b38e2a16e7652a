"""Logs, metrics, traces and health: what operators watch."""
