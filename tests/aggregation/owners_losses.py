"""What an owner's vectors lose between neighbouring records, by an independent computation on real ones."""

import math
from functools import lru_cache
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import dpmpc
from dpmpc.aggregation.owner.encoding import as_blocks, encode
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first
from dpmpc.errors import UsageError
from dpmpc.intake.hashing import bucket
from dpmpc.learning.method import METHODS, Learning
from dpmpc.learning.naming import NamingSource, votes_of
from dpmpc.learning.survey import Survey
from dpmpc.learning.vectors import Vectors
from dpmpc.records.blocks import Records
from dpmpc.records.columns import Surveyed
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Numeric, Schema
from dpmpc.statistics import cells
from dpmpc.statistics.columns import Quantity
from dpmpc.statistics.tables import STEP, Tables
from tests.aggregation.histories import least_epsilon
from tests.aggregation.mutants import (
    ALL,
    FEATURES,
    RECORDS,
    SIZES,
)

Floats = NDArray[np.float64]
BITS = 8 * 64 + 32  # votes of a text: of 64 bytes, and of so many bits of its digest (docs/words.md)
WIDE = 5  # records of a person, which all three owners have
STATED = 0.5  # by how much one of this owner's units moves its vector, if it says so
NUMBERS = (-1e300, -1.0, -0.3, 0.0, 0.999, 1.0, 49.99999, 1e300, math.nan)


def moves(plan: Plan, neighbours: str, rng: np.random.Generator) -> Floats:
    """(k, d) by how many grid steps what owner 0 sends moves between neighbouring records: real vectors, as its own
    code makes, clips and rounds them. Errors: UsageError where its records do not fit the plan."""
    if isinstance(plan.source, NamingSource):
        return _of_words(plan, plan.source, neighbours)
    found = []
    for some in _vectors(plan, neighbours, rng):
        (block,) = as_blocks(some, len(some), plan.dimension, len(some))
        steps = np.concatenate([encode(plan, row[None], 0) for row in block]).astype(np.float64)
        found += [a - b for a, b in combinations(steps, 2)]
    return np.array(found) * _owners_of(plan, neighbours)


def _owners_of(plan: Plan, neighbours: str) -> float:
    """How often one owner's move counts: a person's records may be alike at all owners, whose own processes hold the
    plan's number of theirs against what they have; all are nearly as large."""
    if neighbours != "person" or plan.sizes[1:] != SIZES[1:] or plan.owners != 3:
        return 1.0
    return plan.touched * min(plan.sizes) / max(plan.sizes)


def _rows_of(plan: Plan, neighbours: str) -> int:
    """How many records change: those that owners' processes keep of a person, or what a program takes."""
    if neighbours != "person":
        return 1
    return WIDE if isinstance(plan.source, Vectors) else min(plan.person_rows, RECORDS)


def _vectors(plan: Plan, neighbours: str, rng: np.random.Generator) -> list[Floats]:
    """Arrays (k, d): in each, all rows come from data sets of which any two are neighbours."""
    source = plan.source
    if isinstance(source, Vectors):
        return _of_program(plan, source, neighbours, rng)
    if isinstance(source, Learning):
        return _of_learning(plan, source, neighbours, rng)
    if isinstance(source, Survey):
        return _of_survey(source, neighbours, _rows_of(plan, neighbours), rng)
    assert isinstance(source, Tables)
    found = _of_tables(source, neighbours, _rows_of(plan, neighbours), rng, plan.capacity)
    return [each * RECORDS / plan.sizes[0] for each in found] if plan.capacity else found  # a mean over all places


