"""dpmpc: train a model over records that several owners may not show, with one copy of noise made inside MPC."""

__version__ = "0.1.0"
