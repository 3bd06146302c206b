"""Flower apps through parties: the same mean, what the server sees, what is refused. In one process, without Ray."""

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is an extra: pip install 'flwr[simulation]'")

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAdam, FedAvg, Strategy

import dpmpc
from dpmpc.aggregation.party.party import ledger_path
from dpmpc.benchmarks.flower_grid import InlineGrid
from dpmpc.flower import PrivateStrategy, dimension_of, prepare, private_mod
from dpmpc.flower.prepared import Prepared, read_prepared
from dpmpc.flower.strategy import EVALUATED
from dpmpc.flower.words import REFUSED
from dpmpc.mpc.mpyc.runtime import import_mpyc
from dpmpc.privacy.account import Account
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import read_ledger
from dpmpc.verify.verification import verify_structure
from tests.refusals import Rule, breaks, refuses
from tests.runs import HANG, children_of
from tests.shareparties import Parties

OWNERS = 5
ANY = dpmpc.Limits(epsilon=math.inf)
MODEL = {"layer": np.arange(6.0).reshape(2, 3), "bias": np.full(2, 0.5, dtype=np.float32), "count": np.array([7])}
D = 8
Change = Callable[[int], dict[str, Any]]


def changed(owner: int) -> dict[str, Any]:
    """A client's model after training: two arrays moved, a counter counted."""
    rng = np.random.default_rng(owner)
    steps = {name: (rng.normal(size=a.shape) / 4).astype(a.dtype) for name, a in MODEL.items() if name != "count"}
    return {name: a + steps[name] if name in steps else a + 1 for name, a in MODEL.items()}


def vector_of(owner: int) -> np.ndarray:
    after = changed(owner)
    return np.concatenate([np.subtract(after[n], MODEL[n], dtype=np.float64).ravel() for n in ("layer", "bias")])


def record(arrays: dict[str, Any]) -> ArrayRecord:
    from flwr.app import Array

    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def app(folder: Path, change: Change = changed, **settings: Any) -> ClientApp:
    """Clients that say that they share this user's account, where they are not given one each."""
    shared = {} if "account" in settings else {"owners": range(read_prepared(folder).plan.owners)}
    found = ClientApp(mods=[private_mod(folder, **{"limits": ANY, **shared, **settings})])

    @found.train()
    def train(message: Message, context: Any) -> Message:
        owner = int(context.node_config["partition-id"])
        metrics = MetricRecord({"num-examples": 100 + owner, "loss": 0.123456})
        return Message(RecordDict({"arrays": record(change(owner)), "metrics": metrics}), reply_to=message)

    @found.evaluate()
    def evaluate(message: Message, context: Any) -> Message:
        return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1, "acc": 0.5})}), reply_to=message)

    return found


def plan(folder: Path, **settings: Any) -> Path:
    given = {"owners": OWNERS, "dimension": D, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "min_owners": 2}
    prepare(folder, **{**given, **settings})
    return folder


def test_no_promise_of_records_is_made_where_whole_updates_are_clipped(tmp_path: Path) -> None:
    with refuses("together", "record", setting="records"):
        plan(tmp_path, records=(50,) * OWNERS)
    assert not list(tmp_path.iterdir())
    with refuses("limits", "1e-06", "neighbours=stated", setting="neighbours"):
        private_mod(plan(tmp_path / "stated", sensitivity=1e-6))
    private_mod(tmp_path / "stated", limits=dpmpc.Limits(neighbours="stated", sensitivity=1e-6))


def run(
    folder: Path, out: Path | None = None, *, strategy: Strategy | None = None, apps: Sequence[Any] = (),
    fails: Sequence[int] = (), rounds: int = 1, **settings: Any,
) -> tuple[Any, PrivateStrategy, InlineGrid]:  # fmt: skip
    inner = strategy or FedAvg(fraction_evaluate=0.0)
    private = PrivateStrategy(inner, folder, out=out, **settings)
    grid = InlineGrid(apps or [app(folder)] * OWNERS, fails, keep=True)
    return private.start(grid, record(MODEL), num_rounds=rounds), private, grid


def arrays_of(result: Any) -> dict[str, Any]:
    return {name: array.numpy() for name, array in result.arrays.items()}


