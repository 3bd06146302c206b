"""The same circuits in the clear: the oracle, and runs without parties. No secrecy, no network."""
