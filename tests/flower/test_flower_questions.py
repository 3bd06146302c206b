"""Questions in a Flower app: the same answers as of pooled records, what the server sees, what is refused. In one
process, with parties in processes of their own."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="Flower is an extra: pip install 'flwr[simulation]'")

from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

import dpmpc
from dpmpc.aggregation.party.party import ledger_path
from dpmpc.benchmarks.flower_grid import InlineGrid
from dpmpc.flower import ask, check_records, prepare, prepare_questions, private_answers, private_mod
from dpmpc.flower.client_ledger import clients_ledger
from dpmpc.flower.prepared import read_prepared
from dpmpc.flower.tables import mean_of
from dpmpc.flower.words import REFUSED
from dpmpc.privacy.ledgers import read_ledger
from dpmpc.tables.stats import noise_of, reopened
from dpmpc.verify.verification import verify_structure
from tests.refusals import breaks, refuses

SIZES = (700, 400, 300, 250)
BOUNDS: dict[str, Any] = {"sex": ["F", "M"], "age": [18.0, 90.0], "died": ["no", "yes"]}
ASKED = ["table(sex) by died", "mean(age) by sex", "median(age)"]
ANY = dpmpc.Limits(epsilon=math.inf)


def people(owner: int) -> pd.DataFrame:
    rng = np.random.default_rng(owner)
    n = SIZES[owner]
    return pd.DataFrame({
        "sex": rng.choice(["F", "M", "?"], n, p=[0.5, 0.45, 0.05]), "age": rng.integers(15, 95, n),
        "died": np.where(rng.random(n) < 0.3, "yes", "no"), "who": rng.integers(0, n // 2, n),
    })  # fmt: skip


def plan(folder: Path, asked: Sequence[str] = ASKED, **settings: Any) -> Path:
    given = {"sizes": SIZES, "data_id": "wards", "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-5}
    prepare_questions(folder, asked, **{**given, **settings})
    return folder


def app(folder: Path, account: Path, records: Any = people, **settings: Any) -> ClientApp:
    found = ClientApp()
    mine = private_answers(
        folder, lambda context: records(int(context.node_config["partition-id"])), account=account,
        **{"limits": ANY, **settings},
    )  # fmt: skip
    found.query()(mine)
    return found


def grid_of(folder: Path, tmp: Path, fails: Sequence[int] = (), **settings: Any) -> InlineGrid:
    """Every client has an account of its own."""
    return InlineGrid([app(folder, tmp / f"account {j}", **settings) for j in range(len(SIZES))], fails, keep=True)


def numbers(found: Any) -> dict[tuple[str, ...], Any]:
    return {
        (answer.question, *line.labels, line.statistic): line.number
        for answer in found.answers
        for line in answer.lines
    }


def test_without_noise_they_are_those_of_the_records_of_whoever_answered(tmp_path: Path) -> None:
    """One client fails; its records are in no answer, and the others' numbers are what is divided by."""
    folder = plan(tmp_path / "p", scale=0.0)
    grid = grid_of(folder, tmp_path, fails=[2])
    found = ask(grid, folder, out=tmp_path / "out")
    assert found.present == (0, 2, 3) and found.sizes == (700, 300, 250)
    whole = pd.concat([people(j) for j in found.present])
    got = numbers(found)
    tables = whole.groupby(["died", "sex"]).size()
    for key, number in got.items():
        if key[0].startswith("table") and key[-1] == "count" and key[1] in ("no", "yes") and key[2] in ("F", "M"):
            assert round(number.estimate) == tables[key[1], key[2]], key
    assert sum(key[-1] == "count" for key in got) > 6
    age = whole["age"].clip(18, 90)[whole["sex"] == "F"].mean()
    assert any(key[-1] == "mean" and abs(n.estimate - age) < 1e-3 for key, n in got.items())
    assert "Of 3 of 4 owners: 0, 2, 3." in found.html()
    assert numbers(reopened(tmp_path / "out")) == got and (tmp_path / "out" / "answers.html").exists()
    assert all(set(content) == {"dpmpc", "dpmpc.shares"} and not content.metric_records for content in grid.seen)


def test_with_noise_the_promise_is_that_of_the_same_questions_elsewhere(tmp_path: Path) -> None:
    """Errors over the noise's deviation have a mean square within 8 of its deviations of 1 (false alarms below 1e-14);
    with a copy of each client it would be 4."""
    folder = plan(tmp_path / "p")
    found = ask(grid_of(folder, tmp_path), folder, out=tmp_path / "out")
    whole = pd.concat([people(j).assign(site=j) for j in range(4)])
    same = dpmpc.stats(whole, ASKED, owners="site", bounds=BOUNDS, engine="clear", scale=0.0, delta=1e-5)
    assert "epsilon = 1, delta = 1e-05" in found.guarantee and "one record of one owner" in found.guarantee
    errors = (found.total - same.total) / noise_of(found.plan)
    assert abs(float(np.mean(errors**2)) - 1) < 8 * np.sqrt(2 / len(errors))
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["presence"]["owners"] == {"0": [0, 1, 2, 3]} and report["flower"]["queries"] == list(
        map(str, found.tables.queries)
    )
    assert len(read_ledger(ledger_path(tmp_path / "out", 0)).entries) == 1
    assert verify_structure(tmp_path / "out").evidence[0].holds
    for j in range(4):
        mine = read_ledger(clients_ledger(tmp_path / f"account {j}", read_prepared(folder).digest)).entries
        assert [line.release for line in mine] == [0]


