"""What changed between two result files: counts exactly, times beyond their noise."""

import math
from dataclasses import dataclass
from typing import Any

from dpmpc.benchmarks.quartiles import Figure
from dpmpc.benchmarks.result_file import Record, Results, by_key

_NOTCH = (
    1.57  # McGill, Tukey, Larsen 1978: medians differ at about 95 % when median +- 1.57 IQR / sqrt(n) do not overlap
)


@dataclass(frozen=True)
class Change:
    """One difference. `ratio`: new over old, for times."""

    record: Record
    name: str
    old: Any
    new: Any
    ratio: float | None
    verdict: str  # better, worse, changed


@dataclass(frozen=True)
class Comparison:
    """`drift`: the median ratio of the physical limits, which no code of ours changes: how much slower the machine
    was.
    """

    changes: tuple[Change, ...]
    matched: int
    only_old: tuple[Record, ...]
    only_new: tuple[Record, ...]
    drift: float | None
    same_machine: bool


def compare(old: Results, new: Results, least: float = 1.1) -> Comparison:
    """Counts that differ at all, and times that differ by a factor of `least` and beyond the notches of both, the
    drift of the machine taken out.
    """
    before, after = by_key(old.records), by_key(new.records)
    both = [name for name in before if name in after]
    drift = _drift([(before[name], after[name]) for name in both])
    changes: list[Change] = []
    for name in both:
        changes += _counts(before[name], after[name]) + _times(before[name], after[name], drift or 1.0, least)
    return Comparison(
        tuple(changes),
        len(both),
        tuple(before[name] for name in before if name not in after),
        tuple(after[name] for name in after if name not in before),
        drift,
        all(old.machine.get(key) == new.machine.get(key) for key in ("processor", "cores", "system")),
    )


def _drift(pairs: list[tuple[Record, Record]]) -> float | None:
    ratios = sorted(
        b.seconds["limit"].median / a.seconds["limit"].median
        for a, b in pairs
        if "limit" in a.seconds and "limit" in b.seconds
    )
    return ratios[len(ratios) // 2] if ratios else None


def _counts(old: Record, new: Record) -> list[Change]:
    found = []
    for name, a in old.counts.items():  # what was not counted then is no change
        b = new.counts.get(name)
        if a != b:
            verdict = "changed"
            if isinstance(a, int | float) and isinstance(b, int | float):
                verdict = "better" if b < a else "worse"
            found.append(Change(new, name, a, b, None, verdict))
    return found


def _times(old: Record, new: Record, drift: float, least: float) -> list[Change]:
    found = []
    for name, a in old.seconds.items():
        b = new.seconds.get(name)
        if b is None or name.startswith("limit") or min(a.median, b.median) <= 0:
            continue
        ratio = b.median / a.median / drift
        (a_low, a_high), (b_low, b_high) = notch(a), notch(b)
        apart = b_low > a_high * drift or b_high < a_low * drift
        if apart and max(ratio, 1 / ratio) >= least:
            found.append(Change(new, name, a.median, b.median, ratio, "worse" if ratio > 1 else "better"))
    return found


def notch(figure: Figure) -> tuple[float, float]:
    """The interval of the median at about 95 %."""
    half = _NOTCH * (figure.q3 - figure.q1) / math.sqrt(figure.repetitions)
    return figure.median - half, figure.median + half
