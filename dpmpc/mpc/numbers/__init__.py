"""Fields and the pseudorandom numbers in them: F_p, p = 2^61 - 1, and wider ones. No network."""
