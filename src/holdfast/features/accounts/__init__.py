"""Who may do what: accounts, tokens, second factors, quotas."""
