"""Runs on one machine whose command is killed between two of its writes and carried on: what `kill_writes` holds of
them.

The whole product runs, with parties in processes of their own or in the clear, which is what its victims are called.
From the files alone:

- what was opened before is what was opened afterwards, and what the results are made of;
- every release has one line in a ledger, and there are no more of them than were planned: nothing is spent twice;
- where nothing was spent without being opened, the run ends as one that was never killed, with all its figures; where
  something was, an error or a warning says that it is lost;
- nothing stays in the folder that is of nobody's use: no scratch folder, no half of a file, no reservation.
"""

import contextlib
import fcntl
import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from tests.endurance.kill_writes import FAILED, FINISHED, KILLED, PRELOAD, doomed, left_behind

Engine = Literal["clear", "mpc"]
ENGINES: tuple[Engine, ...] = ("clear", "mpc")


def records(path: Path, n: int = 1200) -> Path:
    """A file of made-up records of three owners."""
    rng = np.random.default_rng(5)
    age, sex = rng.normal(50, 12, n).round(1), rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "site": np.arange(n) % 3,
            "age": age,
            "sex": np.array(["f", "m"])[sex],
            "ill": (age + 8 * sex + rng.normal(0, 8, n) > 54).astype(int),
        }
    )
    frame.to_csv(path, index=False)
    return path


def train(folder: Path, out: Path, engine: Engine, spell: tuple[str, ...] = ()) -> None:
    """A run of training with a survey before and an evaluation after it: begun, or carried on."""
    from dpmpc.aggregation.plan.here import Here
    from dpmpc.consortium.placement import Placement
    from dpmpc.consortium.start import carry_on
    from dpmpc.local.launcher import train as start
    from dpmpc.planning.request import Request

    if (out / "request.json").exists():
        carry_on(Placement(out=out), lambda event: None)
        return
    asked: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-5, "iterations": 3, "data_id": "kills", "seed": 1}
    asked |= {"target": "ill", "owners_column": "site", "ids": "id", "preprocessing": "survey", "figures": "inside"}
    request = Request(
        **asked, spell=spell, csv=str(folder / "records.csv"), engine=engine,
        account=str(folder / "account"),
    )  # fmt: skip
    start(request, Here(out=out))


def stats(folder: Path, out: Path, engine: Engine) -> None:
    """Questions: the same call again carries them on."""
    from dpmpc.tables.asked import stats as ask

    ask(
        folder / "records.csv", ["count", "mean(age) by sex"], owners="site", out=out, epsilon=2.0, delta=1e-5,
        bounds={"age": [0, 100], "sex": ["f", "m"]}, engine=engine, data_id="kills", account=str(folder / "account"),
    )  # fmt: skip


def asked(folder: Path, out: Path, engine: Engine, spell: tuple[str, ...] = ()) -> None:
    """Questions about columns that a survey finds: the same call again carries them on."""
    from dpmpc.tables.asked import stats as ask

    ask(
        folder / "records.csv", ["count", "mean(age) by sex"], owners="site", spell=spell, out=out, epsilon=20.0,
        delta=1e-5, hopeless="allow", engine=engine, data_id="kills", account=str(folder / "account"),
    )  # fmt: skip


def synth(folder: Path, out: Path, engine: Engine, spell: tuple[str, ...] = ()) -> None:
    """A synthetic table with a survey before it: the same call again carries it on."""
    from dpmpc.tables.synth import synth as draw

    draw(
        folder / "records.csv", owners="site", spell=spell, out=out, epsilon=20.0, delta=1e-5, seed=3, drop=("id",),
        hopeless="allow", engine=engine, data_id="kills", account=str(folder / "account"),
    )  # fmt: skip


def meet(folder: Path, out: Path, engine: Engine) -> None:
    """A meeting of sites: the same call again carries it on."""
    from dpmpc.tables.meet import meet as compare

    compare(
        folder / "records.csv", ("age", "sex"), owners="site", out=out, epsilon=2.0, delta=1e-5, engine=engine,
        data_id="kills", account=str(folder / "account"),
    )  # fmt: skip


Command = Callable[[Path, Path, Engine], None]
SOURCES: dict[str, Command] = {"train": train, "stats": stats, "stats-found": asked, "synth": synth, "meet": meet}
LAST = {
    "train": "report.json", "stats": "answers.html", "stats-found": "answers.html", "synth": "synthetic.json",
    "meet": "answers.html",
}  # fmt: skip
STAGES = {
    "train": ("survey", "", "evaluation"), "stats": ("",), "stats-found": ("survey", ""),
    "synth": ("survey", "first", ""), "meet": ("",),
}  # fmt: skip
WORDS: dict[str, Callable[..., None]] = {"train": train, "stats-found": asked, "synth": synth}
for kind, begun in WORDS.items():  # the same, with words of a column opened before the survey
    SOURCES[f"{kind}-words"] = partial(begun, spell=("sex",))
    LAST[f"{kind}-words"], STAGES[f"{kind}-words"] = LAST[kind], ("words", *STAGES[kind])


