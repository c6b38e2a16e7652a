"""Discovery and fetching of regulations, beside bare loops and Scrapy."""
