"""The table and the picture of docs/accuracy.md, of the runs of `dpmpc experiment central`: defaults beside rivals."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc_experiments.central import (
    DELTA,
    MARGIN,
    OURS,
    Known,
    best_rival,
    default_of,
    margin_of,
    paired,
    records_of,
    verdict,
)
from dpmpc_experiments.central_rivals import RIVALS
from dpmpc_experiments.corpus import SETS
from dpmpc_experiments.report import table

_HEAD = {"descent": "gradient descent", "boosting": "boosting, not private"}


class Compared(NamedTuple):
    """One comparison: ours by default less the best rival, and what it says."""

    name: str
    epsilon: float
    mine: str
    rival: str
    mean: float
    half: float
    splits: int
    verdict: str


def beside(known: Known) -> list[str]:
    """The lines of the table: a comparison each, in the corpus' order; ours by default in bold."""
    ran = [name for name in RIVALS if any(key[3] == name for key in known)]
    of_set = _by_set(known)  # each cell of the table looks through its set's alone
    rows = [_row(of_set[each.name], each, ran) for each in compared(known)]
    shown = [_HEAD.get(name, name) for name in ran]
    return table(["set", "records", "epsilon", "splits", *OURS, *shown, "default less best rival", "verdict"], rows)


def counted(known: Known, sets: Collection[str] | None = None) -> dict[str, int]:
    """How many comparisons, of these sets or of all, have each verdict."""
    found = [each.verdict for each in compared(known) if sets is None or each.name in sets]
    return {word: found.count(word) for word in ("no worse", "undecided", "behind")}


def lists(known: Known) -> list[str]:
    """The lines below the table: what is undecided, behind, and where our mean is lower."""
    return [
        "Undecided:", "", *_listed(known, lambda each: each.verdict == "undecided"), "",
        "Behind:", "", *_listed(known, lambda each: each.verdict == "behind"), "",
        "**Where our mean is lower**:", "", *_listed(known, lambda each: each.mean < 0),
    ]  # fmt: skip


def _listed(known: Known, which: Callable[[Compared], bool]) -> list[str]:
    found = [
        f"- {each.name} at epsilon {each.epsilon:g} ({each.mean:+.4f} +- {each.half:.4f}, {each.rival}, "
        f"{each.splits} splits);"
        for each in sorted(compared(known), key=lambda each: (each.name, each.epsilon))
        if which(each)
    ]
    return [*found[:-1], found[-1][:-1] + "."] if found else ["- none."]


def bent(known: Known, cases: Sequence[tuple[str, float]]) -> list[str]:
    """The lines of a table: what smooth functions change, by set and epsilon."""
    rows, of_set = [], _by_set(known)
    for name, epsilon in cases:
        mean, half, _ = paired(of_set[name], name, epsilon, "additive", "linear")
        reach = records_of(of_set[name], name, epsilon) * mu_of_budget(epsilon, DELTA)
        rows.append([name, f"{epsilon:g}", f"{reach:,.0f}", f"{mean:+.4f} +- {half:.4f}"])
    return table(["set", "epsilon", "reach", "additive less linear"], rows)


def compared(known: Known) -> list[Compared]:
    """Every comparison of ours by default with the best rival, in the corpus' order."""
    found, of_set = [], _by_set(known)
    for name in (each.name for each in SETS.values() if each.name in of_set):
        of = of_set[name]
        for epsilon in sorted({key[1] for key in of if key[3] in OURS}):
            rival = best_rival(of, name, epsilon)
            if rival is not None:
                mine = default_of(of, name, epsilon)
                mean, half, count = paired(of, name, epsilon, mine, rival)
                said = verdict(mean, half, margin_of(of, name, epsilon))
                found.append(Compared(name, epsilon, mine, rival, mean, half, count, said))
    return found


def _by_set(known: Known) -> dict[str, Known]:
    found: dict[str, Known] = {}
    for key, scores in known.items():
        found.setdefault(key[0], {})[key] = scores
    return found


def _row(known: Known, of: Compared, ran: list[str]) -> list[str]:
    number = SETS[of.name].task == "ridge"
    cells = [_cell(known, of.name, of.epsilon, who, who == of.mine, number) for who in (*OURS, *ran)]
    return [
        f"{of.name} (R2)" if number else of.name, f"{records_of(known, of.name, of.epsilon):,}", f"{of.epsilon:g}",
        str(of.splits), *cells, f"{of.mean:+.3f} +- {of.half:.3f} ({of.rival})", of.verdict,
    ]  # fmt: skip


def _cell(known: Known, name: str, epsilon: float, who: str, ours: bool, number: bool) -> str:
    at = 0.0 if who == "boosting" else epsilon
    found = np.array([scores[:2] for key, scores in known.items() if (key[0], key[1], key[3]) == (name, at, who)])
    if not len(found):
        return "-"
    area, right = found.mean(axis=0)
    said = f"{area:.3f}" if number else f"{right:.3f}/{area:.3f}"
    return f"**{said}**" if ours else said


def draw(known: Known, path: Path) -> None:
    """A picture: by set, ours less the best rival, with its interval, at each epsilon."""
    from matplotlib.figure import Figure

    shown = [
        (f"{each.name}, {each.epsilon:g} ({each.rival})", each.mean, each.half if each.splits > 1 else 0.0)
        for each in sorted(compared(known), key=lambda each: (each.name, each.epsilon))
    ]
    figure = Figure(figsize=(7, 1 + 0.24 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    axes.errorbar([m for _, m, _ in shown], range(len(shown)), xerr=[h for _, _, h in shown], fmt="o", ms=3, lw=1)
    axes.set_yticks(range(len(shown)), [label for label, _, _ in shown], fontsize=7)
    axes.axvline(0, lw=0.8)
    axes.axvline(-MARGIN, lw=0.8, ls=":")
    axes.set_xlabel("AUC or R2: ours less the best rival's, paired")
    figure.savefig(path, dpi=130)
