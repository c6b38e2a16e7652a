"""How good the results of the pipelines are, on lists whose right answers are known."""
