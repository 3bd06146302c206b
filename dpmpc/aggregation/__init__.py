"""Vectors -> one noisy sum: plan, owners' and parties' ends, one release."""
