"""The public Python API: the page's code, bad input, notebooks, threads, iterables, and no process left behind."""

import asyncio
import importlib
import inspect
import math
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.here import Here
from dpmpc.mpc.mpyc.runtime import import_mpyc
from dpmpc.privacy.ledgers import read_ledger
from tests.refusals import Rule, breaks, refuses
from tests.runs import HANG, alive, children_of, own_addresses, wait_until

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
SMALL = {"owners": 3, "dimension": 4, "clip": 1.0, "epsilon": 1.0, "delta": 1e-3}


def test_the_pages_code_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    (tmp_path / "page.py").write_text("\n".join(blocks))  # as a script: no `if __name__ == "__main__"` is needed
    result = subprocess.run(
        [sys.executable, "page.py"], capture_output=True, text=True, timeout=HANG, check=False, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "epsilon = 1, delta = 1e-05; neighbours: one owner's whole vector replaced" in result.stdout
    assert "as the caller states" in result.stdout and result.stdout.count("a vector") == 2
    assert len(list((tmp_path / "runs" / "mine").glob("ledger_*.jsonl"))) == 3
    assert dpmpc.Plan.read(tmp_path / "plan.json").owners == 4


def test_a_package_that_the_pages_name_is_there_when_it_is_used() -> None:
    """`import dpmpc` alone; what is no package is still no attribute."""
    names = "dpmpc.records.__name__, dpmpc.privacy.__name__, hasattr(dpmpc, 'dat'), hasattr(dpmpc, '_x')"
    code = f"import dpmpc; print({names})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["dpmpc.records", "dpmpc.privacy", "False", "False"]


def test_every_public_name_has_one_home_and_says_what_it_is() -> None:
    for name in dpmpc.__all__:
        thing = getattr(dpmpc, name)
        home = importlib.import_module(f"dpmpc.{dpmpc._HOMES[name]}")
        assert getattr(home, name) is thing
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__ and thing.__module__ == home.__name__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dpmpc.nothing  # noqa: B018


def test_names_that_texts_tell_are_there() -> None:
    """Every `dpmpc.part.Name` that a docstring, a message or a page of data names can be had under that name."""
    pattern = re.compile(r"\bdpmpc(?:\.[a-z]+)+\.[A-Z][A-Za-z]+\b")
    root = PAGE.parents[1]
    files = [*(root / "dpmpc").rglob("*.py"), *(root / "docs").rglob("*.md")]
    told = {name for file in files for name in pattern.findall(file.read_text(encoding="utf-8"))}
    assert "dpmpc.intake.Spelling" in told
    missing = []
    for name in sorted(told):
        module, _, last = name.rpartition(".")
        try:
            getattr(importlib.import_module(module), last)
        except ImportError:
            continue  # what needs a library that is not installed
        except AttributeError:
            missing.append(name)
    assert not missing, missing


def test_importing_dpmpc_imports_next_to_nothing() -> None:
    code = "import sys, dpmpc; print([m for m in ('numpy', 'scipy', 'sklearn', 'mpyc', 'mpmath') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_noise_mpc_and_clear_give_the_exact_mean() -> None:
    vectors = np.random.default_rng(1).normal(size=(3, 4)) / 4
    means = []
    for engine in ("mpc", "clear"):
        with dpmpc.Aggregator(**SMALL, engine=engine, scale=0.0, releases=2) as aggregator:
            means.append(aggregator.mean(vectors))
            assert np.array_equal(aggregator.sum(vectors), 3 * means[-1])
            assert aggregator.guarantee.epsilon == float("inf")
    assert np.array_equal(*means)
    np.testing.assert_allclose(means[0], vectors.mean(axis=0), atol=aggregator.plan.grid.step)


def test_vectors_are_clipped_and_weighted() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 0.5], [0.3, 0.0]])
    settings = {**SMALL, "dimension": 2}
    with dpmpc.Aggregator(**settings, engine="clear", scale=0.0, weights=[1, 2, 5]) as aggregator:
        expected = (np.array([0.6, 0.8]) + 2 * vectors[1] + 5 * vectors[2]) / 8
        np.testing.assert_allclose(aggregator.mean(vectors), expected, atol=aggregator.plan.grid.step)


