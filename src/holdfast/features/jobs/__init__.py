"""Jobs as people see, start and change them."""
