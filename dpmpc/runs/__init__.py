"""A training run: what was asked, its processes, its folder, its report."""
