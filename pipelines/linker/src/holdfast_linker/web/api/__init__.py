"""Routes for programs that do what the pages of linker do: one router file per noun."""