# -- what comes out ----------------------------------------------------------------------------------------------------
def test_without_noise_the_model_moves_by_the_aggregators_mean(tmp_path: Path) -> None:
    """Clients that fail are left out, as Flower has it; the arrays keep their precision, a counter is the server's."""
    folder = plan(tmp_path / "p", scale=0.0)
    result, private, grid = run(folder, tmp_path / "out", fails=[2])
    there = [0, 2, 3, 4]  # node 2 is partition 1
    with dpmpc.Aggregator(
        owners=4, dimension=D, clip=1.0, scale=0.0, delta=1e-5, engine="clear",
        grid_bits=private._prepared.plan.grid.bits,
    ) as clear:  # fmt: skip
        mean = clear.mean(np.stack([vector_of(j) for j in there]))
    got = arrays_of(result)
    assert (got["layer"] == MODEL["layer"] + mean[:6].reshape(2, 3)).all()
    assert (got["bias"] == (MODEL["bias"] + mean[6:]).astype(np.float32)).all() and got["bias"].dtype == np.float32
    assert (got["count"] == MODEL["count"]).all()
    assert private.report()["presence"]["owners"] == {"0": there}
    # what the server sees of clients: sealed shares, and which plan, release and owner they are for
    assert all(set(content) == {"dpmpc", "dpmpc.shares"} and not content.metric_records for content in grid.seen)
    assert all(set(content["dpmpc"]) == {"plan", "release", "owner"} for content in grid.seen)


def test_any_strategy_that_needs_the_mean_alone(tmp_path: Path) -> None:
    """FedAdam over the noisy mean is FedAdam over one client whose update is that mean."""
    folder = plan(tmp_path / "p", scale=0.0)
    result, private, _ = run(folder, strategy=FedAdam(fraction_evaluate=0.0, eta=0.1))
    with dpmpc.Aggregator(
        owners=OWNERS, dimension=D, clip=1.0, scale=0.0, delta=1e-5, engine="clear",
        grid_bits=private._prepared.plan.grid.bits,
    ) as clear:  # fmt: skip
        mean = clear.mean(np.stack([vector_of(j) for j in range(OWNERS)]))
    expected = FedAdam(fraction_evaluate=0.0, eta=0.1)
    grid = InlineGrid([lambda message, context: message] * 2)
    expected.configure_train(1, record(MODEL), _config(), grid)
    moved = {
        "layer": MODEL["layer"] + mean[:6].reshape(2, 3),
        "bias": (MODEL["bias"] + mean[6:]).astype(np.float32),
        "count": MODEL["count"],
    }
    answer = _reply(grid, RecordDict({"arrays": record(moved), "metrics": MetricRecord({"num-examples": 1})}))
    arrays, _ = expected.aggregate_train(1, [answer])
    for name in ("layer", "bias"):
        assert (arrays_of(result)[name] == arrays[name].numpy()).all()
    assert private.report()["flower"]["strategy"] == "FedAdam"


def _config() -> Any:
    from flwr.app import ConfigRecord

    return ConfigRecord()


def _reply(grid: InlineGrid, content: RecordDict) -> Message:
    asked = Message(RecordDict(), dst_node_id=1, message_type="train")
    return Message(content, reply_to=asked)


def test_the_run_is_promised_spent_reported_and_verifies(tmp_path: Path) -> None:
    folder = plan(tmp_path / "p", releases=2, quantile=0.5)
    result, private, _ = run(folder, tmp_path / "out", rounds=2)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report == json.loads(json.dumps(private.report()))
    with dpmpc.Aggregator(
        owners=OWNERS, dimension=D, clip=1.0, quantile=0.5, epsilon=1.0, delta=1e-5, releases=2, engine="clear"
    ) as same:
        assert str(private.guarantee) == str(same.guarantee) and "epsilon = 1" in str(same.guarantee)
        assert report["privacy"]["noise_scale"] == same.report()["privacy"]["noise_scale"]
    assert report["releases_made"] == 2 and report["clipping_bound"] > 0
    assert any("all parties ran on the server's machine" in text for text in report["warnings"])
    assert len(read_ledger(ledger_path(tmp_path / "out", 0)).entries) == 2
    assert verify_structure(tmp_path / "out").evidence[0].holds
    assert set(result.train_metrics_clientapp) == {1, 2} and not any(result.train_metrics_clientapp.values())


