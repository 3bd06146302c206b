"""Replicated secret sharing among a few parties, with an honest majority: Boolean and fixed-point engines."""
