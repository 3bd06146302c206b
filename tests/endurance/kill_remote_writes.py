"""Runs over several machines of which one process is killed between two of its writes and started again with the same
command: what `kill_writes` holds of them.

A training has all stages that there are: questions, a survey, training, an evaluation; a synthetic table has a survey
and two releases. Processes have folders and accounts of their own and are connected over loopback: three sites that are
owner and party each, or three parties and three owners. Whoever ends because another is away is started again, as a
service manager would. Then, from the files alone:

- every process ends by itself, and has the same answers, model and figures, byte for byte;
- every process has the same opened vectors, of every stage;
- every release of every stage has one line in a ledger, all folders together, and none beyond those that were planned;
- a release of training that was spent and not opened is missing from the model, and only such;
- where the one release of a stage was spent and opened by nobody, every process says so in a line, and ends;
- nothing stays in a folder that is of nobody's use: no half of a file, no reservation.
"""

import contextlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.endurance.kill_writes import FAILED, FINISHED, KILLED, PRELOAD, doomed, left_behind

NAMES = {"sites": ("0", "1", "2"), "apart": ("0", "1", "2", "owner0", "owner1", "owner2")}
VICTIMS = {"sites": ("0", "1"), "apart": ("0", "1", "owner1")}
SOURCES = ("train", "stats", "synth", "meet")
STAGES = {  # releases of each
    "train": {"questions": 1, "survey": 1, "": 3, "evaluation": 1}, "stats": {"": 1}, "meet": {"": 1},
    "synth": {"survey": 1, "first": 1, "": 1},
}  # fmt: skip
SAME = {  # files; rows are drawn anew at each
    "train": ("questions/answers.json", "figures.json", "model.npz"), "stats": ("answers.json",),
    "synth": ("answers.json",), "meet": ("answers.json",),
}  # fmt: skip
HANG, PATIENCE = 240.0, 60.0  # seconds for a run, and that its processes wait for one another
LOST = "spent and was not opened"
AGAIN = 6  # times that a process is started again at most


def planned(source: str, kind: str) -> Any:
    """The plan of a run, made of public numbers alone."""
    from dpmpc.aggregation.plan.of_source import plan_of
    from dpmpc.records.origins import PUBLIC
    from dpmpc.statistics.columns import Columns, Quantity, category
    from dpmpc.statistics.tables import Tables
    from dpmpc.tables.meet import meeting_of
    from dpmpc.tables.stats import plan_of_tables
    from dpmpc.tables.synth_plan import plan_of_synthesis
    from tests.made_up_sites import BOTH, EACH, OWNERS

    settings: dict[str, Any] = {"epsilon": 12.0, "delta": 1e-5, **(BOTH if kind == "sites" else {"backend": "shamir"})}
    sizes, columns = (EACH,) * OWNERS, Columns((Quantity("age", 0.0, 150.0), category("ward", ("north", "south"))))
    if source == "train":
        return trained(kind, sizes, settings)
    if source == "meet":
        plan = plan_of(meeting_of(("age", "ward"), OWNERS), sizes, data_id="kills", **settings)
    elif source == "stats":
        asked = Tables.of(columns, ["count", "mean(age) by ward"])
        plan = plan_of_tables(asked, sizes, "kills", "kills", settings, PUBLIC, by_person=True)
    else:
        plan = plan_of_synthesis(columns, None, (), sizes, "kills", "kills", settings, PUBLIC, hopeless=True)
    return replace(plan, run_id="r")


def trained(kind: str, sizes: tuple[int, ...], settings: dict[str, Any]) -> Any:
    """The plan of training with all stages."""
    from dpmpc.consortium.plan_of_machines import Beforehand, plan_of_machines
    from dpmpc.planning import forecast
    from dpmpc.planning.request import Request
    from dpmpc.records.origins import Origin
    from dpmpc.statistics.columns import Columns, category
    from dpmpc.statistics.tables import Tables
    from tests.made_up_sites import draft

    asked: dict[str, Any] = {"iterations": STAGES["train"][""], "data_id": "kills", "run_id": "r", **settings}
    tables = Tables.of(Columns((category("ward", ("north", "south")),)), ["count by ward"])
    request = Request(schema="schema.json", owner_sizes=sizes, evaluate=False, **asked)
    with patch.object(forecast, "LOUDEST", 0.5):  # with few records, so that a run is quick
        return plan_of_machines(request, draft(), sizes, True, Beforehand(tables, Origin(), 0.5, settings))[0]


def _process(
    source: str, kind: str, folder: Path, out: Path, name: str, addresses: Sequence[str], number: int, said: Any
) -> None:  # fmt: skip
    """One process of a run, which dies at its write of this number. `said`: told how many it made, or its error."""
    from dpmpc.aggregation.plan.limits import Limits
    from dpmpc.consortium.placement import Placement
    from dpmpc.consortium.start import start
    from dpmpc.planning.request import Request

    mine = out / name
    os.environ["DPMPC_ACCOUNT"] = str(out / f"account-{name}")
    owner = name if kind == "sites" else name.removeprefix("owner") if name.startswith("owner") else None
    request = None if owner is None else Request(csv=str(folder / f"owner{owner}.csv"), planned=True, evaluate=False)
    where = Placement(
        out=mine, index=name, plan_file=folder / "plan.json", addresses=tuple(addresses), wait=PATIENCE,
        role="both" if kind == "sites" else "apart", limits=Limits(by_owner=True) if source == "meet" else None,
    )  # fmt: skip
    doomed(lambda: start(request, where, lambda event: None), number, mine, None, said)


