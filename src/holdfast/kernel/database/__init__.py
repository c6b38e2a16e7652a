"""The only code that talks to a database: drivers, named queries, transactions, schema."""