def _played(
    kind: str, folder: Path, out: Path, engine: Engine, number: int, opened: str | None, said: Any
) -> None:  # fmt: skip
    """A process: the command, which dies at that write. `said`: told how many writes it made, or its error."""
    os.environ["DPMPC_ACCOUNT"] = str(folder / "account")
    doomed(lambda: SOURCES[kind](folder, out, engine), number, out, opened, said)


def played(
    kind: str, folder: Path, out: Path, engine: Engine, number: int = -1, opened: str | None = None
) -> tuple[int, Any]:  # fmt: skip
    """(how the command ended, its count of writes or its error)."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    heard, said = context.Pipe(duplex=False)
    process = context.Process(target=_played, args=(kind, folder, out, engine, number, opened, said))
    process.start()
    said.close()
    result: Any = None
    with contextlib.suppress(EOFError):
        result = heard.recv()
    process.join()
    for ledger in out.rglob("ledger*.jsonl"):  # the parties are gone when none of them holds its ledger
        with ledger.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    assert process.exitcode is not None
    return process.exitcode, result


@dataclass(frozen=True)
class Found:
    """What is in the folder of a stage: by release, what was opened, and how many releases are spent."""

    opened: dict[int, bytes]
    spent: int
    releases: int


def found(out: Path, kind: str) -> dict[str, Found]:
    """The stages that were begun. Errors: AssertionError for two vectors of one release, or two lines of it."""
    from dpmpc.aggregation.plan.plan import Plan
    from dpmpc.privacy.ledger import Ledger
    from dpmpc.run.resume import opened_anywhere, spent_anywhere

    result = {}
    for stage in STAGES[kind]:
        folder = out / stage
        if not (folder / "plan.json").is_file():
            continue
        plan = Plan.read(folder / "plan.json")
        for path in folder.glob("ledger_*.jsonl"):
            lines = [entry.release for entry in Ledger.read(path).entries if entry.run == plan.run_id]
            assert len(lines) == len(set(lines)) <= plan.releases, f"{path} has a release twice"
        opened = {number: total.tobytes() for number, total in opened_anywhere(folder, plan).items()}
        spent = min(spent_anywhere(folder, plan), plan.releases)
        assert len(opened) <= spent, "a release was opened before a ledger had it"
        result[stage] = Found(opened, spent, plan.releases)
    return result


def check(kind: str, out: Path, before: dict[str, Found], ended: int, said: Any) -> str:
    """Asserts what must hold after a run that was carried on; what became of it."""
    after = found(out, kind)
    for stage, known in before.items():
        assert after[stage].opened.items() >= known.opened.items(), f"what {stage or 'training'} opened has changed"
        assert after[stage].spent >= known.spent
    lost = [stage for stage, known in before.items() if known.spent > len(known.opened)]
    if ended == FAILED and ("is finished; see" in said or "must be a new or empty directory" in said):
        assert (out / LAST[kind]).is_file() and not lost  # all that stays was there
        return "was over"
    if ended == FAILED:
        assert lost and "SpentError" in said, (said, lost)
        return "lost, and said so"
    assert ended == FINISHED, ended
    left_behind(out)
    if kind.startswith("train"):
        report = json.loads((out / "report.json").read_text())
        with np.load(out / "model.npz") as model:
            assert ("figures" in model.files) == (report["figures"] is not None)
        if report["figures"] is None:
            assert "evaluation" in lost and any("is spent and was not opened" in text for text in report["warnings"])
        missed = after[""].releases - len(after[""].opened)
        assert missed == (0 if "" not in lost else before[""].spent - len(before[""].opened))
        return "figures lost, and said so" if report["figures"] is None else "finished"
    assert (out / LAST[kind]).is_file() and all(len(each.opened) == each.releases for each in after.values())
    return "finished"


def kill_at(kind: str, folder: Path, engine: Engine, number: int) -> str | None:
    """What became of a run that was killed at its write of this number and carried on; None: it had fewer."""
    if not (folder / "records.csv").is_file():
        records(folder / "records.csv")
    out = folder / f"{kind}-{engine}-{number}"
    ended, said = played(kind, folder, out, engine, number)
    if ended == FINISHED:
        return None
    assert ended == KILLED, said
    before = found(out, kind)
    return check(kind, out, before, *played(kind, folder, out, engine))