def play(source: str, kind: str, folder: Path, out: Path, victim: str, number: int) -> str | None:
    """What became of a run whose process was killed at its write of this number; None where it had fewer.
    Errors: AssertionError for a process that ends otherwise than because another is away, or does not end."""
    from tests.runs import own_addresses

    assert victim in NAMES[kind], f"a victim of {kind} is one of {', '.join(NAMES[kind])}; got {victim}"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    addresses, running, again, killed = own_addresses(3)[1::2], dict[str, tuple[Any, Any]](), Counter[str](), False
    lost = set[str]()

    def begin(name: str, number: int = -1) -> None:
        heard, said = context.Pipe(duplex=False)
        process = context.Process(target=_process, args=(source, kind, folder, out, name, addresses, number, said))
        process.start()
        said.close()
        running[name] = process, heard

    for name in NAMES[kind]:
        begin(name, number if name == victim else -1)
    try:
        while running:
            ended = wait([process.sentinel for process, _ in running.values()], HANG)
            assert ended, f"{sorted(running)} hang"
            for name, (process, heard) in list(running.items()):
                if process.sentinel not in ended:
                    continue
                process.join()
                del running[name]
                result: Any = None
                with contextlib.suppress(EOFError):
                    result = heard.recv()
                heard.close()
                if process.exitcode == FINISHED:
                    continue
                killed = killed or process.exitcode == KILLED
                if process.exitcode == FAILED and LOST in str(result):
                    lost.add(name)
                    continue
                away = process.exitcode == FAILED and str(result).startswith(("PeerError", "AbortError"))
                assert process.exitcode == KILLED or away, (name, process.exitcode, result)
                again[name] += 1
                assert again[name] < AGAIN, f"{name} is started again and again: {result}"
                begin(name)
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()
    if not killed:
        return None
    return check_lost(source, kind, out, lost) if lost else check(source, kind, out)


def check(source: str, kind: str, out: Path) -> str:
    """Asserts what must hold of the files of a run; what became of it."""
    from dpmpc.aggregation.plan.plan import Plan
    from dpmpc.privacy.ledgers import merge, read_ledgers
    from dpmpc.run.resume import opened_anywhere

    folders = [out / name for name in NAMES[kind]]
    for file in SAME[source]:
        assert len({(folder / file).read_bytes() for folder in folders}) == 1, f"{file} differs"
    for folder in folders:
        for path in folder.rglob("ledger_*.jsonl"):
            from dpmpc.privacy.ledger import Ledger

            lines = Counter((entry.run, entry.release) for entry in Ledger.read(path).entries)
            assert max(lines.values(), default=1) == 1, f"{path} has a release twice"
        left_behind(folder)
    spent = Counter(entry.run for entry in merge([book for folder in folders for book in read_ledgers(folder)]))
    missing = 0
    for stage, releases in STAGES[source].items():
        run = f"r+{stage}" if stage else "r"
        assert spent[run] <= releases, f"{run}: {spent[run]} of {releases} planned"
        found = [opened_anywhere(folder / stage, _plan(folder / stage)) for folder in folders]
        opened = [{number: total.tobytes() for number, total in each.items()} for each in found]
        assert all(each == opened[0] for each in opened), f"{run}: not all have opened the same"
        assert len(opened[0]) <= spent[run] == releases, f"{run}: opened {len(opened[0])}, spent {spent[run]}"
        assert not stage or len(opened[0]) == releases, f"{run} is lost"
        missing += releases - len(opened[0])
    assert isinstance(_plan(folders[0]), Plan)
    return f"{missing} of training lost" if missing else "finished"


def check_lost(source: str, kind: str, out: Path, said: set[str]) -> str:
    """Asserts that a stage is lost indeed, and that every process has said so; which."""
    from dpmpc.aggregation.wire.transcript import holds_nothing
    from dpmpc.privacy.ledgers import merge, read_ledgers

    assert said == set(NAMES[kind]), f"only {sorted(said)} say that a release is lost"
    spent = Counter(entry.run for name in NAMES[kind] for entry in merge(read_ledgers(out / name)))
    stage = [*STAGES[source]][sum(1 for each in STAGES[source] if spent[f"r+{each}" if each else "r"]) - 1]
    assert STAGES[source][stage] == 1 and spent[f"r+{stage}"], spent
    opened = [
        path for name in NAMES[kind] for path in (out / name / stage).glob("*.opened.bin") if not holds_nothing(path)
    ]
    assert not opened, f"{stage} was opened: {opened}"
    return f"{stage} lost, and said so"


def _plan(folder: Path) -> Any:
    from dpmpc.aggregation.plan.plan import Plan

    found = [path for name in ("plan.json", "plan_*.json") for path in sorted(folder.glob(name))]
    return Plan.read(found[0])


def kill_at(source: str, kind: str, folder: Path, victim: str, number: int) -> str | None:
    """What became of a run whose process was killed at its write of this number; None where it had fewer."""
    from tests.made_up_sites import files

    if not (folder / "plan.json").is_file():
        files(folder)
        planned(source, kind).write(folder / "plan.json")
    return play(source, kind, folder, folder / f"{source}-{kind}-{victim}-{number}", victim, number)
