"""What a server, or who makes plans, can say to one client so that it gives more than its promise: who it is, for which
plan, release and attempt, at what price, with which bound, and questions whose answer is an error. Every message meets
a new process of the client, as Flower has it. Needs no Flower.

A generator says true and false things in any order to two clients whose records differ, and holds what they gave
against rules of its own. Each mend is then taken out alone, and the generator has to find that it is.
"""

import ast
import math
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.owner.standing import Standing
from dpmpc.aggregation.plan.grid import Grid
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.errors import PeerError, UsageError
from dpmpc.flower import Prepared, client, client_ledger, prepare, seals
from dpmpc.flower.client import Sealer
from dpmpc.flower.party import opener_of
from dpmpc.flower.prepared import key_path
from dpmpc.flower.sealing import Purpose
from dpmpc.lazy import dataclass
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.privacy.heads import Head, name_of
from dpmpc.privacy.ledger import Ledger
from tests.refusals import refuses

DATA, D, OWNERS = "wards", 4, 6
EPSILON, DELTA = 1.6, 1e-5
LIMITS = dpmpc.Limits(epsilon=1.0, delta=DELTA, budget=f"{EPSILON},{DELTA}", data_id=DATA)
Floats = np.ndarray[Any, np.dtype[np.float64]]
Answer = tuple[Purpose, list[bytes]] | None


@dataclass
class World:
    """Plans that a client has agreed to, the parties' keys, and the attempts that their parties have begun."""

    folder: Path
    plans: list[Prepared] = field(default_factory=list)
    keys: dict[bytes, Path] = field(default_factory=dict)
    attempts: dict[bytes, list[bytes]] = field(default_factory=dict)

    def plan(self, name: str, **settings: Any) -> Prepared:
        given = {"owners": OWNERS, "min_owners": 1, "dimension": D, "clip": 1.0, "epsilon": 1.0, "delta": DELTA}
        made = prepare(self.folder / name, **{**given, "data_id": DATA, "run_id": "one", "releases": 2, **settings})
        self.plans.append(made)
        self.keys[made.digest] = self.folder / name
        self.attempts[made.digest] = [os.urandom(16) for _ in range(2)]  # parties were started anew
        return made

    def opens(self, given: Prepared, purpose: Purpose, sealed: list[bytes], told: list[bytes]) -> bool:
        """Whether the parties of an attempt that there is would open these shares, if they remember what was told."""
        if purpose.token not in self.attempts[given.digest]:
            return False
        try:
            for party, share in enumerate(sealed):
                opener = opener_of(given, party, key_path(self.keys[given.digest], party))
                opener.open(share, purpose, told[party])
        except PeerError:
            return False
        return True


TOLD = [bytes([party]) * 16 for party in range(3)]


def said(given: Prepared, **changes: Any) -> dict[str, Any]:
    true = {"plan": given.digest.hex(), "attempt": "00" * 16, "release": 0, "owner": 0, "told": list(TOLD)}
    return {**true, **changes}


def ask(given: Prepared, account: Path, words: dict[str, Any], make: Callable[[int], Floats], **more: Any) -> Answer:
    """A new process of the client is asked."""
    sealer = Sealer(given, more.get("limits", LIMITS), account, more.get("owners"))
    return sealer.answered(words, more.get("partition"), make)


def lines(account: Path) -> list[Any]:
    return [entry for path in sorted(account.rglob("ledger*.jsonl")) for entry in Ledger.read(path).entries]


def vector(owner: int) -> Floats:
    return np.array([0.5, -0.5, 0.1, 0.0])


def never(owner: int) -> Floats:
    raise KeyboardInterrupt("the vector was asked for")