def test_evaluation_by_clients_is_off_unless_both_sides_allow_it(tmp_path: Path, caplog: Any) -> None:
    folder = plan(tmp_path / "p", scale=0.0)
    private = PrivateStrategy(FedAvg(), folder)
    assert private.configure_evaluate(1, record(MODEL), _config(), InlineGrid([])) == []
    assert private.aggregate_evaluate(1, []) is None
    result, private, _ = run(folder, strategy=FedAvg(), apps=[app(folder, evaluate=True)] * OWNERS, evaluate=True)
    assert result.evaluate_metrics_clientapp[1]["acc"] == 0.5 and EVALUATED in private.report()["warnings"]
    mod = private_mod(folder, limits=ANY)
    asked = Message(RecordDict(), dst_node_id=1, message_type="evaluate")
    answer = mod(asked, None, lambda message, context: pytest.fail("the app was asked"))
    assert answer.error.reason == REFUSED
    assert "leaves outside the promise; this client allows none" in caplog.text


# -- bad input ---------------------------------------------------------------------------------------------------------
def test_a_client_with_another_plan_is_left_out_and_says_why(tmp_path: Path, caplog: Any) -> None:
    folder, other = (plan(tmp_path / name, scale=0.0, clip=4.0, quantile=0.5) for name in "pq")
    _, private, _ = run(folder, tmp_path / "out", apps=[app(folder), app(other), app(folder), app(folder), app(other)])
    assert private.report()["presence"]["owners"] == {"0": [0, 2, 3]}
    assert private.report()["clipping_bound"] == pytest.approx(4 * math.exp(-0.2 * (1 - 0.5)), rel=1e-3)  # all fit
    said = [line for line in caplog.messages if "must have the same plan and keys" in line]
    assert len(said) == 2 and all("copy flower.json again" in line for line in said)  # each at its client
    assert caplog.messages.count(f"a client's reply is left out: {REFUSED}") == 1  # and at the server


def test_too_few_answers_move_nothing_and_spend_nothing(tmp_path: Path, caplog: Any) -> None:
    """Two that take no part, one without the mod, a node that has left: one clear line each at the server."""
    folder, other = plan(tmp_path / "p", releases=2), plan(tmp_path / "q", releases=2)
    plain = ClientApp(mods=[])

    @plain.train()
    def train(message: Message, context: Any) -> Message:
        return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1})}), reply_to=message)

    apps = [app(other), app(other), plain, app(folder), app(folder)]
    result, private, _ = run(folder, tmp_path / "out", apps=apps, fails=[4])
    assert (arrays_of(result) if result.arrays else {}) == {}
    said = "\n".join(caplog.messages)
    for text in (
        REFUSED,
        "holds no shares of this round",
        "the node has left",
        "moves nothing and spends nothing: a release needs 2 of 5 owners, 1 answered",
    ):
        assert said.count(text) == 1, text
    assert private.report()["releases_made"] == 0
    assert not read_ledger(ledger_path(tmp_path / "out", 0)).entries


def test_what_is_no_update_is_sealed_as_zeros_and_its_client_alone_says_so(tmp_path: Path, caplog: Any) -> None:
    """NaN, infinity, another shape, no arrays, an error reply, an exception, an exit: the server sees five clients, and
    the mean is that of zeros and one update."""

    def bad(owner: int) -> dict[str, Any]:
        match owner:
            case 0:
                return {**changed(0), "layer": np.full((2, 3), np.nan)}
            case 1:
                return {"layer": np.zeros(6)}
            case 2:
                raise ZeroDivisionError("of a record")
            case 3:
                sys.exit("of a record")
        return changed(owner)

    folder = plan(tmp_path / "p", scale=0.0)
    result, private, grid = run(folder, tmp_path / "out", apps=[app(folder, bad)] * OWNERS)
    assert private.report()["presence"]["owners"] == {"0": [0, 1, 2, 3, 4]}
    wanted = np.zeros((OWNERS, D))
    wanted[4] = vector_of(4)
    with dpmpc.Aggregator(
        owners=OWNERS, dimension=D, clip=1.0, scale=0.0, delta=1e-5, engine="clear",
        grid_bits=private._prepared.plan.grid.bits,
    ) as clear:  # fmt: skip
        mean = clear.mean(wanted)
    assert (arrays_of(result)["layer"] == MODEL["layer"] + mean[:6].reshape(2, 3)).all()
    assert len(grid.seen) == OWNERS and len({shape_of(content) for content in grid.seen}) == 1
    assert sum("zeros are sealed as owner" in line for line in caplog.messages) == 4
    assert not any("a client's reply is left out" in line for line in caplog.messages)


