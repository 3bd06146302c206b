"""A default hangs on nothing that has nothing to do with it: to say what would be chosen changes nothing else.

Settings are drawn; then each that was not said is said, as it was chosen, and the plan must stay the plan."""

import random
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.guarantee import noise_costs
from dpmpc.aggregation.plan.of_vectors import OfVectors
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
from dpmpc.estimators.fitting import Given, request_for
from dpmpc.learning.account import account
from dpmpc.learning.lengths import descent, of_length
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.survey_columns import ANY
from dpmpc.planning.adviser import Circumstances, advise
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, advised_with_survey, plan_of, settled
from dpmpc.privacy.sensitivity import weights_for
from dpmpc.records.schema import Labels, Numeric, Range, Schema
from dpmpc.settings import declared
from tests.runs import dpmpc as dpmpc_command

SAID: dict[str, tuple[Any, ...]] = {
    "epsilon": (0.3, 8.0),
    "delta": (0.0, 1e-6),
    "neighbours": ("presence", "owner"),
    "calibration": ("zcdp", "paper"),
    "law": ("laplace", "gaussian"),
    "grid_bits": (28,),
    "scale": (0.3,),
    "parties": (5, 7),
    "backend": ("shamir", "sharing"),
    "security": ("active",),
    "check_owners": ("zero",),
    "pool": (False, True),
    "security_bits": (50.0,),
    "min_owners": (2,),
    "engine": ("clear",),
    "method": ("gradient", "output", "functional"),
    "iterations": (1, 5, 60),
    "step": (0.2, 3.0),
    "momentum": (0.0, 0.6),
    "lam": (1e-4, 0.05),
    "average": ("none", "all"),
    "weights": ("equal", "size"),
    "radius": (4.0,),
    "residual_clip": (0.5,),
    "spread": ("fixed",),
    "precision": ("single",),
    "seed": (3,),
    "basis": ("linear", "additive"),
}
# `scale` replaces a rule: noise that no budget set has no budget to be advised by. The others say which records, or are
# something else in a plan than in what is asked.
REPLACES = ("scale", "run_id", "data", "records", "schema", "bounds", "data_id", "capacity", "missing", "classes")
Resolved = tuple[dict[str, Any], dict[str, Any]]  # what was chosen for each setting, and the plan without its name


def resolved(kind: type, plan: Plan, *others: object) -> Resolved:
    """Each setting of `kind` as the plan has it, else its source, else `others`."""
    found: dict[str, Any] = {}
    for name in declared(kind):
        for holder in (plan, plan.source, *others):
            if hasattr(holder, name):
                found[name] = getattr(holder, name)
                break
    found["engine"] = "mpc" if plan.parties else "clear"
    if not plan.parties:
        for name in ("parties", "threshold", "backend"):
            found.pop(name)
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    return found, {"plan": replace(plan, run_id="r", stage_of=""), "noise": noise}


def facts(task: str, sizes: tuple[int, ...]) -> Facts:
    return Facts("x", task, 12, sizes, "public", classes=3 if task == "softmax" else 2)


def trained(task: str, sizes: tuple[int, ...], given: Mapping[str, Any]) -> Resolved:
    said = {"epsilon": 1.0, "delta": 1e-5, "run_id": "r", "data": "synthetic", "owners": len(sizes)}
    request = Request(**(said | dict(given)))  # type: ignore[arg-type]
    return resolved(Request, plan_of(request, facts(task, sizes)), settled(request, facts(task, sizes))[0])


def surveyed(task: str, sizes: tuple[int, ...], given: Mapping[str, Any]) -> Resolved:
    target = Range("y", *ANY) if task == "ridge" else Labels("y", "yes", "no")
    draft = Schema(tuple(Numeric(f"c{k}", *ANY) for k in range(6)), target, True, task=task)
    said = {"epsilon": 3.0, "delta": 1e-5, "run_id": "r", "records": "x.csv", "target": "y", "owners": len(sizes)}
    request = Request(**(said | dict(given)))  # type: ignore[arg-type]
    return resolved(Request, advised_with_survey(request, draft, sizes, "x")[0])


def estimated(task: str, sizes: tuple[int, ...], given: Mapping[str, Any]) -> Resolved:
    """As an estimator asks: what its parameters do not have is not said."""
    kind = {"logistic": PrivateLogisticRegression, "ridge": PrivateRidge}[task]
    own = {name: value for name, value in given.items() if name in kind().get_params()}
    if own != dict(given):
        raise UsageError("an estimator has no such parameter; got one; leave it out")
    estimator = kind(**({"epsilon": 1.0, "delta": 1e-5} | own))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = np.zeros(sum(sizes))
    asked = Given(task, {}, y, groups, None, True, lambda: pytest.fail("no schema"), lambda schema: y)
    request = replace(request_for(estimator, asked), run_id="r")
    found, rest = resolved(Request, plan_of(request, facts(task, sizes)), settled(request, facts(task, sizes))[0])
    return {name: value for name, value in found.items() if name in estimator.get_params()}, rest


