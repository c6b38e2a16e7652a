"""How well sentiment and intent are found, on labelled posts."""
