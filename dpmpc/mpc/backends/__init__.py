"""The backends, one module each; see `mpc.backend` for what they have in common."""
