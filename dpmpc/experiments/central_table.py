"""The table and the picture of docs/accuracy.md, of the runs of `dpmpc experiment central`: defaults beside rivals."""

from pathlib import Path

import numpy as np

from dpmpc.experiments.central import (
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
from dpmpc.experiments.central_rivals import RIVALS
from dpmpc.experiments.corpus import SETS
from dpmpc.experiments.report import table

_HEAD = {"descent": "gradient descent", "boosting": "boosting, not private"}


def beside(known: Known) -> list[str]:
    """The lines of the table: a comparison each, in the corpus' order; ours by default in bold."""
    order = {each.name: place for place, each in enumerate(SETS.values())}
    cases = sorted({key[:2] for key in known if key[3] in OURS}, key=lambda case: (order[case[0]], case[1]))
    ran = [name for name in RIVALS if any(key[3] == name for key in known)]
    of_set: dict[str, Known] = {}
    for key, scores in known.items():
        of_set.setdefault(key[0], {})[key] = scores  # each cell of the table looks through its set's alone
    rows = [row for name, epsilon in cases if (row := _row(of_set[name], name, epsilon, ran))]
    shown = [_HEAD.get(name, name) for name in ran]
    return table(["set", "records", "epsilon", "splits", *OURS, *shown, "default less best rival", "verdict"], rows)


def counted(known: Known) -> dict[str, int]:
    """How many comparisons have each verdict."""
    last = [line.rsplit("|", 2)[1].strip() for line in beside(known)[2:]]
    return {word: last.count(word) for word in ("no worse", "behind", "undecided")}


def _row(known: Known, name: str, epsilon: float, ran: list[str]) -> list[str]:
    rival, mine = best_rival(known, name, epsilon), default_of(known, name, epsilon)
    if rival is None:
        return []
    mean, half, count = paired(known, name, epsilon, mine, rival)
    number = SETS[name].task == "ridge"
    cells = [_cell(known, name, epsilon, who, who == mine, number) for who in (*OURS, *ran)]
    return [
        f"{name} (R2)" if number else name, f"{records_of(known, name, epsilon):,}", f"{epsilon:g}", str(count), *cells,
        f"{mean:+.3f} +- {half:.3f} ({rival})", verdict(mean, half, margin_of(known, name, epsilon)),
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

    cases = sorted({(n, e) for n, e, _, who in known if who in OURS})
    shown = []
    for name, epsilon in cases:
        rival = best_rival(known, name, epsilon)
        if rival is not None:
            mean, half, count = paired(known, name, epsilon, default_of(known, name, epsilon), rival)
            shown.append((f"{name}, {epsilon:g} ({rival})", mean, half if count > 1 else 0.0))
    figure = Figure(figsize=(7, 1 + 0.24 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    axes.errorbar([m for _, m, _ in shown], range(len(shown)), xerr=[h for _, _, h in shown], fmt="o", ms=3, lw=1)
    axes.set_yticks(range(len(shown)), [label for label, _, _ in shown], fontsize=7)
    axes.axvline(0, lw=0.8)
    axes.axvline(-MARGIN, lw=0.8, ls=":")
    axes.set_xlabel("AUC or R2: ours less the best rival's, paired")
    figure.savefig(path, dpi=130)
