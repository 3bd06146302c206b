"""What to run for a budget: method, length, step, regularisation, averaging, weights, noise, grid, from public numbers
alone.

Length (step times iterations) and lambda follow one rule, which was chosen by test loss and AUC over a corpus of data
sets (docs/accuracy.md). `advise` then rehearses (`learning.rehearsal`) what each method would reach with the noise of
the real number of records, takes the smallest expected gap, and says what it expects and when noise will swamp the
signal. No record is looked at: the advice may be followed without any cost in privacy, and two runs with the same
public numbers get the same advice.
"""

import math
from functools import lru_cache
from typing import Any, Literal, cast

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.aggregation.plan.grid import choose_grid
from dpmpc.errors import UsageError, spelt
from dpmpc.lazy import dataclass
from dpmpc.learning.lengths import BENT, BENT_COLUMN, DescentRule, descent, reach
from dpmpc.learning.losses import RESIDUAL_CLIP
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Learning, Method
from dpmpc.learning.rehearsal import WIDEST, Descends, RehearsalRecords, Rehearsed, Task
from dpmpc.learning.settings import Average
from dpmpc.learning.survey import MANY, Survey
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, delta_warning
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.law import DEFAULT_LAW, LAWS, Law
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.question import Question
from dpmpc.privacy.sensitivity import Sensitivity, Weights, weights_for
from dpmpc.records.schema import Basis

OUTPUT_SHARE = 5.0  # lam of output perturbation, over 1/reach
OUTPUT_LAMS = (1e-3, 0.1)
SWAMPED = 0.25  # of what there is to gain: a warning from here on
LITTLE = 0.005  # likewise: what a single release of ridge regression may miss
BETTER = 0.6  # of gradient descent's gap: another method is advised below it
SURVEY_NOISE = 0.04  # of the records: what the noise of a survey's counts may be
SURVEY_SHARES = (0.02, 0.3)  # of the squared budget mu^2 for a survey: least and most
LARGEST_SURVEY_NOISE = 0.1


@dataclass(frozen=True)
class Circumstances:
    """What is public of a run. columns: features without public bounds, to be surveyed first (0: none). spent: the mu^2
    of what the run has released already, such as its survey. weights: None where they are to be chosen. lam and
    momentum, iterations, step: if given. objective: the lam of what gaps are measured on; 0 for the mean loss alone."""

    owners: int
    smallest: int
    records: int
    dimension: int
    epsilon: float
    delta: float | None = None
    task: Task = "logistic"
    lam: float | None = None
    momentum: float | None = None
    iterations: int | None = None
    step: float | None = None
    residual_clip: float = RESIDUAL_CLIP
    objective: float = 0.0
    method: str | None = None
    noise: str | None = None  # of a method whose own noise may be pure
    columns: int = 0
    spent: float = 0.0
    weights: Weights | None = None
    neighbours: Literal["record", "presence", "person", "owner"] = "record"
    persons: Persons | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        for name in ("owners", "records", "dimension"):
            check_count(name, getattr(self, name))
        if self.records < self.owners:
            raise UsageError(
                f"every owner holds at least one record; got {self.records} records of {self.owners} owners; mend "
                "<<total>> or <<owners>>",
                code="enough",
            )
        check_count("smallest", self.smallest)
        if self.records < self.owners * self.smallest:
            raise UsageError(
                f"{self.owners} owners with at least {self.smallest} records hold at least "
                f"{self.owners * self.smallest}; got {self.records}; mend the total or the smallest size",
                code="enough",
            )
        _check_names(self)

    @property
    def sizes(self) -> list[int]:
        """Owners' sizes as far as public: the smallest, the others alike."""
        if self.owners == 1:
            return [self.records]
        base, extra = divmod(self.records - self.smallest, self.owners - 1)
        return [self.smallest] + [base + (i < extra) for i in range(self.owners - 1)]


@dataclass(frozen=True)
class WayToRun:
    """One way to run. sigma: noise a coordinate on the aggregate; expected: its gap J - J*, of which `start` is to
    gain."""

    method: str
    noise: str
    lam: float
    iterations: int
    step: float | None
    momentum: float
    average: Average
    sigma: float
    expected: float
    start: float

    @property
    def left(self) -> float:
        """The part of what there is to gain that the run is expected to miss: 1 at most, a model that says nothing."""
        return min(1.0, self.expected / self.start)


