"""The owners' end: their Shamir shares over F_p are MPyC's shares as they arrive, made as for every other backend."""

from dpmpc.mpc.contract.shares import ShamirDealer as OwnersDealer

__all__ = ["OwnersDealer"]
