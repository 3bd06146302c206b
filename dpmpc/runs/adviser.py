"""What to run for a budget: method, iterations, step, averaging, weights, noise, grid, from public numbers alone.

`advise` rehearses (`learning.rehearsal`) what each choice would reach with the noise of the real number of records,
takes the smallest expected gap, and says what it expects and when noise will swamp the signal. No record is looked
at: the advice may be followed without any cost in privacy, and two runs with the same public numbers get the same
advice.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

from dpmpc.aggregation.grid import choose_grid
from dpmpc.errors import UsageError
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Average, Learning, Method
from dpmpc.learning.rehearsal import WIDEST, Descends, Rehearsed, Stage, Task
from dpmpc.learning.survey import Survey
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, delta_warning
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.law import DEFAULT_LAW, LAWS, Law
from dpmpc.privacy.question import Question
from dpmpc.privacy.sensitivity import Sensitivity, Weights

# of 1/(L + lam): below 2 every descent is stable, whatever the records. Longer steps would save releases, not noise,
# and overshoot where records share a direction, which is not public (docs/experiments.md, "How long a step")
STEP_SHARE = 1.5
LENGTHS = tuple(round(10 * 2 ** (k / 2)) for k in range(21))  # step times iterations: 10, 14, 20, ..., 10240
LEARNT = 2.6  # over lam: a length by which e^-5 is left of the slowest direction
FEWEST = 10  # iterations: tail averages need some
AS_GOOD = 1.2  # the longest descent within this factor of the best gap: real records are learnt more slowly
SWAMPED = 0.25  # of what there is to gain: a warning from here on
BETTER = 0.6  # of gradient descent's gap: another method is advised below it
SURVEY_NOISE = 0.04  # of the records: what the noise of a survey's counts may be
SURVEY_SHARES = (0.02, 0.3)  # of the squared budget mu^2 for a survey: least and most
LARGEST_SURVEY_NOISE = 0.1


@dataclass(frozen=True)
class Circumstances:
    """What is public of a run. columns: features without public bounds, to be surveyed first (0: none). spent: the mu^2
    of what the run has released already, such as its survey. weights: None where they are to be chosen."""

    owners: int
    smallest: int
    records: int
    dimension: int
    epsilon: float
    delta: float | None = None
    task: Task = "logistic"
    lam: float | None = None
    residual_clip: float = 1.0
    method: str | None = None
    noise: str | None = None  # of a method whose own noise may be pure
    columns: int = 0
    spent: float = 0.0
    weights: Weights | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        for name in ("owners", "records", "dimension"):
            check_count(name, getattr(self, name))
        if self.records < self.owners:
            raise UsageError(
                f"every owner holds at least one record; got {self.records} records of {self.owners} owners; mend "
                "--total or --owners"
            )
        check_count("smallest", self.smallest)
        if self.records < self.owners * self.smallest:
            raise UsageError(
                f"{self.owners} owners with at least {self.smallest} records hold at least "
                f"{self.owners * self.smallest}; got {self.records}; mend the total or the smallest size"
            )
        _check_names(self)

    @property
    def sizes(self) -> list[int]:
        """Owners' sizes as far as public: the smallest, the others alike."""
        if self.owners == 1:
            return [self.records]
        base, extra = divmod(self.records - self.smallest, self.owners - 1)
        return [self.smallest] + [base + (i < extra) for i in range(self.owners - 1)]

    def regularisation(self, method: str) -> float:
        """lam: as given, else the method's own."""
        return METHODS[method].lam if self.lam is None else self.lam


@dataclass(frozen=True)
class Choice:
    """One way to run. sigma: noise a coordinate on the aggregate; expected: its gap J - J*, of which `start` is to
    gain."""

    method: str
    noise: str
    iterations: int
    step: float | None
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
    """The advice: the best choice, its weights, grid and survey share, the best of every method, and warnings.

    followed: whether a run is planned by it; else it says what to expect of a run that was asked for.
    """

    choice: Choice
    weights: Weights
    lam: float
    grid_bits: int
    survey_share: float
    alternatives: list[Choice]
    warnings: list[str]
    followed: bool = True

    @property
    def surpassed(self) -> bool:
        """Whether another method's expected gap is smaller, though not by the factor BETTER."""
        return any(other.expected < self.choice.expected for other in self.alternatives)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        rows = [vars(choice) | {"left": choice.left} for choice in (self.choice, *self.alternatives)]
        rest = {k: v for k, v in vars(self).items() if k not in ("choice", "alternatives", "followed")}
        return {"advice": rows[0], "alternatives": rows[1:], **rest}


def advise(c: Circumstances) -> Advice:
    """The advice for these circumstances. Deterministic. Cost: some thousand products of a 1,000 x d matrix."""
    share = survey_share(c)
    # equal weights divide by m exactly; where sizes differ they pay for the smallest owner
    weights: Weights = c.weights or ("equal" if c.records == c.owners * c.smallest else "size")
    with threadpool_limits(1):  # small products: threads cost more than they save
        choices = [choice for method in _methods(c) if (choice := _best(c, method, weights, share)) is not None]
    if not choices:
        raise UsageError(
            f"--method {c.method} is for at most {WIDEST} features; there are {c.dimension}; use {DEFAULT_METHOD}"
        )
    # without a wish, the default comes first and another method must be clearly better
    best = min(choices, key=lambda x: x.expected * (1.0 if x.method == choices[0].method else 1 / BETTER))
    others = [choice for choice in choices if choice is not best]
    return Advice(best, weights, c.regularisation(best.method), _grid_bits(c, best, weights), share, others,
                  _warnings(c, best, share))  # fmt: skip


