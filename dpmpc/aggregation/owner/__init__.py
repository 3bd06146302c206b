"""The owners' end of a run: vectors to shares, opened sums back; parties here or elsewhere."""
