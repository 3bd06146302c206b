"""Random earlier runs as ledgers have them, what they cost by arithmetic of its own, and random schemas."""

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import binom

from dpmpc.privacy.book import Book, Reader
from dpmpc.privacy.entry import ATTEMPT, GENESIS, RELEASE, Entry, LedgerLine, digest_of, packed
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.records.schema import Categorical, Column, Labels, Numeric, Scale, Schema

OTHER = "f" * 64  # the digest of somebody else's records
_U, _W = np.polynomial.legendre.leggauss(80)


# -- what it costs, by another route -----------------------------------------------------------------------------------
def gaussian_delta(mu: float, epsilon: float) -> float:
    """The hockey-stick divergence of N(mu, 1) from N(0, 1), as the integral of p - e^epsilon q where it is positive."""
    start = epsilon / mu + mu / 2
    ends = [0.0, *np.minimum(2.0 ** np.arange(-6, 6) / mu, 40.0 + mu)]  # it rises over 1 / mu and falls over 1
    ends = sorted({*ends, 0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0 + mu})
    total = 0.0
    for low, high in itertools.pairwise(ends):
        y = (low + high) / 2 + (high - low) / 2 * _U
        p = np.exp(-((start + y - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
        total += float((high - low) / 2 * (_W * p * -np.expm1(-mu * y)).sum())
    return total


def pure_delta(losses: dict[float, int], epsilon: float) -> float:
    """Of randomised responses with these losses: the sum over all outcomes, each loss by its own binomial law (Kairouz,
    Oh, Viswanath 2015), nothing rounded."""
    sums, masses = np.zeros(1), np.ones(1)
    for loss, count in losses.items():
        true = np.arange(count + 1)
        p = binom.pmf(true, count, 1 / (1 + math.exp(-loss)))
        keep = p > 1e-30
        sums = (sums[:, None] + (2 * true[keep] - count) * loss).reshape(-1)
        masses = (masses[:, None] * p[keep]).reshape(-1)
        keep = masses > 1e-30  # leaving outcomes out can only lower what is asked of the accountant
        sums, masses = sums[keep], masses[keep]
    over = sums > epsilon
    return float((masses[over] * -np.expm1(epsilon - sums[over])).sum())


def least_epsilon(mu2: float, losses: dict[float, int], delta: float) -> float:
    """No less may be said, at `delta`, of Gaussian releases whose mu^2 sum to this and of pure releases with these
    losses: what the costlier of both groups costs alone."""
    pure = math.fsum(loss * count for loss, count in losses.items())
    if math.isinf(mu2 + pure) or (mu2 and not delta):
        return math.inf
    found = 0.0 if delta else pure
    mu = math.sqrt(mu2)
    if mu and delta:
        found = max(found, _inverse(lambda e: gaussian_delta(mu, e), delta, mu2 / 2 + 40 * mu + 1))
    if pure and delta:
        found = max(found, _inverse(lambda e: pure_delta(losses, e), delta, pure))
    return found


def _inverse(function, delta: float, high: float) -> float:  # type: ignore[no-untyped-def]
    low = 0.0
    if function(low) <= delta:
        return 0.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > delta else (low, middle)
    return low


# -- earlier runs ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class History:
    """Ledgers, and the releases that are in them on the records asked about, each once."""

    books: tuple[Book, ...]
    spent: tuple[Entry, ...]

    def simple(self, neighbours: str, delta: float) -> float:
        """Each release's own epsilon, and the deltas added: no more need ever be said."""
        found, cache = 0.0, dict[float, float]()
        for entry in self.spent:
            mu2, losses = History((), (entry,)).price(neighbours)
            if mu2 not in cache:
                cache[mu2] = least_epsilon(mu2, {}, delta / len(self.spent))
            found += cache[mu2] + sum(losses)
        return found

    def price(self, neighbours: str) -> tuple[float, dict[float, int]]:
        """(the sum of mu^2, epsilon of pure releases -> how many) for these neighbours; inf where no bound is known."""
        mu2, losses = 0.0, dict[float, int]()
        for entry in self.spent:
            moved: Sensitivity | None = entry.mechanism.sensitivity
            if neighbours == "owner" and entry.neighbours != "owner":
                moved = dict(entry.prices).get("owner")
            ratio = math.inf if moved is None else moved.l2 / entry.mechanism.scale  # drawn alike in every norm
            if entry.mechanism.law == "gaussian":
                mu2 += ratio**2
            else:
                losses[ratio] = losses.get(ratio, 0) + 1
        return mu2, losses


def drawn_history(rng: random.Random, data: str, names: tuple[str, ...], folder: Path) -> History:
    """Up to three runs of up to three attempts, as two or three parties wrote them down: some stopped early, some
    ledgers copied under another name, some about other records."""
    books: list[Book] = []
    spent: list[Entry] = []
    palette = [(rng.choice(["gaussian", "gaussian", "laplace"]), 10 ** rng.uniform(-2, 0.3)) for _ in range(2)]
    for k in range(rng.choice([0, 1, 1, 2, 3])):
        law, ratio = rng.choice(palette)
        mechanism = Mechanism(law, True, 1000.0, Sensitivity.flat(1000.0 * ratio), 3)
        about = rng.choice([(data,), (data,), (data, OTHER), (OTHER,)])
        neighbours = rng.choice(["record", "record", "owner"])
        whole = rng.choice([None, 3000.0 * ratio]) if neighbours == "record" else 1000.0 * ratio
        prices = () if whole is None else (("owner", Sensitivity.flat(whole)),)
        planned = rng.choice([1, 2, 5, 30])
        entry = Entry(f"run{k}", 0, about, mechanism, planned, 1.0, 1e-5, names, 0, neighbours, prices)
        lines: list[list[LedgerLine | Entry]] = [[] for _ in range(rng.choice([2, 3]))]
        first = 0
        for attempt in range(rng.choice([1, 1, 2, 3])):
            entry = replace(entry, attempt=attempt, token=f"{rng.getrandbits(64):016x}")
            ends = [rng.randint(first, planned) for _ in lines]
            for party, end in zip(lines, ends, strict=True):
                party.append(LedgerLine(ATTEMPT, replace(entry, release=first), "", False, None))
                party += [replace(entry, release=number) for number in range(first, end)]
            if data in about:
                spent += [replace(entry, release=number) for number in range(first, max(ends))]
            first = max(ends)  # nobody opens what anybody has a line of
        for i, party in enumerate(lines):
            text = _written(party, f"ledger_{i}.jsonl")
            for copy in range(rng.choice([1, 1, 1, 2])):
                reader = Reader(folder / f"run{k}-{copy}" / f"ledger_{i}.jsonl")
                reader.feed(text)
                books.append(reader.book())
    rng.shuffle(books)
    return History(tuple(books), tuple(spent))


def _written(lines: Sequence[LedgerLine | Entry], name: str) -> bytes:
    """A ledger's bytes, chained."""
    head, out = GENESIS, b""
    for number, value in enumerate(lines):
        line = value if isinstance(value, LedgerLine) else LedgerLine(RELEASE, value, "", False, None)
        line = packed(replace(line, prev=head, first=None if number else name))  # type: ignore[assignment]
        head, out = digest_of(line), out + line + b"\n"  # type: ignore[arg-type, operator]
    return out


def drawn_scale(rng: random.Random, low: float) -> Scale:
    drawn = rng.random()
    return "unit" if drawn < 0.3 else "log" if low >= 0 and drawn > 0.8 else "centred"


# -- schemas -----------------------------------------------------------------------------------------------------------
def drawn_schema(rng: random.Random) -> Schema:
    """One to five columns, numbers and lists, any ranges, an intercept or none, either missing rule."""
    columns: list[Column] = []
    for k in range(rng.randint(1, 5)):
        if rng.random() < 0.6:
            low = rng.choice([0.0, -1e6, rng.uniform(-5, 5)])
            columns.append(Numeric(f"c{k}", low, low + rng.choice([1e-9, 1.0, 1e7]), drawn_scale(rng, low)))
        else:
            columns.append(Categorical(f"c{k}", tuple(f"v{i}" for i in range(rng.randint(2, 6)))))
    label = Labels("outcome", ("1",), rng.choice([("0",), ("0", "2"), None]))
    missing = rng.choice(["fill", "fill", "drop"])
    return Schema(tuple(columns), label, rng.random() < 0.7, missing, rng.choice(["public", "public", "data"]))


def check_schema(schema: Schema, seed: int) -> None:
    """Own count of features, and that records however odd come to lie in the unit ball: what sensitivities rest on."""
    rng = np.random.default_rng(seed)
    odd = np.array([0.0, -1e300, 1e300, math.nan, 1.0, -1.0, 1e-300, 0.5])
    values = [
        rng.choice(odd, 40) * rng.uniform(0, 2, 40)
        if isinstance(column, Numeric)
        else rng.integers(-2, len(column.values), 40)
        for column in schema.columns
    ]
    d = sum(1 if isinstance(column, Numeric) else len(column.values) for column in schema.columns) + schema.intercept
    assert len(schema.feature_names) == d
    X = np.empty((40, d))
    schema.rows(values, X)
    places = schema.design.places(values).astype(np.float32)  # what is kept of records in single precision
    for rows in (X, schema.design.rows(places, schema.design.factors(places))):
        assert max(math.fsum(float(x) ** 2 for x in row) for row in rows) <= 1
    assert Schema.from_json(schema.to_json()).digest == schema.digest
