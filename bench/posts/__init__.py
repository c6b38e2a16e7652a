"""Posts: events of crawlers through to stored analytics."""