@dataclass(frozen=True)
class Advice:
    """The advice: the best choice, its weights, grid and survey share, the best of every method, and warnings, `marked`
    for a surface that spells their settings.

    followed: whether a run is planned by it; else it says what to expect of a run that was asked for.
    """

    choice: WayToRun
    weights: Weights
    lam: float
    grid_bits: int
    survey_share: float
    alternatives: list[WayToRun]
    marked: list[str]
    followed: bool = True

    @property
    def warnings(self) -> list[str]:
        """The warnings with settings as Python has them."""
        return [spelt(text) for text in self.marked]

    @property
    def surpassed(self) -> bool:
        """Whether another method's expected gap is smaller, though not by the factor BETTER."""
        return any(other.expected < self.choice.expected for other in self.alternatives)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        rows = [vars(choice) | {"left": choice.left} for choice in (self.choice, *self.alternatives)]
        rest = {k: v for k, v in vars(self).items() if k not in ("choice", "alternatives", "followed", "marked")}
        return {"advice": rows[0], "alternatives": rows[1:], **rest, "warnings": self.warnings}


def advise(c: Circumstances) -> Advice:
    """The advice for these circumstances. Deterministic. Cost: some thousand products of a 1,000 x d matrix. Errors:
    UsageError for a method that is not for so many features."""
    advice = rehearsed(c)
    if advice is None:
        raise UsageError(
            f"<<method={c.method}>> is for at most {WIDEST} features; there are {c.dimension}; use {DEFAULT_METHOD}",
            code="range",
        )
    return advice


def rehearsed(c: Circumstances) -> Advice | None:
    """As `advise`; None where there are too many features for the method that is wished."""
    share = survey_share(c)
    weights = weights_for(c.weights, (c.smallest, max(c.sizes)))
    with threadpool_limits(1):  # small products: threads cost more than they save
        choices = [choice for method in _methods(c) if (choice := _best(c, method, weights, share)) is not None]
    if not choices:
        return None
    # without a wish, the default comes first and another method must be clearly better; but a quadratic objective needs
    # one release, where hundreds would gain next to nothing; a surveyed range of the target may be far wider than its
    # values are, and then one release misses more than is rehearsed
    quadratic = c.task == "ridge" and not share and not c.spent
    single = [choice for choice in choices if quadratic and choice.iterations == 1 and choice.left <= LITTLE]
    best = min(single or choices, key=lambda x: x.expected * (1.0 if x.method == choices[0].method else 1 / BETTER))
    others = [choice for choice in choices if choice is not best]
    return Advice(best, weights, best.lam, _grid_bits(c, best, weights), share, others,
                  _warnings(c, best, share))  # fmt: skip


def survey_share(c: Circumstances) -> float:
    """The part of mu^2 for private preprocessing: such that the noise of a count is SURVEY_NOISE of the records."""
    if c.columns == 0:
        return 0.0
    low, high = SURVEY_SHARES
    return min(high, max(low, (survey_noise(c, 1.0) / SURVEY_NOISE) ** 2))


def basis(c: Circumstances) -> Basis:
    """Whether numbers that are surveyed bend: where there are enough records for the budget and for the columns, of
    whatever they say."""
    enough = BENT.get(c.task)
    if enough is None or c.delta is None:
        return "linear"
    reached = c.records * mu_of_budget(c.epsilon, c.delta)
    return "additive" if reached >= max(enough, BENT_COLUMN * c.columns) else "linear"


def survey_noise(c: Circumstances, share: float) -> float:
    """The noise of one count, as a part of the records, when the survey has this share of mu^2."""
    if c.delta is None:
        raise UsageError(
            "a survey of columns without bounds needs a delta; none was given; add <<delta>> or <<bounds>>",
            code="missing",
        )
    names = tuple(map(str, range(c.columns)))
    survey = Survey(names, twice=names[:1] if c.task == "ridge" and c.columns >= MANY else ())
    return survey.spread / (c.records * mu_of_budget(c.epsilon, c.delta) * math.sqrt(share))