def test_an_iterable_is_never_held_whole() -> None:
    """40,000 vectors of 60 coordinates go over several frames and the window of consent, one row at a time."""
    m = 40_000
    seen: list[weakref.ref[np.ndarray]] = []
    most = 0

    def rows() -> Iterator[np.ndarray]:
        nonlocal most
        for k in range(m):
            if k % 1000 == 0:
                most = max(most, sum(ref() is not None for ref in seen))
            row = np.full(60, (k % 7) / 100)
            seen.append(weakref.ref(row))
            yield row
            del row

    with dpmpc.Aggregator(
        owners=m, dimension=60, clip=1.0, epsilon=1.0, delta=1e-5, scale=0.0, releases=2, pool=False
    ) as aggregator:
        mean = aggregator.mean(rows())
        exact = np.mean([(k % 7) / 100 for k in range(m)])
        np.testing.assert_allclose(mean, exact, atol=2 * aggregator.plan.grid.step)
        whole = np.repeat([(k % 7) / 100 for k in range(m)], 60).reshape(m, 60)
        assert np.array_equal(aggregator.mean(whole), mean)
    assert most <= 1


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.full((3, 4), np.nan), breaks("range")),
        (np.full((3, 4), np.inf), breaks("range")),
        (np.zeros((3, 5)), breaks("shape", 4)),
        (np.zeros((2, 4)), breaks("shape", 3, 2)),
        (np.zeros((4, 4)), breaks("shape", 3)),
        ([np.zeros(4), np.zeros(4)], breaks("shape", 2)),
        (["a", "b", "c"], breaks("type", 4)),
        (7, breaks("shape", 4)),
    ],
)
def test_bad_vectors_are_refused_and_nothing_is_spent(vectors: object, message: Rule, tmp_path: Path) -> None:
    with dpmpc.Aggregator(**SMALL, releases=2, engine="clear") as aggregator:
        with refuses(message):
            aggregator.mean(vectors)
        assert aggregator.session.next == 0


def test_a_refused_vector_leaves_the_parties_ready(tmp_path: Path) -> None:
    good = np.zeros((3, 4))
    with dpmpc.Aggregator(**SMALL, releases=2, out=tmp_path / "run") as aggregator:
        with refuses("range"):
            aggregator.mean(np.full((3, 4), np.nan))
        for _ in range(2):
            aggregator.mean(good)
        with refuses("over", 2):
            aggregator.mean(good)
        assert len(read_ledger(tmp_path / "run" / "ledger_0.jsonl").entries) == 2
    with refuses("over"):
        aggregator.mean(good)
    aggregator.close()  # twice is once


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip": 0.0}, breaks("range", 0)),
        ({"epsilon": -1.0}, breaks("range", -1, setting="epsilon")),
        ({"delta": 2.0}, breaks("range", 2, setting="delta")),
        ({"owners": 0}, breaks("range", 0)),
        ({"weights": [1, 2]}, breaks("shape", 2)),
        ({"weights": "size"}, breaks("type", "size")),
        ({"law": "cauchy"}, breaks("choice", "cauchy")),
        ({"backend": "magic"}, breaks("choice", "magic")),
        ({"threshold": 2}, breaks("range", 2, setting="threshold")),
        ({"releases": 0}, breaks("range", 0, setting="releases")),
        ({"engine": "gpu"}, breaks("choice", "gpu", setting="engine")),
        ({"sensitivity": 0.0}, breaks("range", 0, setting="sensitivity")),
        ({"calibration": "loose"}, breaks("choice", "loose", setting="calibration")),
    ],
)
def test_what_no_run_can_do_is_refused_before_any_process_starts(changes: dict[str, object], message: Rule) -> None:
    before = children_of(os.getpid())
    with refuses(message):
        dpmpc.Aggregator(**{**SMALL, **changes})  # type: ignore[arg-type]
    wait_until(lambda: set(before).issuperset(children_of(os.getpid())))


def test_in_a_notebook_where_a_loop_runs_already() -> None:
    async def cell() -> np.ndarray:
        return dpmpc.private_mean(np.zeros((3, 4)), clip=1.0, epsilon=1.0, delta=1e-3)

    assert asyncio.run(cell()).shape == (4,)


def test_neighbours_are_what_is_given() -> None:
    for settings in ({"neighbours": "owner"}, {"neighbours": "stated", "sensitivity": 0.1}, {}):
        plan = dpmpc.Plan.create(**SMALL, **settings)  # type: ignore[arg-type]
        assert plan.neighbours == settings.get("neighbours", "owner")
    for settings, about in (
        ({"neighbours": "record"}, "sensitivity"),
        ({"neighbours": "owner", "sensitivity": 0.1}, "sensitivity"),
        ({"neighbours": "nobody"}, "neighbours"),
    ):
        with refuses("choice", settings["neighbours"], setting=about):
            dpmpc.Aggregator(**SMALL, **settings)  # type: ignore[arg-type]


