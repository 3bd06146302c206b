"""What one release adds: everything that its privacy depends on. The line of a ledger carries it."""

from typing import Any, Self

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_nonnegative, check_positive
from dpmpc.privacy.sensitivity import Sensitivity

_LARGEST = 1e60  # far beyond any use: squares, and squares of ratios, are finite numbers


@dataclass(frozen=True)
class Mechanism:
    """Noise of `law` (an entry of `privacy.law.LAWS`), on the integers or continuous.

    `scale` is the law's parameter, 0 for no noise; `sensitivity` has all three norms, rounding included, in the same
    unit as `scale`; for a discrete law that unit is the grid step. `tv` and `log_ratio` certify one coordinate of
    the sampler; `mpc_failure` is this release's share of the MPC's failure probability.
    """

    law: str
    discrete: bool
    scale: float
    sensitivity: Sensitivity
    dimension: int
    tv: float = 0.0
    log_ratio: float = 0.0
    mpc_failure: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.law, str) or not isinstance(self.discrete, bool):
            raise UsageError(
                f"a release names its law, and whether that is discrete; got {self.law!r}, {self.discrete!r}; mend",
                code="type",
            )
        check_nonnegative("noise scale", self.scale)
        if not isinstance(self.sensitivity, Sensitivity):
            raise UsageError(
                f"a release's sensitivity has norms; got {self.sensitivity!r}; give a Sensitivity", code="type"
            )
        check_positive("sensitivity", self.sensitivity.linf)
        moved = self.sensitivity.within(self.dimension).bare
        for name, size in (
            ("noise scale", self.scale), ("sensitivity", self.sensitivity.linf), ("sensitivity", moved.l2)
        ):  # fmt: skip
            if size and not 1 / _LARGEST <= size <= _LARGEST:
                raise UsageError(f"a release's {name} is within 1e-60 and 1e60; got {size:.3g}; choose another unit")
        object.__setattr__(self, "sensitivity", moved)
        for name in ("tv", "log_ratio", "mpc_failure"):
            check_nonnegative(name, getattr(self, name))

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {**vars(self), "sensitivity": self.sensitivity.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """What `to_json` gave, or an older line, which has one number, in its law's norm. Errors: TypeError, KeyError,
        ValueError, UsageError for what is none."""
        return cls(**{**value, "sensitivity": Sensitivity.from_json(value["sensitivity"])})
