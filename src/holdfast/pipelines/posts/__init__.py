"""Posts: crawled posts of social media, from events of crawlers and batches in an object store."""