NO_NUMBERS = {
    "complex": np.ones((3, 4)) * 1j,
    "times": np.zeros((3, 4), dtype="datetime64[s]"),
    "texts": np.full((3, 4), "1"),
    "texts as objects": np.full((3, 4), "1", dtype=object),
    "masked": np.ma.masked_all((3, 4)),
}


@pytest.mark.parametrize("vectors", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
def test_what_is_no_real_number_is_not_made_one(vectors: np.ndarray) -> None:
    with dpmpc.Aggregator(**SMALL, engine="clear") as aggregator:  # type: ignore[arg-type]
        with refuses("type", 4):
            aggregator.mean(vectors)
        assert aggregator.mean(np.ones((3, 4), dtype=bool)).shape == (4,)  # nothing was spent before


def test_in_threads() -> None:
    def mean(k: int) -> float:
        vectors = np.full((3, 4), k / 10)
        return float(dpmpc.private_mean(vectors, clip=1.0, epsilon=1.0, delta=1e-3, scale=0.0)[0])

    with ThreadPoolExecutor(3) as pool:
        np.testing.assert_allclose(list(pool.map(mean, range(3))), [0, 0.1, 0.2], atol=1e-3)


@pytest.mark.parametrize("engine", ["clear", "mpc"])
def test_threads_that_share_an_aggregator_make_the_planned_releases_and_no_more(engine: str) -> None:
    began = threading.Barrier(6)

    def one(aggregator: dpmpc.Aggregator) -> object:
        began.wait()
        try:
            return aggregator.mean(np.full((3, 4), 0.25))
        except dpmpc.UsageError as error:
            return error

    settings = {**SMALL, "releases": 4, "scale": 0.0, "engine": engine}
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with dpmpc.Aggregator(**settings) as aggregator, ThreadPoolExecutor(6) as pool:  # type: ignore[arg-type]
            found = list(pool.map(one, [aggregator] * 6))
            assert aggregator.report()["releases_made"] == 4
    finally:
        sys.setswitchinterval(switch)
    means = [each for each in found if isinstance(each, np.ndarray)]
    assert len(means) == 4
    np.testing.assert_allclose(means, 0.25, atol=1e-3)
    assert all("all are made" in str(each) for each in found if isinstance(each, dpmpc.UsageError))


def test_vectors_that_ask_for_a_release_themselves_are_refused() -> None:
    with dpmpc.Aggregator(**{**SMALL, "engine": "clear"}) as aggregator:  # type: ignore[arg-type]
        vectors = (aggregator.mean(np.zeros((3, 4))) for _ in range(3))
        with refuses("over"):
            aggregator.mean(vectors)
        assert aggregator.report()["releases_made"] == 0


def test_an_aggregator_that_is_closed_under_a_release_says_so() -> None:
    begun, closed = threading.Event(), threading.Event()

    def late() -> Iterator[np.ndarray]:
        yield np.zeros(4)
        begun.set()
        closed.wait()
        yield from np.zeros((2, 4))

    with ThreadPoolExecutor(1) as pool:
        aggregator = dpmpc.Aggregator(**SMALL)  # type: ignore[arg-type]
        waiting = pool.submit(aggregator.mean, late())
        begun.wait()
        aggregator.close()
        closed.set()
        with pytest.raises(dpmpc.DpmpcError):
            waiting.result()


ENDINGS = {
    "the interpreter ends": "",
    "an exception flies": "raise ValueError('mine')",
    "it is killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_no_process_is_left_behind(ending: str) -> None:
    code = f"""
import os, sys, numpy as np, dpmpc
from tests.runs import children_of
a = dpmpc.Aggregator(owners=3, dimension=4, clip=1.0, epsilon=1.0, delta=1e-3, releases=5)
a.mean(np.zeros((3, 4)))
print(*children_of(os.getpid()), flush=True)
{ending}
"""
    root = Path(__file__).parents[1]
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=False, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    children = [int(word) for word in result.stdout.split()]
    assert len(children) == 3, result.stderr
    wait_until(lambda: alive(children) == [])
    if not ending:
        assert result.returncode == 0 and result.stderr == "", result.stderr
    else:
        assert ("mine" in result.stderr) == ("mine" in ending)


def test_a_party_that_dies_is_named_and_ends_the_rest() -> None:
    before = children_of(os.getpid())
    with refuses("peer", 1, "SIGKILL"):
        with dpmpc.Aggregator(**SMALL, releases=1000, pool=False) as aggregator:
            children = [child for child in children_of(os.getpid()) if child not in before]
            assert len(children) == 3
            for k in range(1000):
                aggregator.mean(np.zeros((3, 4)))
                if k == 5:
                    os.kill(children[1], signal.SIGKILL)
    wait_until(lambda: alive(children) == [])


def test_owners_and_parties_on_their_own(tmp_path: Path) -> None:
    """Two owners and three parties, each by its own object in a thread of its own, on addresses of this test."""
    import_mpyc()  # its warnings at import cannot be silenced in a thread alone
    settings = {**SMALL, "owners": 2}
    plan = dpmpc.Plan.create(**settings, releases=3, scale=0.0)
    plan.write(tmp_path / "plan.json")
    addresses = own_addresses(3)[1::2]
    common = {"wait": HANG, "limits": dpmpc.Limits(epsilon=math.inf)}
    parties = [
        dpmpc.Party(tmp_path / "plan.json", i, addresses, out=tmp_path / f"party{i}", **common) for i in range(3)
    ]
    threads = [threading.Thread(target=party.run) for party in parties]
    for thread in threads:
        thread.start()

    def owner(index: int) -> list[np.ndarray]:
        with dpmpc.Owner(tmp_path / "plan.json", index, addresses, **common) as me:
            return [me.mean(np.full(4, (index + 1) * k / 10)) for k in range(3)]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(owner, range(2))
    for thread in threads:
        thread.join(HANG)
    for k in range(3):
        assert np.array_equal(first[k], second[k])
        np.testing.assert_allclose(first[k], 0.15 * k, atol=plan.grid.step)
    assert (tmp_path / "party2" / "ledger_2.jsonl").exists()


def test_every_owner_may_be_a_party(tmp_path: Path) -> None:
    plan = dpmpc.Plan.create(**{**SMALL, "owners": 3}, releases=3, scale=0.0, role="both")
    plan.write(tmp_path / "plan.json")
    addresses = own_addresses(3)[1::2]
    common = {"wait": HANG, "limits": dpmpc.Limits(epsilon=math.inf)}

    def site(index: int) -> list[np.ndarray]:
        with dpmpc.Site(tmp_path / "plan.json", index, addresses, out=tmp_path / f"site{index}", **common) as me:
            return [me.mean(np.full(4, (index + 1) * k / 20)) for k in range(3)]

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(site, range(3)))
    for k in range(3):
        assert all(np.array_equal(result[k], results[0][k]) for result in results)
        np.testing.assert_allclose(results[0][k], 0.1 * k, atol=plan.grid.step)
    names = {path.name for path in (tmp_path / "site2").iterdir()}
    assert {"ledger_2.jsonl", "party_2.transcript.jsonl", "site_2.log"} <= names
    with refuses("plan"):
        dpmpc.Owner(plan, 0, addresses, **common)
    with refuses("plan"):
        dpmpc.Party(plan, 0, addresses, out=tmp_path, **common)
    with refuses("plan"):
        dpmpc.Site(dpmpc.Plan.create(**SMALL), 0, addresses, out=tmp_path)


def test_wrong_sites_are_refused(tmp_path: Path) -> None:
    plan = dpmpc.Plan.create(**SMALL)
    with refuses("limits", 3):
        dpmpc.Owner(plan, 3, ["127.0.0.1:1"] * 3)
    with refuses("addresses", 1, setting="addresses"):
        dpmpc.Owner(plan, 0, ["127.0.0.1:1"])
    with refuses("addresses", "TLS", setting="tls"):
        dpmpc.Party(plan, 0, ["a.example:1", "b.example:1", "c.example:1"], out=tmp_path)
    with refuses("range", 3, setting="index"):
        dpmpc.Party(plan, 3, ["127.0.0.1:1"] * 3, out=tmp_path)
    with refuses("file", "plan.json"):
        dpmpc.Owner(tmp_path / "plan.json", 0, [])


def test_plans_that_differ_do_not_meet(tmp_path: Path) -> None:
    """An owner with another epsilon than the parties' is refused by their digest."""
    mine, theirs = (dpmpc.Plan.create(**{**SMALL, "epsilon": e}, run_id="r") for e in (1.0, 8.0))
    parties = PartiesHere(3, Here(out=tmp_path, wait=HANG))
    try:
        parties.begin(theirs, FIRST_ATTEMPT)
        from dpmpc.aggregation.owner.aggregator import Aggregator

        with refuses("plan", 0, kind=dpmpc.PeerError):
            Aggregator.joining(mine, parties, (0, 3), Here(wait=HANG))
    finally:
        parties.end()
