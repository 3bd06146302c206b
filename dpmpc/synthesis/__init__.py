"""Synthetic tables from noisy ones: public post-processing of what `statistics` opens."""
