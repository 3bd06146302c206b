"""Answers of an executor that are wrong in drawn ways: each is refused in words without a record, or its task is done
again; no pass ends in another sum."""

import re
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.spelling import PLAIN
from dpmpc.learning.away import Away, OwnerRows, owner_of
from dpmpc.learning.erm_blocks import owner_gradients
from dpmpc.learning.losses import LOGISTIC
from dpmpc.processes.elsewhere import TRIES, Workers
from dpmpc.records import Schema, load
from dpmpc.records.schema import Labels, Numeric
from tests.endurance.canary_search import NUMBERS, WORDS

pytestmark = pytest.mark.usefixtures("small_tables")

CANARY = re.compile("|".join(map(re.escape, (*WORDS, *NUMBERS))), re.I)
N, D, DRAWS = 40_000, 11, 400
THETAS = np.zeros(D + 1), np.linspace(-2, 2, D + 1)
Rng = np.random.Generator
Answer = tuple[Any, ...]
Spoil = Callable[[Rng, Answer, list[Answer]], Any]  # of the right answer, and of those before it, with their marks


def _sums(change: Callable[[Rng, Any], Any]) -> Spoil:
    """One sum of one tile changed."""

    def spoil(rng: Rng, right: Answer, before: list[Answer]) -> Any:
        sums, digest, counts = right[1]
        return "sums", ([(change(rng, part[0].copy()), *part[1:]) for part in sums], digest, counts), right[2]

    return spoil


def _counts(*values: Any) -> Spoil:
    """The counts of one column changed."""

    def spoil(rng: Rng, right: Answer, before: list[Answer]) -> Any:
        sums, digest, counts = right[1]
        changed = list(counts)
        changed[rng.integers(len(counts))] = values[rng.integers(len(values))]
        return "sums", (sums, digest, changed), right[2]

    return spoil


def _put(value: float) -> Callable[[Rng, Any], Any]:
    def change(rng: Rng, part: Any) -> Any:
        part[0, rng.integers(part.shape[1])] = value
        return part

    return change


def _raises(rng: Rng, right: Answer, before: list[Answer]) -> Any:
    errors = ValueError, KeyError, ConnectionError, MemoryError, OSError, ArithmeticError
    raise errors[rng.integers(len(errors))](f"{WORDS[0]} {NUMBERS[0]}")


def _other_value(rng: Rng, right: Answer, before: list[Answer]) -> Any:
    others = [None, 0, 0.5, "sums", b"", {}, [], (), ("sums",), right[1], right[:2], (*right, 0)]
    others += [("sums", each, right[2]) for each in (None, [], right[1][:2], (*right[1], 0))]
    others += [("other", *right[1:]), (None, *right[1:]), ("refused", 5, right[2]), (*right[:2], None)]
    return others[rng.integers(len(others))]


def _digest(rng: Rng, right: Answer, before: list[Answer]) -> Any:
    sums, digest, counts = right[1]
    others = digest[:-1], digest + b"\0", rng.bytes(len(digest)), None, digest.hex()
    return "sums", (sums, others[rng.integers(len(others))], counts), right[2]


KINDS: dict[str, Spoil] = {
    "another shape": _sums(lambda rng, part: (part[:, :-1], part.T, part[None], part[:0], part[0])[rng.integers(5)]),
    "another type": _sums(
        lambda rng, part: (*map(part.astype, ("O", "f4", "c16")), part.tolist(), None)[rng.integers(5)]
    ),
    "hidden by a mask": _sums(lambda rng, part: np.ma.masked_invalid(_put(float("nan"))(rng, part))),
    "no number": _sums(_put(float("nan"))),
    "no end": _sums(_put(float("inf"))),
    "a tile too few": lambda rng, right, before: ("sums", ([], *right[1][1:]), right[2]),
    "a tile too many": lambda rng, right, before: ("sums", (right[1][0] * 2, *right[1][1:]), right[2]),
    "an answer that came before": lambda rng, right, before: before[rng.integers(len(before))],
    "the last answer again": lambda rng, right, before: before[-1],
    "somebody else's sums": lambda rng, right, before: (*before[rng.integers(len(before))][:2], rng.bytes(16)),
    "no answer": _other_value,
    "other records": _digest,
    "counts that are none": _counts(None, 5, "five", (), (1, 2), (1.5,) * 5, (-1, 0, 0, 0, 0), ("a",) * 5, (None,) * 5),
    "an error with a record": _raises,
}  # fmt: skip


