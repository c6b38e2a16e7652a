"""The operator's web application: one view function for each page."""