# -- what a promise allows, by other means -----------------------------------------------------------------------------
def epsilon_of(mu: float, delta: float) -> float:
    """Of Gaussian releases with this sensitivity over sigma in all. Balle and Wang 2018, Theorem 8, by bisection."""
    normal = NormalDist().cdf
    low, high = 0.0, 1e4
    for _ in range(200):
        at = (low + high) / 2
        found = normal(-at / mu + mu / 2) - math.exp(min(at, 700)) * normal(-at / mu - mu / 2)
        low, high = (at, high) if found > delta else (low, at)
    return high


def moved(given: Prepared) -> float:
    """By how much of its noise's deviation one release moves when an owner's vector is replaced."""
    plan = given.plan
    return 2.0 / (plan.derived.mechanism.scale * plan.grid.step)


# -- the generator -----------------------------------------------------------------------------------------------------
class Broken(Exception):
    """A rule that does not hold any more."""


class Trial:
    """One server against two clients whose records differ, message by message."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world, self.random = World(folder), np.random.default_rng(seed)
        self.world.plan("dear")
        self.world.plan("cheap", epsilon=0.05)
        self.world.plan("adaptive", quantile=0.5, epsilon=0.3)
        same = self.world.plans[0].plan
        from dpmpc.flower.prepared import written

        again = written(same, folder / "again")  # the same plan with other keys
        self.world.plans.append(again)
        self.world.keys[again.digest] = folder / "again"
        self.world.attempts[again.digest] = [os.urandom(16)]
        self.accounts = [folder / "client 0", folder / "client 1"]
        self.given: list[list[tuple[Prepared, Purpose]]] = [[], []]  # what opens
        self.computed: list[list[tuple[bytes, int]]] = [[], []]
        self.partition = 4 if self.random.random() < 0.3 else None

    def words(self) -> tuple[Prepared, dict[str, Any], str]:
        """What the server says next, of which plan; how the client's program ends."""
        pick = self.random.integers
        given = self.world.plans[pick(len(self.world.plans))]
        tokens = [token for each in self.world.attempts.values() for token in each]
        own = self.world.attempts[given.digest]
        wild: dict[str, list[Any]] = {
            "plan": [self.world.plans[pick(len(self.world.plans))].digest.hex(), "", None, given.digest.hex().upper()],
            "attempt": [
                tokens[pick(len(tokens))].hex(),
                os.urandom(16).hex(),
                "0" * 31,
                None,
                own[0],
                own[0].hex() + " ",
            ],
            "release": [0, 1, 2, True, False, 1.0, "1", None, -1, 10**30, float("nan")],
            "owner": [*range(OWNERS), True, "3", None, -1, 10**30, OWNERS, "٣"],
            "bound": [1.0, 1e-310, 1e300, math.inf, math.nan, 0.0, -1.0, True, "1", 1.05, 0.95, 2],
            "told": [None, [], TOLD[:2], [b""] * 3, list(TOLD)],
        }
        words = said(
            given, attempt=own[pick(len(own))].hex(), release=int(pick(2)), owner=int(pick(OWNERS)), bound=1.0,
        )  # fmt: skip
        if self.random.random() < 0.5:  # of the first attempt that there is
            words["attempt"] = tokens[0].hex()
        if self.partition is not None:
            purpose = Purpose(given.digest, bytes.fromhex(words["attempt"]), words["release"], self.partition)
            words["told"] = [name_of(Head(), purpose.at(party)) for party in range(3)]
        for name, choices in wild.items():
            if self.random.random() < 0.1:
                words[name] = choices[pick(len(choices))]
        return given, words, ("runs", "runs", "runs", "dies")[pick(4)]

    def message(self) -> None:
        given, words, how = self.words()
        kinds = [self._answer(k, given, words, how) for k in range(2)]
        if kinds[0] != kinds[1]:
            raise Broken(f"the server can tell the clients apart: {kinds}")

    def _answer(self, k: int, given: Prepared, words: dict[str, Any], how: str) -> object:
        account = self.accounts[k]

        def make(owner: int) -> Floats:
            release = int(words["release"])
            self.computed[k].append((given.digest, release))
            if self.computed[k].count((given.digest, release)) > 1:
                raise Died(f"release {release} is computed a second time")
            if not any(line.epsilon == given.plan.epsilon and line.release == release for line in lines(account)):
                raise Died("a vector is computed before it is paid for")
            if how == "dies":
                raise KeyboardInterrupt
            return [vector(owner), self._ugly()][k]

        try:
            answer = ask(given, account, dict(words), make, partition=self.partition)
        except KeyboardInterrupt:
            return "died"
        except Died as error:
            raise Broken(str(error)) from None
        except BaseException as error:  # noqa: BLE001 (whatever it is, the server would see it)
            return f"raised {type(error).__name__}"
        if answer is None:
            return "no part"
        purpose, sealed = answer
        if self.world.opens(given, purpose, sealed, words["told"]):
            self._gave(k, given, purpose)
        return [len(share) for share in sealed], purpose

    def _ugly(self) -> Floats:
        """Of the second client: what no vector is."""
        match int(self.random.integers(6)):
            case 0:
                return np.full(D, np.nan)
            case 1:
                return np.full(D, 1e308) * 10
            case 2:
                return np.zeros(D + 1)
            case 3:
                raise ZeroDivisionError
            case 4:
                raise SystemExit("of a record")
        return np.full(D, 1e200)

    def _gave(self, k: int, given: Prepared, purpose: Purpose) -> None:
        self.given[k].append((given, purpose))
        owners = {p.owner for g, p in self.given[k] if g.plan == given.plan}
        if len(owners) > 1:
            raise Broken(f"one client is several owners of a plan: {sorted(owners)}")
        looks = [(g.digest, int(p.release)) for g, p in self.given[k]]
        if len(looks) != len(set(looks)):
            raise Broken("a release has a second look")
        mu = math.sqrt(sum(moved(g) ** 2 for g, _ in self.given[k]))
        if epsilon_of(mu, DELTA) > EPSILON * (1 + 1e-6):
            raise Broken(f"epsilon {epsilon_of(mu, DELTA):.3f} is given of {EPSILON}")