def test_records_that_do_not_fit_are_zeros_and_their_client_alone_says_so(tmp_path: Path, caplog: Any) -> None:
    """Too few of them at one, a column that is not there at another; each would have heard it before."""
    folder = plan(tmp_path / "p", ["count by sex"], scale=0.0)

    def fewer(owner: int) -> pd.DataFrame:
        return people(owner).iloc[: 698 if owner == 0 else None].drop(columns=["sex"] if owner == 1 else [])

    grid = grid_of(folder, tmp_path, records=fewer)
    found = ask(grid, folder, out=tmp_path / "out")
    assert found.present == (0, 1, 2, 3)
    others = sum(SIZES[j] * mean_of(found.plan, j, people(j)) for j in (2, 3))
    np.testing.assert_allclose(found.total, others, atol=sum(SIZES) * found.plan.grid.step)
    zeros = [line for line in caplog.messages if "zeros are sealed as owner" in line]
    assert len(zeros) == 2 and "another number" in zeros[0] and "'sex'" in zeros[1]
    assert "698" not in caplog.text  # what a log says may be read by others; `check_records` says it to its owner
    assert not any("left out" in line for line in caplog.messages)
    assert len({tuple(len(share.data) for share in content["dpmpc.shares"].values()) for content in grid.seen}) == 1
    for owner, broken in ((0, breaks("records", 698, 700)), (1, breaks("column", "sex"))):
        with refuses(broken):
            check_records(folder, owner, fewer(owner))
    check_records(folder, 2, fewer(2))
    with refuses("range", 4):
        check_records(folder, 4, fewer(3))


def test_clients_answer_once(tmp_path: Path, caplog: Any) -> None:
    """Too few answer: nothing is spent by parties, and the release is lost."""
    folder = plan(tmp_path / "p", min_owners=3)
    with refuses("peer", 3, 4, 2):
        ask(grid_of(folder, tmp_path, fails=[1, 2]), folder, out=tmp_path / "out")
    assert not read_ledger(ledger_path(tmp_path / "out", 0)).entries
    assert json.loads((tmp_path / "out" / "report.json").read_text())["releases_made"] == 0
    caplog.clear()
    with refuses("peer", 3, 4, 2):
        ask(grid_of(folder, tmp_path), folder)
    assert sum("seals once for each release" in line for line in caplog.messages) == 2  # those that sealed before
    assert caplog.messages.count(f"a client's reply is left out: {REFUSED}") == 1


def test_persons_and_places(tmp_path: Path) -> None:
    """The first two records of each person, in places of which some are empty: as in one table of all."""
    places = tuple(n // 2 + 20 for n in SIZES)
    settings: dict[str, Any] = {"neighbours": "person", "person": "who", "person_rows": 2}
    folder = plan(tmp_path / "p", ["count by sex"], sizes=places, capacity=True, scale=0.0, **settings)
    found = ask(grid_of(folder, tmp_path), folder)
    first = [frame[frame.groupby("who").cumcount() < 2] for frame in map(people, range(4))]
    whole = pd.concat(first)["sex"].value_counts()
    got = {key[1]: number.estimate for key, number in numbers(found).items() if key[-1] == "count"}
    assert round(got["F"]) == whole["F"] and round(got["M"]) == whole["M"]
    assert found.plan.sizes == tuple(2 * n for n in places) and not found.plan.counted


def test_what_is_no_plan_of_questions_is_refused(tmp_path: Path) -> None:
    asked, training = plan(tmp_path / "asked"), tmp_path / "training"
    prepare(training, owners=4, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5)
    for call in (lambda: ask(InlineGrid([]), training), lambda: private_answers(training, people)):
        with refuses("plan", "vectors"):
            call()
    with refuses("limits", "vectors", "tables"):
        private_mod(asked, limits=ANY)
    with refuses("limits", 0.5, "1e-05"):
        private_answers(asked, people, limits=dpmpc.Limits(epsilon=0.5, delta=1e-5))
    with refuses("enough", "table(sex) by died", 1.69):
        plan(tmp_path / "hopeless", ["table(sex) by died"], sizes=(9, 9, 9))
    with refuses("over", asked, setting="out"):
        ask(InlineGrid([]), asked, out=asked)
    with refuses("peer", 2, 0):
        ask(InlineGrid([]), asked, timeout=0)
    assert not (tmp_path / "hopeless").exists()


def test_one_app_trains_and_answers(tmp_path: Path) -> None:
    """A mod of training among the mods of the function that trains, and the answers beside it."""
    folder = plan(tmp_path / "p", scale=0.0)
    apps = []
    for j in range(4):
        both = app(folder, tmp_path / f"account {j}")

        @both.train(mods=[private_mod(_training(tmp_path), limits=ANY, account=tmp_path / f"account {j}")])
        def train(message: Message, context: Any) -> Message:
            return Message(RecordDict(), reply_to=message)

        apps.append(both)
    assert ask(InlineGrid(apps), folder).present == (0, 1, 2, 3)


def _training(tmp: Path) -> Path:
    if not (tmp / "training").exists():
        prepare(tmp / "training", owners=4, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5)
    return tmp / "training"
