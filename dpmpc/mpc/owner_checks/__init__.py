"""Checks of owners' shares, whichever backend: coins, sums, and what they cost."""
