"""The pages: one view function for each."""
