"""Routes for programs that do what the pages of meetings do: one router file per noun."""
