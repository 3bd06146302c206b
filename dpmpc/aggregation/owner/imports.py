"""What parties of this machine import."""

PRELOAD = (
    "dpmpc.aggregation.party.party",
    "dpmpc.mpc.replicated.backend",
    "dpmpc.privacy.gaussian_law",
)
