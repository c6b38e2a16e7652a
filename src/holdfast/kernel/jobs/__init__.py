"""Jobs: what starts, stops, changes and removes them."""
