"""What one release adds: everything that its privacy depends on. The line of a ledger carries it."""

from dataclasses import dataclass

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_nonnegative, check_positive


@dataclass(frozen=True)
class Mechanism:
    """Noise of `law` (an entry of `privacy.law.LAWS`), on the integers or continuous.

    `scale` is the law's parameter, 0 for no noise; `sensitivity` is in the law's own norm, rounding included, in the
    same unit as `scale`; for a discrete law that unit is the grid step. `tv` and `log_ratio` certify one coordinate of
    the sampler; `mpc_failure` is this release's share of the MPC's failure probability.
    """

    law: str
    discrete: bool
    scale: float
    sensitivity: float
    dimension: int
    tv: float = 0.0
    log_ratio: float = 0.0
    mpc_failure: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.law, str) or not isinstance(self.discrete, bool):
            raise UsageError(
                f"a release names its law, and whether that is discrete; got {self.law!r}, {self.discrete!r}; mend"
            )
        check_nonnegative("noise scale", self.scale)
        check_positive("sensitivity", self.sensitivity)
        check_count("dimension", self.dimension)
        for name in ("tv", "log_ratio", "mpc_failure"):
            check_nonnegative(name, getattr(self, name))