class Died(BaseException):
    """Not to be taken for an error of the client's program."""


def trial(folder: Path, seed: int, messages: int = 60) -> Trial:
    made = Trial(folder, seed)
    for _ in range(messages):
        made.message()
    return made


SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_server_gets_more_than_the_promise(tmp_path: Path, seed: int) -> None:
    made = trial(tmp_path, seed)
    assert made.given[0] and made.given[0] == made.given[1] and made.computed[0] == made.computed[1]
    for account in made.accounts:
        spent = math.sqrt(sum((line.mechanism.sensitivity.l2 / line.mechanism.scale) ** 2 for line in lines(account)))
        assert epsilon_of(spent, DELTA) <= EPSILON * (1 + 1e-6)


# -- each mend taken out -----------------------------------------------------------------------------------------------
def _believes_numbers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Standing, "known", lambda self: frozenset())
    patch.setattr(Standing, "_refuse_other", lambda self, known, owner: None)


def _pays_by_name(patch: pytest.MonkeyPatch) -> None:
    """A ledger of a run's name, a line of a release and a token."""
    patch.setattr(client_ledger, "clients_ledger", lambda folder, digest: folder / "owners" / "one" / "ledger.jsonl")
    patch.setattr(client_ledger, "pays", lambda line, mine: line.token == mine.token)


def _says_what_is_wrong(patch: pytest.MonkeyPatch) -> None:
    def steps(self: Sealer, made: Any, asked: Any) -> Any:
        return self._encoded(made() if callable(made) else made, asked)

    patch.setattr(Sealer, "_steps", steps)


def _computes_first(patch: pytest.MonkeyPatch) -> None:
    sealed = Sealer.sealed

    def early(self: Sealer, made: Any, asked: Any) -> list[bytes]:
        found = made()
        return sealed(self, found, asked)

    patch.setattr(Sealer, "sealed", early)


