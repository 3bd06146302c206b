"""A record's presence: every bound against vectors with the record and with zeros in its place, and what lines say."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.guarantee import covers, neighbours_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.learning.functional import coordinates
from dpmpc.learning.method import METHODS, Learning
from dpmpc.learning.survey import Survey
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.composition import mechanism_for, spent
from dpmpc.privacy.entry import RELEASE, Entry, LedgerLine, packed, parsed
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.spread import logistic_reach, logistic_spread
from dpmpc.records.blocks import in_memory
from tests.refusals import refuses

N, D = 5, 3


def learning(method: str, task: str, **changes: Any) -> Learning:
    return Learning(method=method, task=task, lam=0.3, presence=True, solver_tolerance=1e-9, **changes)  # type: ignore[arg-type]


def sent(how: Learning, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    method = METHODS[how.method]
    vector = method.vectors(how, theta, in_memory(X, y), np.array([0, len(X)]))[0]
    return np.asarray(vector * method.factor(how, theta))


@pytest.mark.parametrize(
    ("method", "task", "attained"),
    [("gradient", "logistic", 0.999), ("gradient", "ridge", 0.999), ("gradient", "softmax", 0.8),
     ("output", "logistic", 0.25), ("output", "ridge", 0.3), ("functional", "logistic", 0.999)],
)  # fmt: skip
def test_no_record_that_is_absent_moves_an_owners_vector_further_than_is_claimed(
    method: str, task: str, attained: float
) -> None:
    """The owners' own code, with a record and with zero features in its place; adversarial ones among them."""
    how, rng, far = learning(method, task, classes=3 if task == "softmax" else 2), np.random.default_rng(7), 0.0
    d = coordinates(D) if method == "functional" else D * how.scores
    claimed = how.by_presence([N], "equal", d)
    assert claimed is not None
    for k in range(120):
        X = rng.standard_normal((N, D)) * (0.0 if method == "output" and k % 2 else 1.0)
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
        y = rng.integers(0, 3, N) * 1.0 if task == "softmax" else rng.choice([-1.0, 1.0], N)
        theta = rng.standard_normal(D * how.scores) * rng.choice([0.0, 1.0, 9.0])
        X[0] /= np.linalg.norm(X[0]) or 1.0
        if k % 2 and task != "softmax":
            direction = theta if np.any(theta) else np.eye(D)[0]
            X[0], y[0] = -direction / np.linalg.norm(direction), 1.0
        elif task == "softmax":
            X[0] = theta.reshape(D, 3)[:, 1] / (np.linalg.norm(theta.reshape(D, 3)[:, 1]) or 1.0)
            y[0] = 0.0
        gone = X.copy()
        gone[0] = 0.0
        moved = np.abs(sent(how, theta, X, y) - sent(how, theta, gone, y))
        assert moved.sum() <= claimed.l1 and moved.max() <= claimed.linf * (1 + 1e-12)
        far = max(far, float(np.linalg.norm(moved)) / claimed.l2)
    assert attained < far <= 1 + 1e-12


def test_what_a_gradient_reaches_at_a_public_model() -> None:
    """sigma(|theta|), by search; between half of how far two lie apart and all of it."""
    rng = np.random.default_rng(3)
    for norm in (0.0, 0.3, 1.0, 4.0, 12.0):
        z = rng.standard_normal((20_000, 2))
        z /= np.maximum(1.0, np.linalg.norm(z, axis=1))[:, None]
        sizes = np.linalg.norm(z, axis=1) / (1 + np.exp(norm * z[:, 0]))
        assert 0.98 * logistic_reach(norm) < sizes.max() <= logistic_reach(norm)
        assert logistic_reach(norm) <= logistic_spread(norm) <= 2 * logistic_reach(norm) * (1 + 1e-12)
    assert logistic_reach(0.0) / logistic_spread(0.0) == pytest.approx(0.5)
    assert max(logistic_reach(r) / logistic_spread(r) for r in np.linspace(0, 20, 2000)) == pytest.approx(
        0.694, abs=1e-3
    )


def test_surveys_and_clipped_means() -> None:
    rng = np.random.default_rng(1)
    survey = Survey(("a", "b"))
    for _ in range(50):
        row = survey.encode({name: np.array([[10.0 ** rng.uniform(-6, 9), -1.0]]) for name in ("a", "b")})
        assert 0.8 * survey.clip < np.linalg.norm(row) <= survey.clip and np.abs(row).sum() <= survey.sensitivity.l1 / 2
    plan = Plan.create(
        owners=2, dimension=4, clip=3.0, records=(5, 9), weights="equal", neighbours="presence", delta=1e-5
    )
    rows = rng.standard_normal((5, 4)) * 50
    gone = rows.copy()
    gone[0] = 0.0
    moved = np.linalg.norm(dpmpc.clipped_mean(rows, 3.0, 5) - dpmpc.clipped_mean(gone, 3.0, 5)) / 2
    found = plan.derived.sensitivity
    assert moved == pytest.approx(found.l2 - found.parts["rounding"]) and moved == pytest.approx(3.0 / (2 * 5))
    assert Plan.from_text(plan.to_text()) == plan and "absent" in neighbours_of(plan)


