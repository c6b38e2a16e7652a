"""How well sentiment and intent are found, on posts that people labelled."""
