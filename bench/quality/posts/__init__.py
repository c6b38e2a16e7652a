"""Measures how well sentiment and intent are found, on labelled posts."""
