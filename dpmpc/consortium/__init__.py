"""A run over several machines: the file that declares it, its kits, and the part that each process takes."""