def _seals_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seals, "_refuse_second", lambda descriptor, purpose: None)


def _takes_any_number(patch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, purpose: Purpose) -> None:
        mine = f"{purpose.owner} {purpose.release} ".encode()
        if any(line.startswith(mine) for line in os.pread(descriptor, 1 << 20, 0).split(b"\n")):
            raise UsageError("again")

    patch.setattr(client, "checked_release", lambda plan, release: release)
    patch.setattr(seals, "_line", lambda p: f"{p.owner} {p.release} {p.token.hex()}".encode())
    patch.setattr(seals, "_refuse_second", refuse)


def _takes_any_bound(patch: pytest.MonkeyPatch) -> None:
    def at(self: ClippingBound, value: Any, releases: int) -> ClippingBound:
        return ClippingBound(value, self.quantile, self.rate)

    patch.setattr(ClippingBound, "at", at)


MENDS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "who it is is kept on disk": (_believes_numbers, "several owners|a second time"),
    "a line is of a plan and a price": (_pays_by_name, "before it is paid for"),
    "zeros are sealed for what is no vector": (_says_what_is_wrong, "tell the clients apart"),
    "a release is paid for before its vector is computed": (_computes_first, "before it is paid for"),
    "a client seals once": (_seals_again, "a second time"),
}