def survey_share(c: Circumstances) -> float:
    """The part of mu^2 for private preprocessing: such that the noise of a count is SURVEY_NOISE of the records."""
    if c.columns == 0:
        return 0.0
    low, high = SURVEY_SHARES
    return min(high, max(low, (survey_noise(c, 1.0) / SURVEY_NOISE) ** 2))


def survey_noise(c: Circumstances, share: float) -> float:
    """The noise of one count, as a part of the records, when the survey has this share of mu^2."""
    if c.delta is None:
        raise UsageError("a survey of columns without bounds needs a delta; none was given; add --delta or --bounds")
    survey = Survey(tuple(map(str, range(c.columns))))
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
                f"what a method will reach is rehearsed for {known}; nothing rehearses --method {c.method}; choose one "
                "of them, or train with it at parameters of your own"
            )
    unkept = [law.name.capitalize() for law in wished if not law.pure]
    if c.delta is None and unkept:
        pure = " or ".join(name for name, method in METHODS.items() if method.may_be_pure)
        raise UsageError(f"{unkept[0]} noise needs a delta; none was given; add --delta, or --method {pure}")


def _methods(c: Circumstances) -> tuple[str, ...]:
    if c.method is not None:
        return (c.method,)
    return tuple(
        name
        for name, method in METHODS.items()
        if _rehearsed(method) and c.task in method.tasks and (c.delta is not None or method.may_be_pure)
    )


def _law(c: Circumstances, method: Method) -> Law:
    """Of the method's noise."""
    return LAWS[c.noise if c.noise and method.may_be_pure else method.law_for(c.delta)]


def _sensitivity(c: Circumstances, method: str, weights: Weights) -> Sensitivity:
    """Of the opened mean, as if owners solved and computed exactly."""
    lam = c.regularisation(method)
    learning = Learning(method, c.task, lam, residual_clip=c.residual_clip, solver_tolerance=0.0)
    return METHODS[method].sensitivity(learning, c.sizes, weights, 0.0)


def _best(c: Circumstances, name: str, weights: Weights, share: float) -> Choice | None:
    stage = Stage(c.dimension, c.task, c.regularisation(DEFAULT_METHOD), c.residual_clip)  # one objective for all
    mu = 0.0 if c.delta is None else math.sqrt(mu_of_budget(c.epsilon, c.delta) ** 2 * (1 - share) - c.spent)
    method = METHODS[name]
    if isinstance(method, Descends):
        return _descent(c, name, stage, weights, mu)
    assert isinstance(method, Rehearsed)
    law, sensitivity = _law(c, method), _sensitivity(c, name, weights)
    if law.by_mu:
        scale = deviation = sensitivity.l2 / mu
    else:
        delta = None if law.pure else c.delta
        _, (row, *_) = law.solve(Question(method.coordinates(c.dimension), c.epsilon, delta, None, 1), sensitivity)
        scale, deviation = cast(float, row["scale"]), cast(float, row["deviation"])
    records = max(1, c.records // c.owners)
    expected = method.rehearse(stage, deviation, c.owners, records, c.regularisation(name))
    return None if expected is None else Choice(name, law.name, 1, None, "none", scale, expected, stage.start)


def _descent(c: Circumstances, name: str, stage: Stage, weights: Weights, mu: float) -> Choice:
    """The best length step x iterations, at the longest step that is stable on any records."""
    method = METHODS[name]
    assert isinstance(method, Descends)
    longest = STEP_SHARE / (stage.loss.L + stage.lam)
    delta_2 = _sensitivity(c, name, weights).l2
    found: list[Choice] = []
    for length in LENGTHS:
        if found and length > LEARNT / stage.lam:
            break
        iterations = max(FEWEST, math.ceil(length / longest))
        step, sigma = length / iterations, math.sqrt(iterations) * delta_2 / mu
        gaps = method.rehearse_descent(stage, sigma, iterations, step)
        average: Average = "tail" if gaps["tail"] < gaps["none"] else "none"
        found.append(Choice(name, method.law, iterations, step, average, sigma, gaps[average], stage.start))
        least = min(choice.expected for choice in found)
        if found[-1].expected > 2 * least:
            break
    return [choice for choice in found if choice.expected <= AS_GOOD * least][-1]


def _grid_bits(c: Circumstances, choice: Choice, weights: Weights) -> int:
    """The bits of the grid that `train` would choose for this sensitivity and noise."""
    divisor = c.owners if weights == "equal" else c.records
    delta_2 = _sensitivity(c, choice.method, weights).l2
    d = METHODS[choice.method].coordinates(c.dimension)
    return choose_grid(delta_2 * divisor, choice.sigma / delta_2, d).bits


def _warnings(c: Circumstances, choice: Choice, share: float) -> list[str]:
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
            + ("add --delta" if c.delta is None else f"leave out --noise {choice.noise}")
        )
    if share and survey_noise(c, share) > LARGEST_SURVEY_NOISE:
        found.append(
            f"the survey's noise is {survey_noise(c, share):.0%} of the records, too much to find ranges by; give "
            "--bounds"
        )
    text = delta_warning(c.delta, c.records) if c.delta is not None else None
    return found + ([text] if text else [])
