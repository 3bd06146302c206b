"""What the figures of a run inside its promise will tell, from public numbers, before anything is spent."""

import math
from functools import partial

from dpmpc.learning.task import TASKS
from dpmpc.planning.request import Request
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.records import Schema
from dpmpc.statistics.evaluated import CELLS

LOUDEST = 0.02  # deviation of AUC, or of R2 / 2, of a usual model: with more an evaluation tells too little
_KNOWN = (0.006, 0.002)  # deviation of AUC that noise makes anyhow, beyond which fewer cells hide nothing more
RARE = 0.05  # the share of a class that is rare, for which figures are foreseen too


def why_not(request: Request) -> str:
    """What of the settings forbids figures inside the promise; "" for nothing."""
    if not request.delta or not request.noise_law.by_mu or request.scale is not None:
        return "they need Gaussian noise that a budget sets, and so a delta"
    if request.calibration != "tight":
        return "they need the tight calibration"
    if request.neighbours not in ("record", "presence", "person"):
        # both parts have half of mu^2, and a change moves all that an owner holds out: as if each were one record
        half = epsilon_of_mu(mu_of_budget(request.epsilon, request.delta) / math.sqrt(2), request.delta)
        would = math.ceil(off_by(half, request.delta, 1) / LOUDEST)
        return f"of whole owners training and evaluation add up; some {would:,} of like size would do"
    if request.missing == "drop" or request.official_test:
        return "held-out records are drawn from all records"
    if request.test_fraction == 0:
        return "no records are held out"
    return ""


def cells_of(epsilon: float, delta: float, held: int, task: str = "logistic", classes: int = 2) -> int:
    """How many cells a score has in the evaluation of so many held-out records: the noise of a sum over cells grows
    with the square root of their number, the error of their width falls with its fourth power. The fewest whose width
    costs less than the noise does, from public numbers."""
    for cells, known in zip(CELLS, _KNOWN, strict=False):
        if _off_by(epsilon, delta, held, task, classes, 1 / classes, cells) > known:
            return cells
    return CELLS[-1]


def off_by(
    epsilon: float, delta: float, held: int, task: str = "logistic", classes: int = 2, share: float | None = None
) -> float:
    """The deviation that noise gives the figure of so many held-out records: of the AUC of a class that this share of
    them has, or 1 / classes, or of R2 / 2 where the target's deviation is an eighth of its range. From public numbers;
    of a class half as frequent about twice as much."""
    cells = cells_of(epsilon, delta, held, task, classes)
    return _off_by(epsilon, delta, held, task, classes, 1 / classes if share is None else share, cells)


def _off_by(epsilon: float, delta: float, held: int, task: str, classes: int, share: float, cells: int) -> float:
    noise = math.sqrt(2) / mu_of_budget(epsilon, delta)
    kind = TASKS[task].kind
    if kind == "number":  # 4 sum e^2 over n / 16, e half of what is missing; two blocks of L2 distance 2
        return 22.0 * 2 * noise / held if held else math.inf
    if kind == "several":
        noise *= math.sqrt(classes + 1)  # a block for each class, and the table of all
    spread = math.sqrt(0.1 * cells * (share**-2 + (1 - share) ** -2))  # F - AUC has variance 0.1 over the cells
    return noise * spread / held if held else math.inf


def units_of(request: Request, held: int) -> int:
    """How many records, or persons with all that they may have, so many held-out records are."""
    return held // (request.person_rows * (request.person_owners or request.owners or 1) if request.person else 1)


def too_few(request: Request, held: int, task: str = "logistic", classes: int = 2) -> str:
    """Why so many held-out records say too little inside the promise; "" where they say enough."""
    assert request.delta
    held = units_of(request, held)
    if not held:
        return "no record is held out"
    off = off_by(request.epsilon, request.delta, held, task, classes)
    if off <= LOUDEST:
        return ""
    what = foreseen(request, held, task, classes)
    return f"{held:,} held-out records are too few: {what}; {math.ceil(held * off / LOUDEST):,} would do"


def foreseen(request: Request, held: int, task: str = "logistic", classes: int = 2) -> str:
    """How far noise moves the figure of so many units that are held out (95 %), in words."""
    assert request.delta
    off = partial(off_by, request.epsilon, request.delta, held, task, classes)
    if TASKS[task].kind == "number":
        return f"R2 would be off by {3.92 * off():.2g} at best"
    many = "two" if classes == 2 else f"{classes}"
    rare = min(1.96 * off(share=RARE), 1.0)
    return (
        f"AUC would be off by {min(1.96 * off(), 1.0):.2g} where the {many} classes are equally many, by {rare:.2g} of "
        f"a class that {RARE:.0%} of records have"
    )


def forecast(request: Request, held: int, task: str = "logistic", classes: int = 2) -> str:
    """What is said of figures inside the promise before anything is spent, where they may say little; "" where even
    those of a rare class say enough."""
    assert request.delta
    units, numeric = units_of(request, held), TASKS[task].kind == "number"
    worst = off_by(request.epsilon, request.delta, units, task, classes, None if numeric else RARE)
    if worst <= LOUDEST:
        return ""
    return (
        f"figures come from {units:,} held-out {'persons' if request.person else 'records'}, inside the guarantee: "
        f"{foreseen(request, units, task, classes)}; more held out, or a larger epsilon, tells more"
    )


def cells_at(request: Request, held: int, schema: Schema) -> int:
    """The cells of a score in the evaluation of a run."""
    assert request.delta
    return cells_of(request.epsilon, request.delta, units_of(request, held), schema.task, schema.classes)
