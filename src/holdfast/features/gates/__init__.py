"""Gates as people see and change them."""
