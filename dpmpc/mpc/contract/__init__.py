"""What every backend has in common: the interface, the registry, shares of vectors, programs on lanes."""