def planned(neighbours: str, **asked: Any) -> Plan:
    facts = Facts("x", "logistic", 4, (40, 50), "public")
    request: dict[str, Any] = {"data": "x", "epsilon": 1.0, "delta": 1e-5, "iterations": 4, "step": 1.0, **asked}
    return plan_of(Request(**request, neighbours=neighbours), facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "share"), [("gradient", 0.5), ("output", 0.5), ("functional", 2 / 3)])
def test_noise_for_a_record_s_presence(method: str, share: float) -> None:
    asked = {"method": method, "iterations": 4 if method == "gradient" else None}
    absent, replaced, owner = (planned(kind, **asked) for kind in ("presence", "record", "owner"))
    sizes = [plan.derived.mechanism.scale * plan.grid.step for plan in (absent, replaced)]
    assert sizes[0] / sizes[1] == pytest.approx(share, rel=0.01)
    every = {"presence", "record", "owner"}
    assert {*owner.levels} == every | {"person"}
    for plan, also in ((absent, {"presence"}), (replaced, {"presence", "record"}), (owner, every)):
        assert {kind for kind in ("presence", "record", "owner") if covers(plan, kind)} == also
        for kind in ("presence", "record", "owner"):
            if kind in also:
                Limits(neighbours=kind).check(plan)  # type: ignore[arg-type]
            else:
                with refuses("limits", setting="neighbours"):
                    Limits(neighbours=kind).check(plan)  # type: ignore[arg-type]
    again = replace(absent, neighbours="record")  # what a gradient is scaled by follows, and stands in no plan
    assert again.learning == replaced.learning and again.derived.mechanism == replaced.derived.mechanism
    assert '"presence":' not in absent.to_text() and Plan.from_text(absent.to_text()).learning.presence


def test_a_line_has_a_price_for_all_neighbours_of_which_something_is_proved() -> None:
    lines = {kind: entry_of(planned(kind), FIRST_ATTEMPT, 0) for kind in ("presence", "record", "owner")}
    for kind, line in lines.items():
        assert {line.neighbours, *dict(line.prices)} == {"presence", "record", "person", "owner"}
        read = parsed(packed(LedgerLine(RELEASE, line, "0" * 64, False, None)))
        assert read is not None and read.entry == line
        prices = [mechanism_for(line, n) for n in ("presence", "record", "owner", "person")]
        sizes = [m.sensitivity.l2 for m in prices if m is not None]
        assert len(sizes) == 4 and sizes == sorted(sizes), kind


def test_lines_without_a_price() -> None:
    """An owner's price is one for whatever is a part of an owner; a record's is none for presence; else infinite."""
    mechanism = Mechanism("gaussian", True, 1e4, Sensitivity.flat(100.0), 3)
    bare = Entry("r", 0, ("d",), mechanism, 1, 1.0, 1e-5, neighbours="record")
    assert spent([bare], "d", 1e-5, "record").epsilon < 1
    for kind in ("presence", "person", "owner", "stated"):
        assert spent([bare], "d", 1e-5, kind).epsilon == math.inf
        assert mechanism_for(replace(bare, neighbours="owner"), kind) == mechanism
        mine = mechanism_for(replace(bare, prices=(("owner", Sensitivity.flat(900.0)),)), kind)
        assert mine is not None and mine.sensitivity.l2 == 900.0
    only = replace(bare, neighbours="presence")
    assert mechanism_for(only, "record") is None and mechanism_for(only, "presence") == mechanism


def test_lines_of_older_formats_keep_their_prices() -> None:
    """Format 4: one number, in the law's norm, and one for owners."""
    entry = Entry("r", 3, ("d",), Mechanism("laplace", True, 100.0, Sensitivity.flat(20.0), 7), 5, 1.0, 1e-5)
    record = json.loads(packed(LedgerLine(RELEASE, entry, "0" * 64, False, None)))
    record |= {"v": 4, "neighbours": "record", "owner_sensitivity": 45.0}
    del record["prices"]
    record["mechanism"]["sensitivity"] = 20.0
    read = parsed(json.dumps(record).encode())
    assert read is not None and read.entry.prices == (("owner", Sensitivity.flat(45.0)),)
    assert spent([read.entry], "d", 0.0, "record").epsilon == pytest.approx(0.2)
    assert spent([read.entry], "d", 0.0, "presence").epsilon == pytest.approx(0.45)