@pytest.mark.parametrize("mend", MENDS)
def test_the_generator_sees_that_a_mend_is_missing(tmp_path: Path, mend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without, rule = MENDS[mend]
    without(monkeypatch)
    with pytest.raises(Broken, match=rule):
        for seed in range(12):
            trial(tmp_path / str(seed), seed)


def without(mend: bool, patch: pytest.MonkeyPatch, taken_out: Callable[[pytest.MonkeyPatch], None]) -> None:
    if not mend:
        taken_out(patch)


BOTH = pytest.mark.parametrize("mend", [True, False])
FREE = dpmpc.Limits(epsilon=math.inf)


@BOTH
def test_one_client_is_not_made_all_owners(tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without a partition-id, in a Flower run of its own for each number that it is offered."""
    without(mend, monkeypatch, _believes_numbers)
    given = World(tmp_path).plan("p")
    found = [ask(given, tmp_path / "mine", said(given, owner=j), vector, limits=FREE) for j in range(OWNERS)]
    assert [j for j, answer in enumerate(found) if answer is not None] == ([0] if mend else list(range(OWNERS)))
    assert len(lines(tmp_path / "mine")) == 1


@BOTH
def test_a_cheap_line_pays_for_no_dear_release(tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plans with one run's name: the cheap one is asked for with the token of the dear one's attempt."""
    without(mend, monkeypatch, _pays_by_name)
    world, mine, opened = World(tmp_path), tmp_path / "mine", 0
    limits = dpmpc.Limits(epsilon=1.0, delta=DELTA, budget=f"1.2,{DELTA}", data_id=DATA)
    for k in range(4):
        dear, cheap = (world.plan(f"{k} {e}", epsilon=e, releases=1, run_id=f"run {k}") for e in (1.0, 0.02))
        if not mend:
            monkeypatch.setattr(client_ledger, "clients_ledger", lambda at, digest, k=k: at / "owners" / f"{k}.jsonl")
        token = world.attempts[dear.digest][0].hex()
        for given in (cheap, dear):
            answer = ask(given, mine, said(given, attempt=token), vector, limits=limits)
        opened += answer is not None
    assert opened == (1 if mend else 4)
    ledgers = [*mine.rglob("ledger*.jsonl"), *mine.rglob("owners/?.jsonl")]
    kept = [entry.epsilon for path in ledgers for entry in Ledger.read(path).entries]
    assert kept.count(1.0) == (1 if mend else 0)


@BOTH
def test_refusals_answer_no_question(tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose update overflows if and only if so many records say so; exact counts by halves."""
    without(mend, monkeypatch, _says_what_is_wrong)
    world, count, least = World(tmp_path), 137, 0
    given = world.plan("p", releases=32)

    def asked(at: int) -> Callable[[int], Floats]:
        with np.errstate(over="ignore"):
            found = np.full(D, np.finfo(float).max / (at - 0.5) * count)  # infinite iff count >= at
        return lambda owner: found

    most, questions = 400, 0
    while most - least > 1 and questions < 32:
        at = (least + most) // 2
        answer = ask(given, tmp_path / "mine", said(given, release=questions), asked(at), limits=FREE)
        least, most = (at, most) if answer is None else (least, at)
        questions += 1
    assert least == (0 if mend else count)
    assert len(lines(tmp_path / "mine")) == questions  # in either case: it is paid for, and would be an exact answer


@BOTH
def test_a_number_that_equals_another_is_not_another(
    tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """True equals 1, and was remembered in other letters: release 1 was computed twice."""
    without(mend, monkeypatch, _takes_any_number)
    given = World(tmp_path).plan("p")
    words = [said(given, release=release) for release in (1, True)]
    found = [ask(given, tmp_path / "mine", each, vector, limits=FREE) for each in words]
    assert sum(answer is not None for answer in found) == (1 if mend else 2)


@BOTH
def test_a_bound_that_no_rounds_lead_to_is_refused(tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    without(mend, monkeypatch, _takes_any_bound)
    given = World(tmp_path).plan("p", quantile=0.5, releases=3)
    words = said(given, bound=1.0, release=2)
    assert (ask(given, tmp_path / "a", {**words, "bound": 1e-6}, vector, limits=FREE) is None) == mend
    reached = math.exp(0.2 * 0.5 * 2)
    for k, bound in enumerate((reached, 1 / reached, 1.0)):
        assert ask(given, tmp_path / f"b{k}", {**words, "bound": bound}, vector, limits=FREE) is not None


@BOTH
def test_a_release_in_which_the_client_was_killed_is_spent(
    tmp_path: Path, mend: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL while the vector is computed, twice."""
    without(mend, monkeypatch, _computes_first)
    given, mine = World(tmp_path).plan("p"), tmp_path / "mine"
    ends = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            ask(given, mine, said(given), lambda owner: os.kill(os.getpid(), signal.SIGKILL), limits=FREE)
            os._exit(0)
        ends.append(os.WTERMSIG(os.waitpid(child, 0)[1]))
    assert ends == ([signal.SIGKILL, 0] if mend else [signal.SIGKILL] * 2)
    assert len(lines(mine)) == (1 if mend else 0)


def test_a_budget_that_is_used_up_asks_for_no_vector(tmp_path: Path) -> None:
    world, mine = World(tmp_path), tmp_path / "mine"
    first, second = world.plan("a", releases=1), world.plan("b", releases=1, run_id="two")
    limits = dpmpc.Limits(epsilon=1.0, delta=DELTA, budget=f"1.2,{DELTA}", data_id=DATA)
    assert ask(first, mine, said(first), vector, limits=limits) is not None
    before = lines(mine)
    for release in (0, 0):
        assert ask(second, mine, said(second, release=release), never, limits=limits) is None
    assert lines(mine) == before


def test_every_refusal_is_before_anything_is_computed_or_written(tmp_path: Path) -> None:
    given, mine = World(tmp_path).plan("p", quantile=0.5), tmp_path / "mine"
    for words in (
        None, {}, said(given, bound=1.0, plan="0"), said(given, bound=2), said(given, bound=1.0, attempt="0"),
        said(given, bound=1.0, release=2), said(given, bound=1.0, owner=OWNERS), said(given, bound=1.0, told=None),
    ):  # fmt: skip
        assert Sealer(given, FREE, mine).answered(words, None, never) is None
    assert Sealer(given, Limits(epsilon=0.1, delta=DELTA), mine).answered(said(given, bound=1.0), None, never) is None
    assert lines(mine) == []
    with pytest.raises(KeyboardInterrupt):
        Sealer(given, FREE, mine).answered(said(given, bound=1.0), None, never)
    assert len(lines(mine)) == 1


def test_standing_is_a_file_that_survives_half_a_line(tmp_path: Path) -> None:
    standing = Standing(tmp_path, bytes(32))
    assert standing.known() == frozenset()
    (tmp_path / "seals").mkdir()
    (path,) = [tmp_path / "seals" / f"{'00' * 16}.owner"]
    path.write_bytes(b"\nowner 1")  # it died in the middle of `owner 12`, and had sealed nothing
    path.write_bytes(b"\nowner ")
    standing.keep(12)
    standing.keep(12)
    assert standing.known() == {12} and Standing(tmp_path, b"1" * 32).known() == frozenset()
    for owners in ((), (1, 2)):
        with pytest.raises(UsageError):
            Standing(tmp_path, bytes(32), owners).keep(1)
    Standing(tmp_path, bytes(32), (1, 12)).keep(1)
    with refuses("unique", 1, 12, setting="account"):
        standing.check(12)


# -- no assert guards a promise ----------------------------------------------------------------------------------------
def test_without_asserts_the_same_is_refused(tmp_path: Path) -> None:
    """`python -O`: a bound of 1e-310 made a zero update -2^63; what does not fit the grid is no number of steps."""
    World(tmp_path).plan("p", quantile=0.5)
    program = """
        import sys, numpy as np, dpmpc
        from dpmpc.aggregation.plan.grid import Grid
        from dpmpc.flower.client import Sealer
        from dpmpc.flower.prepared import read_prepared
        assert False, "python -O takes this out"
        for value in (np.nan, np.inf, -np.inf, 2.0**62):
            try:
                Grid(0).encode(np.array([value]))
            except ArithmeticError:
                continue
            sys.exit(f"{value} is in grid steps")
        given = read_prepared(sys.argv[1])
        words = {"plan": given.digest.hex(), "attempt": "00" * 16, "release": 0, "owner": 0, "told": [bytes(16)] * 3}
        sealer = Sealer(given, dpmpc.Limits(epsilon=float("inf")), None)
        if sealer.answered({**words, "bound": 1e-310}, None, lambda owner: np.zeros(4)) is not None:
            sys.exit("a bound that no rounds lead to")
        if sealer.answered({**words, "bound": 1.0}, None, lambda owner: np.full(4, np.nan)) is None:
            sys.exit("the server hears of a vector that is none")
    """
    found = subprocess.run(
        [sys.executable, "-O", "-c", textwrap.dedent(program), str(tmp_path / "p")],
        env={**os.environ, "DPMPC_ACCOUNT": str(tmp_path / "mine")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    with pytest.raises(ArithmeticError, match="must fit the grid"):
        Grid(0).encode(np.array([2.0**62]))


PROMISED = (
    "aggregation/plan/grid.py", "aggregation/owner/encoding.py", "aggregation/owner/standing.py",
    "aggregation/owner/own_ledger.py", "flower/client.py", "flower/client_ledger.py", "flower/mod.py",
    "flower/seals.py", "flower/sealing.py", "flower/heads.py", "learning/adaptive_clipping.py", "learning/method.py",
)  # fmt: skip


@pytest.mark.parametrize("name", PROMISED)
def test_no_assert_stands_between_a_vector_and_its_promise(name: str) -> None:
    """But for what tells a type checker that something is there."""
    tree = ast.parse((Path(dpmpc.__file__).parent / name).read_text(encoding="utf-8"))
    found = [ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert not [test for test in found if not test.endswith("is not None") and not test.startswith("isinstance(")]