def _rehearsed(method: Method) -> bool:
    """Whether it can be advised: its gap is rehearsed, and the noise of a descent adds up by mu^2."""
    return isinstance(method, Rehearsed) or (isinstance(method, Descends) and LAWS[method.law].by_mu)


def _check_names(c: Circumstances) -> None:
    """Errors: UsageError for a method that nothing rehearses, or noise that needs a delta where there is none."""
    wished = [] if c.noise is None else [LAWS[c.noise]]
    if c.method is not None:
        wished.append(LAWS[METHODS[c.method].law_for(None)])
        if not _rehearsed(METHODS[c.method]):
            known = ", ".join(name for name, method in METHODS.items() if _rehearsed(method))
            raise UsageError(
                f"what a method will reach is rehearsed for {known}; nothing rehearses <<method={c.method}>>; "
                f"choose one "
                "of them, or train with it at parameters of your own"
            )
    unkept = [law.name.capitalize() for law in wished if not law.pure]
    if c.delta is None and unkept:
        pure = " or ".join(name for name, method in METHODS.items() if method.may_be_pure)
        raise UsageError(
            f"{unkept[0]} noise needs a delta; none was given; add <<delta>>, or <<method={pure}>>", code="missing"
        )


def _methods(c: Circumstances) -> tuple[str, ...]:
    if c.method is not None:
        return (c.method,)
    return tuple(
        name
        for name, method in METHODS.items()
        if _rehearsed(method)
        and c.task in method.tasks
        and (c.delta is not None or method.may_be_pure)
        and (method.repeats or (c.iterations in (None, 1) and c.step is None))
    )


def _law(c: Circumstances, method: Method) -> Law:
    """Of the method's noise."""
    return LAWS[c.noise if c.noise and method.may_be_pure else method.law_for(c.delta)]


def _sensitivity(c: Circumstances, method: str, weights: Weights, lam: float) -> Sensitivity:
    """Of the opened mean, as if owners solved exactly."""
    d, presence = METHODS[method].coordinates(c.dimension), c.neighbours == "presence"
    learning = Learning(
        method=method, task=c.task, lam=lam, residual_clip=c.residual_clip, solver_tolerance=0.0, presence=presence
    )
    return learning.moved(c.neighbours, c.sizes, weights, d, c.persons)


@lru_cache(maxsize=8)  # a run is advised on before and after its survey, at what is left of its budget
def _stage(dimension: int, task: Task, lam: float, residual_clip: float, presence: bool) -> RehearsalRecords:
    return RehearsalRecords(dimension, task, lam, residual_clip, presence)


