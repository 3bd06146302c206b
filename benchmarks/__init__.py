"""The cost suite: what a release takes, in counts that are exact and in seconds that are measured, beside the
physical limit.
"""
