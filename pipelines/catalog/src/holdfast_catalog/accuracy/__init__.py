"""Measures how good the choice is: a labelled list with its catalogue, and generated
photographs."""