def shape_of(content: RecordDict) -> tuple[Any, ...]:
    """Of a reply, all that is not sealed, but for who it is."""
    shares = tuple((name, len(share.data)) for name, share in content["dpmpc.shares"].items())
    about = {name: value for name, value in content["dpmpc"].items() if name != "owner"}
    return tuple(content), shares, tuple(about.items())


def test_a_killed_party_ends_the_run_with_its_name(tmp_path: Path) -> None:
    """Between two rounds: the first is in the ledgers, the second is not."""
    folder = plan(tmp_path / "p", releases=2)
    private = PrivateStrategy(FedAvg(fraction_evaluate=0.0), folder, out=tmp_path / "out")
    made: list[int] = []

    def killing(owner: int) -> dict[str, Any]:
        made.append(owner)
        if len(made) == 2 * OWNERS:
            os.kill(children_of(os.getpid())[-2], signal.SIGKILL)
        return changed(owner)

    with refuses("peer", 1, "SIGKILL"):
        private.start(InlineGrid([app(folder, killing)] * OWNERS), record(MODEL), num_rounds=2)
    assert [len(read_ledger(ledger_path(tmp_path / "out", i)).entries) for i in range(3)] == [1, 1, 1]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["releases_made"] == 1


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({"rounds": 2}, breaks("plan", 1, 2)),
        ({"model": {"layer": np.zeros(3)}}, breaks("shape", 8, 3)),
    ],
)
def test_what_the_plan_is_not_for_is_refused_before_any_process(
    tmp_path: Path, change: dict[str, Any], broken: Rule
) -> None:
    folder = plan(tmp_path / "p")
    private = PrivateStrategy(FedAvg(), folder, out=tmp_path / "out")
    with refuses(broken):
        private.start(InlineGrid([]), record(change.get("model", MODEL)), num_rounds=change.get("rounds", 1))
    assert not (tmp_path / "out").exists()


def asking_by_hand(prepared: Prepared, owner: object, release: object = 0, **more: Any) -> Message:
    """What a server may say to a node, which is not what it should."""
    InlineGrid([])  # a message needs a run
    about = _config()
    about.update({"plan": prepared.digest.hex(), "release": release, "owner": owner, "attempt": "00" * 16, **more})
    return Message(RecordDict({"arrays": record(MODEL), "dpmpc": about}), dst_node_id=1, message_type="train")


def test_a_client_is_one_owner(tmp_path: Path, caplog: Any) -> None:
    """A server that asks one client in two owners' place would double what it can move: in one Flower run, and in
    another, where the client's state is new."""
    folder = plan(tmp_path / "p", releases=2, scale=0.0)
    given, called = read_prepared(folder), []

    def train(message: Message, context: Any) -> Message:
        assert set(message.content) == {"arrays"}  # what dpmpc added is not the app's business
        called.append(1)
        return Message(RecordDict({"arrays": record(changed(0))}), reply_to=message)

    def reply(message: Message, node_config: dict[str, Any] | None = None, **settings: Any) -> Message:
        """Of a new process, in a Flower run of its own."""
        context = InlineGrid([app(folder)])._contexts[1]
        context.node_config.clear()
        context.node_config.update(node_config or {})
        mod = private_mod(folder, limits=ANY, account=tmp_path / "mine", **settings)
        caplog.clear()
        return mod(message, context, train)

    def saying(answer: Message, why: str) -> None:
        assert answer.error.reason == REFUSED and why in caplog.text

    assert reply(asking_by_hand(given, 3)).content["dpmpc"]["owner"] == 3 and len(called) == 1
    saying(reply(asking_by_hand(given, 3)), "seals once for each release of a run; owner 3 has for release 0")
    saying(reply(asking_by_hand(given, 4)), "seals once for each release of a run; owner 3 has for release 0")
    saying(reply(asking_by_hand(given, 4), {"partition-id": 4}), "this one is owner 3, and would be owner 4")
    saying(reply(asking_by_hand(given, 4), owners=4), "this one is owner 3, and would be owner 4")
    saying(reply(asking_by_hand(given, 4), {"partition-id": 4}, owners=3), "its mod says owner 3, its node's")
    saying(reply(asking_by_hand(given, 4), owners=range(5)), "clients that share an account have a partition-id each")
    saying(reply(asking_by_hand(given, 4), {"partition-id": 4}, owners=[1, 3]), "4 is not among 1, 3")
    saying(reply(asking_by_hand(given, 0), {"partition-id": 5}), "the plan has 5 owners, 0 to 4; this client would be")
    saying(reply(asking_by_hand(given, 3, release=2)), "the plan has 2 releases; the server asks for another")
    saying(reply(asking_by_hand(given, 3, release=True)), "the plan has 2 releases; the server asks for another")
    saying(reply(Message(RecordDict(), dst_node_id=1, message_type="train")), "must hold one ArrayRecord")
    bare = Message(RecordDict({"arrays": record(MODEL)}), dst_node_id=1, message_type="train")
    saying(reply(bare), "wrap its strategy in PrivateStrategy")
    assert len(called) == 1
    assert reply(asking_by_hand(given, 4, release=1)).content["dpmpc"]["owner"] == 3  # who it was, whatever it is told
    assert reply(asking_by_hand(given, 0), {"partition-id": 4}, owners=range(5)).content["dpmpc"]["owner"] == 4
    assert len(called) == 3
    for owners in ([5], [0, -1], 7, [True], ["1"]):
        with refuses("range", 0, 4, setting="owners"):
            private_mod(folder, limits=ANY, owners=owners)


