"""A small world to try Holdfast in without the internet: upstreams that fail, and pipelines."""
