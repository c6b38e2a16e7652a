"""Adapters: files that arrive in folders, on FTP servers and in buckets."""