def test_a_client_believes_no_bound_that_no_rounds_lead_to(tmp_path: Path, caplog: Any) -> None:
    """With 1e-310 a zero update was an AssertionError, and without asserts a sum of -2^63."""
    folder = plan(tmp_path / "p", quantile=0.5, releases=3)
    given, mod = read_prepared(folder), private_mod(folder, account=tmp_path / "mine", owners=1)
    context = InlineGrid([app(folder)])._contexts[1]
    context.node_config.clear()
    reached = math.exp(0.2 * 0.5 * 2)
    for bound in (1e-310, 0.0, -1.0, math.inf, math.nan, "1", True, reached * 1.0001, 1 / reached / 1.0001):
        caplog.clear()
        answer = mod(asking_by_hand(given, 1, 2, bound=bound), context, lambda *_: pytest.fail("the app was asked"))
        assert answer.error.reason == REFUSED and "a clipping bound that adapts lies between" in caplog.text, bound
    asked = asking_by_hand(given, 1, 2, bound=reached, told=[bytes(16)] * 3)
    answer = mod(asked, context, lambda message, context: message)
    assert answer.has_content() and "dpmpc.shares" in answer.content


def test_a_server_is_not_told_where_an_account_is(tmp_path: Path, caplog: Any) -> None:
    place = tmp_path / "home of jane"
    place.write_text("a file, where a folder should be")
    folder = plan(tmp_path / "p")
    context = InlineGrid([app(folder)])._contexts[1]
    mod = private_mod(folder, account=place)
    answer = mod(asking_by_hand(read_prepared(folder), 0), context, lambda *_: pytest.fail("the app was asked"))
    assert answer.error.reason == REFUSED and "jane" in caplog.text


def test_limits_hold_at_the_client(tmp_path: Path) -> None:
    with refuses("limits", "epsilon=inf", setting="epsilon"):
        private_mod(plan(tmp_path / "p", scale=0.0))
    with refuses("together", 0.5, setting="delta"):
        private_mod(plan(tmp_path / "q"), limits=dpmpc.Limits(epsilon=0.5))


def test_the_dimension_of_a_model() -> None:
    assert dimension_of(record(MODEL)) == dimension_of(MODEL) == D


# -- what a client spends ----------------------------------------------------------------------------------------------
def test_clients_have_a_ledger_and_an_account_of_their_own(tmp_path: Path) -> None:
    """One line a release for all clients of this machine, before their shares; a budget counts other runs too."""
    folder = plan(tmp_path / "p", releases=2, data_id="wards", epsilon=0.8)
    data = read_prepared(folder).plan.data_id
    mine = tmp_path / "mine"
    budget = dpmpc.Limits(budget="1,1e-5", data_id="wards")
    apps = [app(folder, limits=budget, account=mine, owners=range(OWNERS))] * OWNERS
    run(folder, tmp_path / "out", apps=apps, rounds=2)
    (path,) = mine.rglob("ledger_clients.jsonl")
    lines = Ledger.read(path).entries
    assert [line.release for line in lines] == [0, 1]
    theirs = read_ledger(ledger_path(tmp_path / "out", 0)).entries
    assert lines[0].token == theirs[0].token  # it counts once with theirs
    assert [each.state for each in Account(mine).known(data)] == ["there"]
    other = plan(tmp_path / "q", data_id="wards", epsilon=0.8)
    with refuses("missing", "data_id"):
        private_mod(other, limits=dpmpc.Limits(budget="1,1e-5"))
    private = PrivateStrategy(FedAvg(fraction_evaluate=0.0), other, out=tmp_path / "out2")
    grid = InlineGrid([app(other, limits=budget, account=mine, owners=range(OWNERS))] * OWNERS, keep=True)
    private.start(grid, record(MODEL), num_rounds=1)
    assert private.report()["presence"]["owners"] == {}  # no share was made: the budget refuses
    assert len(Ledger.read(path).entries) == 2 and len(list(mine.rglob("ledger_clients.jsonl"))) == 2
    path.unlink()  # what a run had reserved counts where its ledger is gone
    assert sum(len(each.book.reserved) for each in Account(mine).known(data)) >= 2


