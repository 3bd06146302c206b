"""A check and its verdict; a line of evidence is some checks that must all hold."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from dpmpc.lazy import dataclass

ALPHA = 1e-9  # the false-alarm probability of each check of statistics
MISSED = 1e-3  # the probability with which a deviation of the stated size is missed
SHOWN = 3  # problems named in a detail


@dataclass(frozen=True)
class Check:
    """What was checked, whether it holds, what was found. `figures` are JSON values. `tested`: whether there was enough
    to look at; what was not tested does not fail, and is not counted as held. `misses`: what it would not see."""

    name: str
    holds: bool
    detail: str
    figures: dict[str, Any] = field(default_factory=dict)
    tested: bool = True
    misses: str = ""


@dataclass(frozen=True)
class Evidence:
    """One line of evidence. `false_alarm` bounds the probability that a correct run fails it. `misses`: what none of
    its checks can see."""

    name: str
    checks: tuple[Check, ...]
    false_alarm: float = 0.0
    note: str = ""
    misses: str = ""

    @property
    def holds(self) -> bool:
        """Whether something was tested and all of it holds."""
        return any(check.tested for check in self.checks) and all(check.holds for check in self.checks)

    @property
    def held(self) -> int:
        """How many checks were made and hold."""
        return sum(check.holds for check in self.checks if check.tested)

    @property
    def tested(self) -> int:
        """How many checks were made."""
        return sum(check.tested for check in self.checks)

    @property
    def failed(self) -> list[str]:
        """The names of the checks that do not hold."""
        return [check.name for check in self.checks if not check.holds]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "holds": self.holds,
            "false_alarm": self.false_alarm,
            "note": self.note,
            "misses": self.misses,
            "tested": self.tested,
            "not_tested": len(self.checks) - self.tested,
            "checks": [
                {"name": c.name, "holds": c.holds, "tested": c.tested, "detail": c.detail, "misses": c.misses}
                | c.figures
                for c in self.checks
            ],
        }


def untested(name: str, why: str) -> Check:
    """A check that there was too little for."""
    return Check(name, True, f"not tested: {why}", tested=False)


def of_problems(name: str, problems: Sequence[str], fine: str) -> Check:
    """A check that holds if there are no problems; its detail names the first few, or says `fine`."""
    if not problems:
        return Check(name, True, fine)
    more = f" (and {len(problems) - SHOWN} more)" if len(problems) > SHOWN else ""
    return Check(name, False, "; ".join(problems[:SHOWN]) + more, {"problems": len(problems)})
