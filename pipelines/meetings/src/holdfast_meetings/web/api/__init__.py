"""What the pages of meetings do, for programs: one router file per noun."""
