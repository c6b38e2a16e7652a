"""Items as lists, a grid and pages; searched, filtered, added."""
