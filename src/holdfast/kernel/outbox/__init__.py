"""Messages that leave with the change that causes them."""
