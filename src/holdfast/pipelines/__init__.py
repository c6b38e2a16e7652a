"""The built-in pipelines, a folder each; none imports another."""
