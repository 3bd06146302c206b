"""How far one owner's gradients lie apart, whatever its records are, and that plans and accounts take that."""

import numpy as np
import pytest

from dpmpc.learning.account import account
from dpmpc.learning.gradient import GRADIENT
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.method import Learning
from dpmpc.learning.settings import Spread
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of

SPREADS: tuple[Spread, ...] = ("theta", "fixed")


def gradient(theta: np.ndarray, records: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean gradient of the logistic loss, by its formula."""
    return np.asarray((-labels / (1 + np.exp(labels * (records @ theta)))) @ records / len(labels))


def widest_pair(theta: np.ndarray, rng: np.random.Generator) -> float:
    """How far two single records' gradients lie apart: the best of many symmetric pairs of one label."""
    length = float(np.linalg.norm(theta))
    along = -theta / length if length else np.eye(3)[0]
    across = np.cross(along, rng.standard_normal(3))
    across /= np.linalg.norm(across)
    tilt = np.linspace(0, np.pi / 2, 2000)[:, None]
    one, other = (np.sin(tilt) * along + sign * np.cos(tilt) * across for sign in (1, -1))
    ends = [-records / (1 + np.exp(records @ theta))[:, None] for records in (one, other)]
    return float(np.linalg.norm(ends[0] - ends[1], axis=1).max())


@pytest.mark.parametrize("spread", SPREADS)
def test_all_records_of_an_owner_move_its_vector_by_twice_the_reach_at_most(spread: Spread) -> None:
    """Owners of random records, and the worst ones, at models of every length; with theta it is attained at each."""
    learning = Learning(method="gradient", task="logistic", lam=0.1, step=1.0, spread=spread)
    rng = np.random.default_rng(4)
    assert GRADIENT.reach(learning) == LOGISTIC.G
    for length in (0.0, 0.3, 1.0, 3.0, 9.0):
        theta = rng.standard_normal(3)
        theta *= length / np.linalg.norm(theta)
        factor = GRADIENT.factor(learning, theta)
        for _ in range(60):
            owners = []
            for n in rng.integers(1, 6, 2):
                records = rng.standard_normal((n, 3))
                records /= np.linalg.norm(records, axis=1, keepdims=True)
                owners.append(gradient(theta, records, rng.choice([-1.0, 1.0], n)))
            assert factor * np.linalg.norm(owners[0] - owners[1]) <= 2 * GRADIENT.reach(learning)
        worst = factor * widest_pair(theta, rng)
        assert worst <= 2 * GRADIENT.reach(learning) * (1 + 1e-12)
        if spread == "theta":
            assert worst == pytest.approx(2 * GRADIENT.reach(learning), rel=1e-4)


@pytest.mark.parametrize("spread", SPREADS)
def test_a_plan_and_an_account_for_whole_owners_agree(spread: Spread) -> None:
    facts = Facts("r", "logistic", 4, (40, 55, 55), "public")
    asked = {"method": "gradient", "neighbours": "owner", "epsilon": 1.0, "delta": 1e-4, "spread": spread, "step": 1.0}
    plan = plan_of(Request(data="r", owners=3, iterations=5, grid_bits=20, **asked), facts)  # type: ignore[arg-type]
    told = account(owners=3, smallest=40, records=150, epsilon=1.0, delta=1e-4, iterations=5, neighbours="owner",
                   method="gradient", dimension=4)  # fmt: skip
    step = plan.grid.step / plan.divisor
    assert plan.derived.scale_steps * step == pytest.approx(told["scale"], rel=1e-4)
    assert plan.derived.mechanism.sensitivity.l2 * step == pytest.approx(plan.derived.sensitivity.l2, rel=1e-12)
