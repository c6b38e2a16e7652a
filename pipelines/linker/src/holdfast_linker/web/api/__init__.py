"""What the pages of linker do, for programs: one router file per noun."""