def test_a_client_whose_account_was_put_back_is_left_out_and_says_why(tmp_path: Path, caplog: Any) -> None:
    """The mod, the strategy and parties elsewhere, as `test_client_heads.py` has it without Flower."""
    import_mpyc()

    def run_of(name: str, accounts: Sequence[str], rounds: int = 1) -> dict[str, list[int]]:
        folder = plan(tmp_path / name, owners=2, min_owners=1, releases=rounds, data_id="wards")
        parties = Parties(read_prepared(folder), folder, tmp_path / f"{name} out", tmp_path / "parties")
        private = PrivateStrategy(FedAvg(fraction_evaluate=0.0), folder, addresses=parties.addresses, wait=HANG)
        grid = InlineGrid([app(folder, account=tmp_path / who) for who in accounts])
        private.start(grid, record(MODEL), num_rounds=rounds)
        assert parties.ends() == [None] * 3
        found: dict[str, list[int]] = private.report()["presence"]["owners"]
        return found

    assert run_of("one", ["c0", "c1"], 2) == {"0": [0, 1], "1": [0, 1]}
    caplog.clear()
    assert run_of("two", ["another machine", "c1"]) == {"0": [1]}
    (said,) = [line for line in caplog.messages if "last saw it" in line]
    assert said.startswith("no part in this message: ") and "\n" not in said  # at the client
    assert caplog.messages.count(f"a client's reply is left out: {REFUSED}") == 1  # at the server


# -- an interrupted run ------------------------------------------------------------------------------------------------
def test_an_interrupted_run_goes_on_with_the_model_that_it_had(tmp_path: Path) -> None:
    """The server dies after a round; parties elsewhere and server are started again, and end where a run ends that
    nobody interrupts. FedAdam, whose own state has to be the same."""
    import_mpyc()
    folder = plan(tmp_path / "p", releases=3, scale=0.0)
    given = read_prepared(folder)
    expected, _, _ = run(folder, strategy=FedAdam(fraction_evaluate=0.0, eta=0.1), rounds=3)
    asked: list[int] = []

    class Dies(FedAdam):
        def configure_train(self, server_round: int, *given: Any) -> Any:
            if server_round == 3 and not self.survives:
                raise KeyboardInterrupt
            return super().configure_train(server_round, *given)

        survives = False

    def counted(owner: int) -> dict[str, Any]:
        asked.append(owner)
        return changed(owner)

    for survives in (False, True):
        parties = Parties(given, folder, tmp_path)
        inner = Dies(fraction_evaluate=0.0, eta=0.1)
        inner.survives = survives
        private = PrivateStrategy(inner, folder, addresses=parties.addresses, out=tmp_path / "out", wait=HANG)
        grid = InlineGrid([app(folder, counted, account=tmp_path / "clients", owners=range(OWNERS))] * OWNERS)
        if not survives:
            with pytest.raises(KeyboardInterrupt):
                private.start(grid, record(MODEL), num_rounds=3)
            parties.ends()
        else:
            result = private.start(grid, record(MODEL), num_rounds=3)
            assert parties.ends() == [None] * 3
    assert len(asked) == 3 * OWNERS  # nobody was asked twice
    for name in ("layer", "bias"):
        assert (arrays_of(result)[name] == arrays_of(expected)[name]).all()
    report = private.report()
    assert report["releases_made"] == 3 and report["presence"]["owners"].keys() == {"0", "1", "2"}
    with refuses("over", tmp_path / "out", setting="out"):
        PrivateStrategy(FedAvg(), plan(tmp_path / "q"), addresses=parties.addresses, out=tmp_path / "out")