def of_vectors(task: str, sizes: tuple[int, ...], given: Mapping[str, Any]) -> Resolved:
    known = declared(OfVectors)
    if unknown := given.keys() - known.keys():
        raise UsageError(f"vectors have no such setting; got {unknown}; leave it out")
    said = {"epsilon": 1.0, "delta": 1e-5, "run_id": "r"} | dict(given)
    more: dict[str, Any] = {"records": sizes} if task == "ridge" else {}
    plan = Plan.create(owners=len(sizes), dimension=5, clip=1.0, **more, **said)
    found, rest = resolved(OfVectors, plan)
    if not more:  # equal, or numbers
        found.pop("weights")
    return found, rest


SURFACES: dict[str, Callable[[str, tuple[int, ...], Mapping[str, Any]], Resolved]] = {
    "train": trained,
    "train after a survey": surveyed,
    "an estimator": estimated,
    "vectors": of_vectors,
}
SIZES = ((300, 400, 500), (400, 400, 400), (3, 800, 700), (120,) * 3)


@lru_cache(maxsize=4096)
def _plan(surface: str, task: str, sizes: tuple[int, ...], given: tuple[tuple[str, Any], ...]) -> Resolved:
    return SURFACES[surface](task, sizes, dict(given))


def violations(surface: str, draws: int, seed: int) -> tuple[int, int, list[str]]:
    """(plans drawn that can be made, settings said, what was moved by saying them)."""
    rng, made, said, found = random.Random(seed), 0, 0, list[str]()
    for _ in range(draws):
        task = rng.choice(("logistic", "ridge", "softmax") if surface == "train" else ("logistic", "ridge"))
        sizes = rng.choice(SIZES)
        names = rng.sample(sorted(SAID), rng.randrange(4))
        given = tuple((name, rng.choice(SAID[name])) for name in sorted(names))
        try:
            chosen, plan = _plan(surface, task, sizes, given)
        except UsageError:
            continue
        made += 1
        for name, value in chosen.items():
            if name in dict(given) or name in REPLACES or value is None:
                continue
            said += 1
            try:
                again = _plan(surface, task, sizes, (*given, (name, value)))
            except UsageError as error:
                found.append(f"{task} {sizes} {dict(given)}: to say {name} = {value!r} is refused: {error}")
                continue
            if again[1] != plan:
                moved = [key for key in chosen if again[0].get(key) != chosen[key]]
                found.append(f"{task} {sizes} {dict(given)}: to say {name} = {value!r} moves {moved or 'the plan'}")
    return made, said, found


@pytest.mark.parametrize("surface", SURFACES)
def test_to_say_a_default_changes_nothing_else(surface: str) -> None:
    made, said, found = violations(surface, 8, 1)
    assert not found, "\n".join(found[:20])
    assert made >= 3 and said >= 40


def _as_it_was(request: Request, facts: Facts) -> Any:
    """A rule with the fault: whoever says how long is not advised, and owners weigh equally."""
    if request.iterations is None:
        return settled(request, facts)
    return replace(settled(request, facts)[0], weights=request.weights or "equal", momentum=request.momentum), None


def test_the_draws_find_a_default_that_hangs_on_another_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmpc.planning.training.settled", _as_it_was)
    _plan.cache_clear()
    found = violations("train", 8, 1)[2]
    _plan.cache_clear()
    assert any("to say iterations" in text and "weights" in text for text in found)
    assert any("to say iterations" in text and "momentum" in text for text in found)


def test_a_descent_is_filled_in_alike_whatever_of_it_is_said() -> None:
    """Of every part of the rule's answer, said; and a length that is said is used: as far as stable steps go."""
    for deviation in (3e-4, 3e-3, 3e-2, 0.3):
        for lam in (None, 0.02):
            whole = descent("logistic", LOGISTIC, deviation, 9, lam)
            for mask in range(16):
                said = {k: v for i, (k, v) in enumerate(whole._asdict().items()) if mask >> i & 1}
                assert descent("logistic", LOGISTIC, deviation, 9, **({"lam": lam} | said)) == whole
    for iterations in (1, 5, 40, 5000):
        how = of_length(LOGISTIC, 100.0, iterations=iterations)
        assert how.iterations == iterations and how.step <= 1.5 / (LOGISTIC.L + how.lam)
        assert how.momentum <= max(0.0, 1 - 8 / iterations)
        assert how.step * iterations <= 100.0 * (1 - how.momentum) * (1 + 1e-12)


