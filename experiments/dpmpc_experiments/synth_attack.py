"""Membership: can one tell from a synthetic table, or from all that was opened, whether a record is in it?

All records but one are known to the attacker; the last one is either an outlier, with a value in every column that
nobody else has, or a common record. Noise is drawn by the plans' own samplers. Two attackers: one sees everything that
both releases opened, and weighs it by the likelihood ratio, the best there is; one sees the rows alone, and counts
those that have the outlier's values. What they achieve gives a lower bound on epsilon, by Clopper and Pearson's
intervals over all trials, which must not exceed the promise (`verify.audit`).
"""

from functools import lru_cache

import numpy as np

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.lazy import dataclass
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.statistics.cells import Ints, RecordFields
from dpmpc.statistics.columns import Columns, category
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.pooled import pooled
from dpmpc.statistics.tables import STEP, Tables
from dpmpc.synthesis import asking
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import draw, model_of, structure
from dpmpc.tables.stats import noise_of, plan_of_tables
from dpmpc.verify.audit import Trials, epsilon_bound

DELTA = 1e-5
RECORDS = 300
NAMES = ("a", "b", "c", "d")
COLUMNS = Columns(tuple(category(name, ("usual", "other", "rare")) for name in NAMES))
RARE = 2


@dataclass(frozen=True)
class Found:
    """What an attack came to. `epsilon`: promised; `bound`: measured, from below; `linked`: the part of the tables with
    and without the outlier in which some row has all of its values."""

    epsilon: float
    attacker: str
    bound: float
    trials: int
    linked: tuple[float, float]

    @property
    def row(self) -> dict[str, object]:
        """As a line of a file."""
        with_it, without = self.linked
        return {"epsilon": f"{self.epsilon:g}", "attacker": self.attacker, "trials": str(self.trials),
                "bound": self.bound, "linked_with": with_it, "linked_without": without}  # fmt: skip


def attack(
    epsilon: float, trials: int, seed: int = 1, narrowed: float = 1.0, alpha: float = 0.05
) -> tuple[Found, Found]:
    """What both attackers find in so many trials. seed: of records, bits and drawing; noise has none. narrowed: what
    the noise is multiplied by, to see whether too little of it would be found out; alpha: the
    chance that a bound is wrong."""
    rng, prg = np.random.default_rng(seed), Prg.from_os()
    known = rng.integers(0, 2, (RECORDS - 1, len(NAMES)))
    mu = mu_of_budget(epsilon, DELTA)
    bits = rng.random(trials) < 0.5
    scores, rows = np.zeros((2, trials)), np.zeros(trials)
    for k, bit in enumerate(bits):
        first = _tables(())
        plan = _plan(first, (), epsilon_of_mu(mu * asking.FIRST**0.5, DELTA), ())
        opened = [_opened(first, plan, known, bool(bit), prg, narrowed)]
        shape = structure(Noisy(COLUMNS, opened[0][0]), None)
        second = _tables(shape.edges)
        last = _plan(second, shape.edges, epsilon, (plan.derived.mechanism,))
        opened.append(_opened(second, last, known, bool(bit), prg, narrowed))
        noisy = Noisy(COLUMNS, pooled([each for each, _ in opened]))
        drawn = draw(model_of(noisy, shape), noisy, RECORDS, rng)
        scores[0, k] = sum(ratio for _, ratio in opened) / mu
        same = sum((drawn[name] == RARE).astype(np.int64) for name in NAMES)
        scores[1, k], rows[k] = float((drawn["a"] == RARE).sum() + same.max()), float((same == len(NAMES)).any())
    scores[1] = (scores[1] - scores[1].mean()) / (scores[1].std() or 1.0)
    linked = float(rows[bits].mean()), float(rows[~bits].mean())
    made = []
    for name, score in zip(("everything that was opened", "the rows alone"), scores, strict=True):
        found = Trials(name, score, bits, mu, (mu, mu), epsilon, DELTA)
        made.append(Found(epsilon, name, epsilon_bound(found, alpha).epsilon, trials, linked))
    return made[0], made[1]


@lru_cache(maxsize=64)
def _tables(edges: tuple[tuple[str, str], ...]) -> Tables:
    return asking.second(COLUMNS, edges) if edges else asking.first(COLUMNS)


_PLANS: dict[object, Plan] = {}


def _plan(tables: Tables, edges: object, epsilon: float, before: tuple[Mechanism, ...]) -> Plan:
    key = (edges, epsilon)
    if key not in _PLANS:
        settings = {"epsilon": epsilon, "delta": DELTA, "engine": "clear"}
        _PLANS[key] = plan_of_tables(tables, (RECORDS,), "attack", None, settings, before=before)
    return _PLANS[key]


def _opened(
    tables: Tables, plan: Plan, known: Ints, bit: bool, prg: Prg, narrowed: float
) -> tuple[Opened, float]:  # fmt: skip
    """(what a release opens, the log of the likelihood ratio of the outlier to a common record, centred so that its
    mean is 0 without the outlier): <opened - sum without it, difference> / sigma^2."""
    zero, one = (_total(tables, known, value) for value in (0, RARE))
    noise = clear_noise(plan.derived.sampler, tables.coordinates, prg) * (narrowed * plan.grid.step / STEP)
    total = (one if bit else zero) + noise
    sigma = noise_of(plan) / STEP
    moved = one - zero
    return tables.opened(total, sigma, plan.sizes), float((total - zero) @ moved) / sigma**2


@lru_cache(maxsize=256)
def _cached(tables: Tables, known: bytes, value: int) -> Ints:
    cells = np.frombuffer(known, dtype=np.int64).reshape(-1, len(NAMES))
    whole = np.concatenate([cells, np.full((1, len(NAMES)), value)])
    records = RecordFields(len(whole), {column: whole[:, k] for k, column in enumerate(COLUMNS.columns)})
    return np.asarray(tables.layout.encode(records)[0])


def _total(tables: Tables, known: Ints, value: int) -> Ints:
    return _cached(tables, known.astype(np.int64).tobytes(), value)
