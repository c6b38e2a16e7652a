"""Records that come one by one: from applications, requests, commands, messages."""
