"""The tools of bench/quality, and the figures that the pipelines reach."""