def _of_program(plan: Plan, source: Vectors, neighbours: str, rng: np.random.Generator) -> list[Floats]:
    far = 100.0 * np.concatenate([np.eye(4), -np.eye(4), np.ones((1, 4)), -np.ones((1, 4)), rng.normal(size=(3, 4))])
    if neighbours == "owner":
        return [far if source.bound is None else source.bound.encode(far)]
    if neighbours == "stated":
        middle = rng.normal(size=4) * plan.clip / 4
        ways = far * (STATED / 2 / np.linalg.norm(far, axis=1))[:, None]
        return [np.stack([middle - way, middle + way]) for way in ways]
    k = _rows_of(plan, neighbours)
    rest = rng.normal(size=(RECORDS - k, 4))
    sets = [np.concatenate([np.tile(row, (k, 1)), rest]) for row in far]
    absent = dpmpc.clipped_mean(rest, plan.clip, RECORDS)
    means = np.stack([dpmpc.clipped_mean(rows, plan.clip, RECORDS) for rows in sets])
    return [means] if neighbours != "presence" else [np.stack([mean, absent]) for mean in means]


def _of_learning(plan: Plan, learning: Learning, neighbours: str, rng: np.random.Generator) -> list[Floats]:
    X, y = _mapped(plan, rng)
    d = X.shape[1] * learning.scores
    theta = rng.normal(size=d)
    thetas = [np.zeros(d), theta / np.linalg.norm(theta) / 2, 4 * theta, 60 * theta]
    if not METHODS[learning.method].repeats:
        thetas = thetas[:1]
    found = []
    for at in thetas:
        vectors = _at(learning, at, X, y, neighbours, _rows_of(plan, neighbours))
        vectors *= METHODS[learning.method].factor(learning, at)
        found += [vectors] if neighbours != "presence" else [np.stack([each, vectors[-1]]) for each in vectors[:-1]]
    return found