class Spoiling(Executor):
    """Works out each task once, and spoils the answer of one place of a pass, once or always."""

    def __init__(self) -> None:
        self.known = dict[tuple[int, bytes], Any]()
        self.given = list[Answer]()
        self.spoil: Callable[[Answer], Any] | None = None
        self.at, self.times = -1, 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        key = fn.task.begin, b"" if not hasattr(fn.task, "job") else fn.task.job.work.theta.tobytes()
        if key not in self.known:
            self.known[key] = fn()[:2]
        answer = (*self.known[key], fn.mark)
        try:
            if self.spoil is not None and fn.task.begin == self.at and self.times:
                self.times -= 1
                future.set_result(self.spoil(answer))
            else:
                self.given.append(answer)
                future.set_result(answer)
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {f"x{k}": rng.normal(size=N) for k in range(D)}
    columns["label"] = np.where(rng.normal(size=N) + columns["x0"] > 0, "yes", "no")
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    pq.write_table(pa.table(columns), path)
    schema = Schema(tuple(Numeric(f"x{k}", -2.0, 2.0) for k in range(D)), Labels("label", ("yes",), ("no",)), True)
    return schema, path


def test_no_wrong_answer_becomes_a_sum(held: tuple[Any, Path]) -> None:
    schema, path = held
    offsets, one = np.array([0, N]), load(path, schema=schema, test_fraction=0.0)
    right = [owner_gradients(LOGISTIC, theta, one.train, offsets).tobytes() for theta in THETAS]
    spoiling = Spoiling()
    here = Workers(lambda count: spoiling, 2)
    opened = owner_of(Workers(lambda count: _Plain(), 1), str(path), PLAIN, None)
    away = Away(OwnerRows(here, opened.partitions, None, 1), schema, "double")
    for theta, expected in zip(THETAS, right, strict=True):  # and what the workers know from then on
        assert owner_gradients(LOGISTIC, theta, away, offsets).tobytes() == expected
    begins = sorted({begin for begin, _ in spoiling.known})
    assert len(begins) == 5
    outcomes: dict[str, set[str]] = {}
    for draw in range(DRAWS):
        rng = np.random.default_rng([7, draw])
        kind = list(KINDS)[draw % len(KINDS)]
        spoil, before = KINDS[kind], [*spoiling.given[:5], *spoiling.given[-5:]]  # of other gradients, and the last
        spoiling.spoil = lambda answer, s=spoil, r=rng, b=before: s(r, answer, b)  # type: ignore[misc]
        spoiling.at, spoiling.times = begins[rng.integers(len(begins))], int(rng.choice([1, TRIES]))
        try:
            found = owner_gradients(LOGISTIC, THETAS[1], away, offsets)
        except UsageError as error:
            assert not CANARY.search(owner_text(error)), (kind, owner_text(error))
            outcomes.setdefault(kind, set()).add("refused")
        else:
            assert found.tobytes() == right[1], kind
            outcomes.setdefault(kind, set()).add("done again")
    here.close()
    assert outcomes.pop("an error with a record") == {"refused", "done again"}
    assert {kind: found for kind, found in outcomes.items() if found != {"refused"}} == {} and len(outcomes) == 13


class _Shuffling(Executor):
    """Works out each task twice, and hands out the answers of a pass in a drawn order."""

    def __init__(self, tasks: int) -> None:
        self.tasks, self.rng = tasks, np.random.default_rng(11)
        self.waiting = list[tuple["Future[Any]", Any]]()
        self.orders = set[tuple[int, ...]]()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        fn()
        self.waiting.append((future, fn()))
        if len(self.waiting) == self.tasks:
            order = tuple(int(k) for k in self.rng.permutation(self.tasks))
            self.orders.add(order)
            several, self.waiting = self.waiting, []
            for k in order:
                several[k][0].set_result(several[k][1])
        return future


@pytest.mark.slow
def test_the_order_of_answers_decides_no_bit(held: tuple[Any, Path]) -> None:
    """Nor that a task was worked out before: sums are added up in the tiles' order."""
    schema, path = held
    offsets, one = np.array([0, N]), load(path, schema=schema, test_fraction=0.0)
    shuffling = _Shuffling(5)
    opened = owner_of(Workers(lambda count: _Plain(), 1), str(path), PLAIN, None)
    away = Away(OwnerRows(Workers(lambda count: shuffling, 2), opened.partitions, None, 1), schema, "double")
    for draw in range(6):
        theta = np.random.default_rng(draw).normal(size=D + 1)
        expected = owner_gradients(LOGISTIC, theta, one.train, offsets)
        assert owner_gradients(LOGISTIC, theta, away, offsets).tobytes() == expected.tobytes()
    assert len(shuffling.orders) > 3


class _Plain(Executor):
    """A worker in this thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(fn())
        return future
