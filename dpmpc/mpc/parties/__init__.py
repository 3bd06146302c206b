"""One party among the others: its mesh of channels, keys, openings, and going on when some are lost."""
