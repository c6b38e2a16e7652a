"""The pages of linker: one file per noun."""
