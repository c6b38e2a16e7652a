"""Sitemaps: `reader` turns bytes into entries, `frontier` decides which sitemap is read next."""
