"""Providers of offers: a contract and its implementations."""
