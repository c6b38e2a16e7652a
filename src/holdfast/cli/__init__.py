"""The command line: the composition root, which sees everything."""