def _mapped(plan: Plan, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Records (n, d) and targets (n,), however odd, as the plan's schema maps them."""
    if plan.schema is None:
        raise UsageError("owners map their records by the plan's schema; this plan has none; plan again")
    schema = Schema.from_json(plan.schema)
    if {column.name for column in schema.columns} - {column.name for column in FEATURES}:
        raise UsageError("a file has the columns of the schema; one is missing; mend it")
    odd = np.array(NUMBERS)
    values = [_drawn(column, odd, rng) for column in schema.columns]
    X = np.empty((RECORDS, len(schema.feature_names)))
    schema.rows(values, X)
    labels = isinstance(schema.target, Labels)
    y = schema.target.values(np.arange(RECORDS) % 2 if labels else rng.choice(odd, RECORDS))  # type: ignore[arg-type]
    return X, np.where(np.isfinite(y), y, 1.0)


def _drawn(column: Any, odd: Floats, rng: np.random.Generator) -> Any:
    """Values of all records as they are read: numbers; places in a list; of a column that is read as either, numbers
    beside buckets of texts."""
    if isinstance(column, Numeric):
        return rng.choice(odd, RECORDS)
    if not isinstance(column, Surveyed):
        return rng.integers(-2, len(column.features), RECORDS)
    number = rng.random(RECORDS) < 0.5
    buckets = np.where(number, -1, rng.integers(0, 256, RECORDS))
    return np.stack([np.where(number, rng.choice(odd, RECORDS), np.inf), buckets], axis=1)


def _at(learning: Learning, theta: Floats, X: Floats, y: Floats, neighbours: str, wide: int) -> Floats:
    """(k, d) the vectors of data sets that differ in their first `wide` records, the last one in that these are absent;
    by owner, of sets of one record over and over. Output perturbation: the others are alike, and lie across the way
    that the first ones pull, so that nothing but the regulariser holds the optimum there."""
    size, d, n = np.linalg.norm(X, axis=1), X.shape[1], RECORDS
    some = np.unique(np.concatenate([np.argsort(size)[-5:], np.argsort(X @ theta[:d])[[0, -1]], [0, 1]]))
    rows = [(sign * X[k], t) for k in some for sign in (1, -1) for t in {-1.0, 1.0, float(y[k])}]
    along, across = np.eye(d)[0], np.append(0.0, np.ones(d - 1)) / math.sqrt(d - 1)
    if learning.method == "output":
        X, y = np.tile(along, (n, 1)), np.ones(n)
        turns = [(sign * math.cos(a) * across - math.sin(a) * along) for a in (0, 0.3, 0.6, 0.9) for sign in (1, -1)]
        rows = [*rows[:4], *((turn, t) for turn in turns for t in (1.0, -1.0))]
    else:
        rows += [(sign * np.ones(d) / math.sqrt(d), t) for sign in (1, -1) for t in (1.0, -1.0)]
    rows.append((np.zeros(d), 1.0))
    k = n if neighbours == "owner" else wide
    each_X = np.concatenate([np.vstack([np.tile(x, (k, 1)), X[k:]]) for x, _ in rows])
    each_y = np.concatenate([np.append(np.full(k, t), y[k:]) for _, t in rows])
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * n
    return METHODS[learning.method].vectors(learning, theta, Records(each_X, each_y), offsets)


def _of_survey(survey: Survey, neighbours: str, wide: int, rng: np.random.Generator) -> list[Floats]:
    number = np.array([[value, -1.0] for value in (-3.0, 0.0, 1.99999, 1.00001, 1e300, math.nan)])
    text = np.array([[math.inf, bucket % survey.buckets] for bucket in range(6)])
    columns = {"x": number, "y": number[::-1], "c": text}
    rest = {name: values[rng.integers(0, 6, RECORDS - wide)] for name, values in columns.items()}

    def mean(first: int | None) -> Floats:
        if neighbours == "owner":
            return survey.encode({name: np.repeat(values[[first]], RECORDS, 0) for name, values in columns.items()})
        first_too = {} if first is None else columns
        joined = {name: np.concatenate([first_too[name][[first] * wide], part]) if first_too else part
                  for name, part in rest.items()}  # fmt: skip
        return survey.encode(joined)

    return _of_sums([mean(k) for k in range(6)], None if neighbours == "owner" else mean(None), neighbours)


def _of_tables(
    tables: Tables, neighbours: str, wide: int, rng: np.random.Generator, places: bool
) -> list[Floats]:  # fmt: skip
    fields = tables.layout.fields
    if {field.name for field in fields} - set(ALL.names):
        raise UsageError("a file has the columns of the questions; one is missing; mend it")

    def drawn(field: Any, n: int) -> Any:
        if isinstance(field, Quantity):
            return rng.choice(np.array([*NUMBERS, field.low, field.high, (field.low + field.high) / 2]), n)
        return rng.integers(-2, 3, n)

    firsts, rest = ({f: drawn(f, n) for f in fields} for n in (12, RECORDS - wide))

    def total(first: int | None) -> Floats:
        firsts_of = {f: np.zeros(0, int) if first is None else np.repeat(firsts[f][[first]], wide) for f in fields}
        values = {f: np.append(firsts_of[f].astype(rest[f].dtype), rest[f]) for f in fields}
        if neighbours == "owner":
            values = {f: np.repeat(firsts[f][[first]], RECORDS) for f in fields}
        n = RECORDS - wide * (first is None)
        return tables.layout.encode(cells.RecordFields(n, values), None, 1)[0] * STEP

    empty = [total(None)] if places and neighbours != "owner" else []
    sums = [*(total(k) for k in range(12)), *empty]
    return _of_sums(sums, None if neighbours == "owner" else total(None), neighbours)


# Texts that a record may have: words, of which some are like one another, what has no votes, and what is no text.
TEXTS = ("oncology", "oncologz", "x", "\u00e9t\u00e9", "w" * 64, "w" * 65, "7", "2024-01-31", "", "a\u0301", "A b")


def _of_words(plan: Plan, naming: NamingSource, neighbours: str) -> Floats:
    """(k, cells) by how many grid steps a cell's margin moves between two records' texts, whatever others add: by its
    definition, the least of all votes' distances from where a sign turns, it moves by what the vote that moves most
    does, if the others' sums make that vote the least. The votes are those that the owner's own code adds up."""
    if neighbours != "record":
        raise UsageError("words are of records; there are other neighbours; plan again")
    if set(naming.columns) - {"c", "x"}:
        raise UsageError("a file has the columns of the words; one is missing; mend it")
    texts = [*TEXTS, *alike(naming.columns, naming.cells)]
    first, rest = len(texts), RECORDS - 1
    given = [*texts, *("stays" if k % 2 else TEXTS[0] for k in range(rest))]
    with opened({"c": given, "x": given}) as (table, _):
        whose = np.array([*range(first), *[first] * rest])
        (total,) = naming.sums(table, whose, first + 1)
    means = naming.mean_of(total[:-1] + total[-1], [RECORDS] * first)
    steps = np.concatenate([encode(plan, mean[None], 0) for mean in means]).astype(np.float64)
    cells = steps.reshape(first, -1, BITS)
    return np.array([np.abs(a - b).max(axis=1) for a, b in combinations(cells, 2)])


@lru_cache
def alike(columns: tuple[str, ...], cells: int) -> list[str]:
    """A word in the first one's cell in every column, if one is soon found."""
    tried = (f"w{k}" for k in range(1 << 18))
    return list(islice((word for word in tried if all(bucket(name, word, cells) == bucket(name, TEXTS[0], cells)
                                                      for name in columns)), 1))  # fmt: skip


def turned(plan: Plan, moved: Floats) -> float:
    """How likely something is opened that two neighbours do not share, at most. A vote's sign turns where its sum lies
    no further from there than it moves; its cell is opened where the noise makes up for all that is missing to the
    bound that parties decide by. Of each pair, over the cells in which they differ."""
    decision, scale = plan.derived.decision, plan.derived.sampler.scale
    assert decision is not None
    over = np.where(moved > 0, norm.sf((decision.least - moved) / scale), 0.0)
    return float(over.sum(axis=1).max())


def _of_sums(sums: list[Floats], absent: Floats | None, neighbours: str) -> list[Floats]:
    means = np.stack(sums) / RECORDS
    if neighbours != "presence":
        return [means]
    assert absent is not None
    return [np.stack([mean, absent / RECORDS]) for mean in means]


def loses(plan: Plan, moved: Floats, delta: float) -> float:
    """The least epsilon at `delta` that tells these neighbours apart: all releases, noise of the scale that parties
    draw, taken for continuous; failures, which come on top, left out."""
    scale = plan.derived.sampler.scale if plan.scale != 0 else 0.0
    worst = moved[np.argsort(np.linalg.norm(moved, axis=1))[-1]]
    if not worst.any():
        return 0.0
    if not scale:
        return math.inf
    if plan.law == "gaussian":
        mu2 = plan.releases * float(worst @ worst) / scale**2
        if mu2 > 400 and delta < 0.45:  # at epsilon mu^2 / 2 delta is 1/2 - 1 / (mu sqrt(2 pi)) at least
            return mu2 / 2
        return least_epsilon(min(mu2, 400.0), {}, delta)
    return by_laplace(plan, moved, delta)


def by_laplace(plan: Plan, moved: Floats, delta: float, mu: float = 0.0) -> float:
    """Of Laplace noise, after Gaussian releases that come to mu."""
    each = [moved[np.argsort((np.abs(moved) ** power).sum(axis=1))[-1]] for power in (1, 2)]
    scale = plan.derived.sampler.scale
    return max(laplace_epsilon(np.abs(far) / scale, plan.releases, delta, mu) for far in each)


def lost_by(plan: Plan, neighbours: str, delta: float, rng: np.random.Generator) -> float:
    """The same of all stages of a plan, whatever they open, and of what follows: Gaussian releases of fixed questions
    each, once those before are opened."""
    mu2, whole = 0.0, plan.epsilon
    while plan.source.schedule.before:
        moved = moves(plan.first, neighbours, rng)
        mu2 += square(plan.first, moved)
        delta -= fails(plan.first, moved, whole)
        if delta <= 0:
            return math.inf
        far = rng.choice([0.0, 1.0, 50.0]) * plan.first.derived.sampler.scale
        try:
            plan = after_first(plan, _opened(plan, far, rng))
        except UsageError:  # nothing stands out of it, and nothing follows
            plan = after_first(plan, _opened(plan, 50.0 * plan.first.derived.sampler.scale, rng))
    moved = moves(plan, neighbours, rng)
    delta -= fails(plan, moved, whole)
    if delta <= 0 < plan.delta:
        return math.inf
    if not mu2 or plan.law != "gaussian":
        return by_laplace(plan, moved, delta, mu2**0.5) if mu2 else loses(plan, moved, delta)
    return least_epsilon(min(mu2 + square(plan, moved), 400.0), {}, delta)


def fails(plan: Plan, moved: Floats, epsilon: float) -> float:
    """What delta pays where nothing but decisions can fail: both neighbours may be the one whose sign turns, and what
    is left of the promise has factors of e^epsilon."""
    if not isinstance(plan.source, NamingSource):
        return 0.0
    return (1 + math.exp(min(epsilon, 700.0))) * turned(plan, moved)


def _opened(plan: Plan, far: float, rng: np.random.Generator) -> Any:
    """A sum that a plan's first stage might open, whose coordinates are so far from 0; of words the signs of a few
    cells, which spell a word, or none."""
    if isinstance(plan.first.source, NamingSource):
        signs = np.zeros((plan.first.dimension // BITS, BITS), dtype=np.int64)
        some = rng.integers(0, len(signs), 3 if far else 0)
        signs[some] = rng.choice([-1, 1], (len(some), BITS))
        for name in plan.first.source.columns[:1] if far else ():
            signs[bucket(name, "oncology", len(signs))] = votes_of(name, "oncology")
        return signs.ravel()
    return np.rint(rng.normal(size=plan.first.dimension) * far).astype(np.int64)


def square(plan: Plan, moved: Floats) -> float:
    """mu^2 of the releases of a plan between these neighbours."""
    assert plan.law == "gaussian" and plan.derived.sampler.scale
    return plan.releases * float((moved**2).sum(axis=1).max()) / plan.derived.sampler.scale**2


def laplace_epsilon(shifts: Floats, releases: int, delta: float, mu: float = 0.0) -> float:
    """The epsilon at `delta` of so many releases of Laplace noise, each coordinate shifted by so many scales, and of a
    Gaussian one by mu deviations, from below: losses are rounded down to a grid before they are convolved, and some
    releases may be left out."""
    if not delta:
        return releases * float(shifts.sum())
    n, used = 1 << 16, min(releases, 64)
    largest = used * float(shifts.sum())
    if largest > 60:
        return largest - 60
    largest += mu**2 / 2 + 10 * mu
    h = 2 * (largest + 1e-9) / (n // 2)
    whole = np.ones(n // 2 + 1, dtype=complex)
    for s in shifts[shifts > 0]:
        edges = np.arange(math.floor(-s / h), math.floor(s / h) + 2) * h
        inside = np.clip(edges, -s, s)
        mass = np.diff(np.exp(-(s - inside) / 2) / 2)  # of x in (0, s), whose loss s - 2x lies there
        mass[0] += math.exp(-s) / 2
        mass[-1] += 0.5
        pmf = np.zeros(n)
        pmf[np.round(edges[:-1] / h).astype(int) % n] += mass
        whole = whole * np.fft.rfft(pmf)
    whole = whole**used
    if mu:
        edges = np.arange(math.floor(-10 * mu / h), math.floor(largest / h) + 2) * h
        pmf = np.zeros(n)
        pmf[np.round(edges[:-1] / h).astype(int) % n] = np.diff(norm.cdf(edges, mu**2 / 2, mu))
        whole = whole * np.fft.rfft(pmf)
    pmf = np.clip(np.fft.irfft(whole, n), 0, None)
    at = np.fft.fftfreq(n, 1 / n) * h
    low, high = 0.0, largest
    for _ in range(45):
        epsilon = (low + high) / 2
        over = at > epsilon
        more = float((pmf[over] * -np.expm1(epsilon - at[over])).sum()) > delta + 1e-13
        low, high = (epsilon, high) if more else (low, epsilon)
    return low