def test_a_length_that_is_said_misses_no_more_than_plain_descents_of_it_did() -> None:
    """Rehearsed, at numbers of iterations and records that are usual: what is left of the gap is at most a tenth more
    than with a step of 1/(L + lam) and no momentum, and less than half of it in most."""
    halved = 0
    for records, epsilon in ((500, 2.0), (5000, 0.5), (5000, 2.0), (100_000, 1.0)):
        for iterations in (5, 20, 50):
            asked = {"owners": 5, "smallest": records // 5, "records": records, "dimension": 5, "delta": 1e-5}
            known = Circumstances(**asked, epsilon=epsilon, method="gradient", iterations=iterations)  # type: ignore[arg-type]
            plain = replace(known, step=1 / (LOGISTIC.L + 1e-3), momentum=0.0, lam=1e-3)
            filled, was = advise(known).choice.left, advise(plain).choice.left
            assert filled <= 1.1 * was
            halved += filled < was / 2
    assert halved >= 6


def test_owners_weigh_by_their_sizes_unless_somebody_says_otherwise() -> None:
    assert [weights_for(None, sizes) for sizes in ((3, 4), (4, 4), (7,))] == ["size", "equal", "equal"]
    assert [weights_for(said, (3, 4)) for said in ("equal", "size")] == ["equal", "size"]  # type: ignore[arg-type]
    for more in ({}, {"iterations": 20}, {"step": 1.0}, {"scale": 0.1}, {"calibration": "zcdp"}, {"method": "output"}):
        assert trained("logistic", (3, 800, 700), more)[0]["weights"] == "size"  # type: ignore[arg-type]
    assert account(method="gradient", owners=3, smallest=3, records=1503, epsilon=1.0, delta=1e-5, iterations=5)[
        "question"]["weights"] == "size"  # type: ignore[index]  # fmt: skip


def uneven(**given: Any) -> Plan:
    sizes = (3, 800, 700)
    request = Request(data="synthetic", owners=3, epsilon=1.0, delta=1e-5, iterations=5, run_id="r", **given)
    return plan_of(request, facts("logistic", sizes))


def test_what_a_choice_costs_in_noise_is_said_in_numbers() -> None:
    (said,) = noise_costs(uneven(weights="equal"))
    assert said.startswith("equal weights make the noise 167 times as large: the smallest owner, of 3, sets it")
    assert noise_costs(uneven()) == noise_costs(uneven(weights="size")) == []
    (said,) = noise_costs(uneven(neighbours="owner"))
    assert said.startswith("weights by size make the noise 1.6 times as large: the largest owner, of 800, sets it")
    assert noise_costs(uneven(neighbours="owner", weights="equal")) == []
    (said,) = noise_costs(uneven(calibration="zcdp"))
    assert said.startswith("calibration zcdp makes the noise 1.")
    assert noise_costs(uneven(grid_bits=uneven().grid.bits)) == []


def test_it_is_said_before_anything_is_spent_on_every_surface(tmp_path: Path) -> None:
    """`train`, with and without a survey, the plan alone, estimators, vectors: before a ledger has a line."""
    cost = "equal weights make the noise"
    lines = ["age,site,ill", *(f"{20 + k % 60},{'a' if k < 3 else 'bc'[k % 2]},{'ny'[k % 3 == 0]}" for k in range(900))]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.toml").write_text("age = [18, 100]\nill = ['n', 'y']\n")
    common = ["train", "--csv", tmp_path / "r.csv", "--target", "ill", "--owners-column", "site", "--epsilon", "2"]
    common += ["--delta", "1e-5", "--weights", "equal", "--iterations", "3", "--no-evaluate", "--engine", "clear"]
    refused = ["--budget", "0.01,1e-6", "--data-id", "uneven"]  # after it was said, and before anything is spent
    ways: list[tuple[int, list[Any]]] = [
        (0, ["--plan-only"]),
        (2, refused),
        (2, [*refused, "--bounds", tmp_path / "b.toml", "--preprocessing", "records"]),
    ]
    for k, (code, way) in enumerate(ways):
        said = dpmpc_command(*common, *way, "--out", tmp_path / str(k))
        text = " ".join((said.stdout + said.stderr).split())
        assert said.returncode == code and cost in text, text
        assert not list(tmp_path.rglob("ledger*.jsonl"))
    X, y = np.linspace(0, 1, 900)[:, None], np.arange(900) % 2
    with pytest.warns(UserWarning, match=f"before anything is spent: {cost}"):
        model = PrivateLogisticRegression(
            delta=1e-5, bounds=(0, 1), classes=[0, 1], iterations=3, weights="equal", preprocessing="records",
            engine="clear",
        )  # fmt: skip
        model.fit(X, y, owners=np.minimum(np.arange(900) // 3, 2))
    vectors: dict[str, Any] = {"owners": 2, "dimension": 3, "clip": 1.0, "records": (3, 900), "delta": 1e-5}
    with pytest.warns(UserWarning, match=f"before anything is spent: {cost}"):
        dpmpc.Aggregator(**vectors, weights="equal", engine="clear").close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dpmpc.Aggregator(**vectors, engine="clear").close()