def _best(c: Circumstances, name: str, weights: Weights, share: float) -> WayToRun | None:
    presence = c.neighbours == "presence"
    stage = _stage(c.dimension, c.task, c.objective, c.residual_clip, presence)  # one objective for all methods
    mu = 0.0 if c.delta is None else math.sqrt(mu_of_budget(c.epsilon, c.delta) ** 2 * (1 - share) - c.spent)
    method = METHODS[name]
    if isinstance(method, Descends):
        return _descent(c, name, stage, weights, mu)
    assert isinstance(method, Rehearsed)
    lam = regularisation(c, name, weights, mu)
    scale, deviation = _noise(c, method, _sensitivity(c, name, weights, lam), weights, mu)
    expected = method.rehearse(stage, deviation, c.owners, max(1, c.records // c.owners), lam)
    if expected is None:
        return None
    return WayToRun(name, _law(c, method).name, lam, 1, None, 0.0, "none", scale, expected, stage.start)


def _noise(
    c: Circumstances, method: Method, sensitivity: Sensitivity, weights: Weights, mu: float
) -> tuple[float, float]:
    """(scale, deviation) a coordinate of one release's noise."""
    law = _law(c, method)
    if law.by_mu:
        return sensitivity.l2 / mu, sensitivity.l2 / mu
    delta = None if law.pure else c.delta
    divisor = c.owners if weights == "equal" else c.records
    question = Question(method.coordinates(c.dimension), c.epsilon, delta, None, 1, divisor=divisor)
    _, (row, *_) = law.solve(question, sensitivity)
    return cast(float, row["scale"]), cast(float, row["deviation"])


def regularisation(c: Circumstances, name: str, weights: Weights, mu: float | None = None) -> float:
    """lam of a method of one release: as given, else its own; of output perturbation, whose noise nothing contracts,
    such that the noise is a small part of a score."""
    method = METHODS[name]
    if c.lam is not None or not method.lam_moves:
        return method.lam if c.lam is None else c.lam
    if mu is None:
        mu = 0.0 if c.delta is None else math.sqrt(mu_of_budget(c.epsilon, c.delta) ** 2 - c.spent)
    deviation = _noise(c, method, _sensitivity(c, name, weights, 1.0), weights, mu)[1]
    loss = Learning(method=name, task=c.task, lam=1.0, residual_clip=c.residual_clip).loss
    return min(max(OUTPUT_SHARE / reach(loss, deviation), OUTPUT_LAMS[0]), OUTPUT_LAMS[1])


def plain_descent(c: Circumstances, task: str, weights: Weights, classes: int) -> DescentRule:
    """As `descent`, for a task that nothing rehearses."""
    assert c.delta is not None
    presence = c.neighbours == "presence"
    learning = Learning(
        method=DEFAULT_METHOD, task=task, lam=1.0, residual_clip=c.residual_clip, classes=classes, presence=presence
    )
    d = METHODS[DEFAULT_METHOD].coordinates(c.dimension) * learning.scores
    moved = learning.moved(c.neighbours, c.sizes, weights, d, c.persons)
    mu = math.sqrt(mu_of_budget(c.epsilon, c.delta) ** 2 - c.spent)
    return descent(task, learning.loss, moved.l2 / mu, c.dimension, c.lam, c.momentum, c.iterations, c.step)


def _descent(c: Circumstances, name: str, stage: RehearsalRecords, weights: Weights, mu: float) -> WayToRun:
    method = METHODS[name]
    assert isinstance(method, Descends)
    delta_2 = _sensitivity(c, name, weights, 1.0).l2
    how = descent(c.task, stage.loss, delta_2 / mu, c.dimension, c.lam, c.momentum, c.iterations, c.step)
    sigma = math.sqrt(how.iterations) * delta_2 / mu
    gaps = method.rehearse_descent(stage, sigma, *how)
    return WayToRun(
        name, method.law, how.lam, how.iterations, how.step, how.momentum, "tail", sigma, gaps["tail"], stage.start
    )


def _grid_bits(c: Circumstances, choice: WayToRun, weights: Weights) -> int:
    """The bits of the grid that `train` would choose for this sensitivity and noise."""
    divisor = c.owners if weights == "equal" else c.records
    d, norm = METHODS[choice.method].coordinates(c.dimension), LAWS[choice.noise].norm
    moved = _sensitivity(c, choice.method, weights, choice.lam).within(d).in_norm(norm)
    return choose_grid(moved * divisor, choice.sigma / moved, d, norm).bits


def _warnings(c: Circumstances, choice: WayToRun, share: float) -> list[str]:
    found = []
    if choice.left >= SWAMPED:
        found.append(
            f"noise will swamp the signal: of what there is to learn the model is expected to miss "
            f"{choice.left:.0%} with {c.records} records, {c.dimension} features and epsilon {c.epsilon:g}; "
            "more records, fewer features or a larger epsilon help"
        )
    if LAWS[choice.noise].norm == 1 and c.dimension > 9:
        found.append(
            f"{choice.noise.capitalize()} noise pays sqrt(d) = {math.sqrt(c.dimension):.1f} times for {c.dimension} "
            f"features; {DEFAULT_LAW.capitalize()} noise does not; "
            f"{'add <<delta>>' if c.delta is None else f'leave out <<law={choice.noise}>>'}"
        )
    text = delta_warning(c.delta, c.records) if c.delta is not None else None
    return [*found, *(survey_warnings(c) if share else []), *([text] if text else [])]


def survey_warnings(c: Circumstances) -> list[str]:
    """What is warned of where a survey will find little."""
    noise = survey_noise(c, survey_share(c))
    if noise <= LARGEST_SURVEY_NOISE:
        return []
    return [f"the survey's noise is {noise:.0%} of the records, too much to find ranges by; give <<bounds>>"]
