"""An accounting question with one unknown: whichever of epsilon, delta, scale and number of releases is not given."""

from collections.abc import Mapping

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass

Row = dict[str, object]


@dataclass(frozen=True)
class Question:
    """What is known. Lengths in units of the released vector; None where unknown. `one_release`: one is enough, where
    their number is not given. `step`: the grid's, in the same units; None: what a run would choose, whose opened
    sum is divided by `divisor`."""

    dimension: int
    epsilon: float | None = None
    delta: float | None = None
    scale: float | None = None
    iterations: int | None = None
    one_release: bool = False
    step: float | None = None
    divisor: int = 1


def unknown_of(known: Mapping[str, float | None]) -> str:
    """The one thing that is None. Errors: UsageError unless there is exactly one."""
    missing = [name for name, value in known.items() if value is None]
    if len(missing) != 1:
        given = ", ".join(name for name, value in known.items() if value is not None) or "none"
        raise UsageError(
            f"give all but one of {', '.join(known)}, the one left out is solved for; got {given}; "
            + (f"add {' or '.join(missing)}" if missing else "leave one out")
        )
    return missing[0]
