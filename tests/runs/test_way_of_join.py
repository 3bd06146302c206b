"""How far it is from `dpmpc join FOLDER` to the first message: the rooms that a plan goes through, how often something
below calls back up, and how often the plan is read."""

import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.cli import main as cli
from dpmpc.errors import DpmpcError
from dpmpc.mpc.transport.dial import Call
from dpmpc.runs.consortium import read_consortium
from dpmpc.runs.consortium_text import Founding, text_of
from dpmpc.runs.job import OwnersJob
from dpmpc.runs.joining import Joining
from dpmpc.runs.kit import Kit, write_kits
from dpmpc.runs.placement import Placement
from dpmpc.runs.request import Request
from tests.tables import write

ROOT = Path(__file__).parents[2]
LAYERS = "imports point down, and every module has its layer"
CARRIES = (Plan, Request, Kit, Joining, Placement, OwnersJob, PartyJob)  # what settings travel in
HOME = "dpmpc.aggregation.plan"  # a plan's own package is one room
TOOLS = ("codec", "settings", "registry", "lazy")  # they call what is declared elsewhere: that is what they are for
Seen = tuple[set[str], set[tuple[str, str]], list[str]]


def floors() -> dict[str, int]:
    """Each top-level room's floor in the import contract, from below."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(each for each in contracts["contracts"] if each["name"] == LAYERS)["layers"]
    return {name.strip(): -k for k, floor in enumerate(layers) for name in floor.split("|")}


def module_of(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__", ""))
    return HOME if name.startswith(f"{HOME}.") else name


def caller_of(frame: FrameType) -> FrameType | None:
    """The frame of this house that called this one, past those of libraries."""
    above = frame.f_back
    while above is not None and not module_of(above).startswith("dpmpc."):
        above = above.f_back
    return above


@contextmanager
def watched(until: threading.Event) -> Iterator[Seen]:
    """(the modules that settings were handed to or by, the climbs as (caller, callee), who read a plan), until the
    event."""
    rooms, climbs, readers = set[str](), set[tuple[str, str]](), list[str]()
    floor = floors()

    def hear(frame: FrameType, event: str, argument: object) -> None:
        here = module_of(frame) if event == "call" and not until.is_set() else ""
        above = caller_of(frame) if here.startswith("dpmpc.") else None
        if above is None or "<module>" in (frame.f_code.co_name, above.f_code.co_name):
            return
        there = module_of(above)
        if frame.f_code is Plan.read.__code__:
            readers.append(there)
        room, before = here.split(".")[1], there.split(".")[1]
        if here == there or {room, before} & set(TOOLS):
            return
        if floor[room] > floor[before]:
            climbs.add((there, here))
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(isinstance(frame.f_locals.get(name), CARRIES) for name in names if name != "self"):
            rooms.update((there, here))

    before: tuple[Any, Any] = sys.getprofile(), threading.getprofile()
    threading.setprofile(hear)
    sys.setprofile(hear)
    try:
        yield rooms, climbs, readers
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])


def test_from_the_command_to_the_first_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an owner, up to the first call of a party: that is where something would leave this process."""
    addresses = ("127.0.0.2:1000", "127.0.0.3:1000", "127.0.0.4:1000")  # nobody is called there
    text = text_of(Founding(addresses=addresses, tls=False)).replace("# preprocessing", "preprocessing")
    path = write(tmp_path, text, "consortium.toml")
    consortium = read_consortium(path)
    write_kits(consortium, tmp_path / "kits", tmp_path / "authority")
    rows = [f"{k % 90},{'fm'[k % 2]},{('ill', 'well')[k % 3 > 0]}" for k in range(consortium.plan.sizes[1])]
    records = write(tmp_path, "\n".join(["age,sex,outcome", *rows, ""]), "records.csv")
    first = threading.Event()

    async def once(call: Call, *hello: object) -> None:
        first.set()
        raise DpmpcError("the first message")

    monkeypatch.setattr(Call, "once", once)
    with watched(first) as (rooms, climbs, readers):
        told = CliRunner().invoke(cli.group, ["join", str(tmp_path / "kits" / "owner1"), "--csv", str(records)])
    assert first.is_set() and "the first message" in str(told.exception), told.output
    assert {"dpmpc.cli.join", "dpmpc.runs.owner_process", "dpmpc.aggregation.owner.client", HOME} <= rooms
    assert len(rooms) < 20, sorted(rooms)
    assert 0 < len(climbs) < 5, sorted(climbs)
    assert readers == ["dpmpc.runs.kit"]


def test_a_climb_and_a_second_reading_are_seen(tmp_path: Path) -> None:
    """The counting itself: a callee of a lower room that calls back, and a plan that is read again."""
    plan = Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5)
    plan.write(tmp_path / "plan.json")
    spaces: dict[str, Any] = {name: {"__name__": f"dpmpc.{name}"} for name in ("cli.over", "runs.one", "data.two")}
    exec("def back(): pass", spaces["cli.over"])  # noqa: S102
    exec("def low(back): back()", spaces["data.two"])  # noqa: S102
    spaces["runs.one"] |= {"low": spaces["data.two"]["low"], "back": spaces["cli.over"]["back"], "read": Plan.read}
    exec("def run(plan, path): low(back); take(plan); read(path)\ndef take(plan): pass", spaces["runs.one"])  # noqa: S102
    exec("def begin(run, *given): run(*given)", spaces["cli.over"])  # noqa: S102
    with watched(threading.Event()) as (rooms, climbs, readers):
        spaces["cli.over"]["begin"](spaces["runs.one"]["run"], plan, tmp_path / "plan.json")
    assert ("dpmpc.data.two", "dpmpc.cli.over") in climbs and readers == ["dpmpc.runs.one"]
    assert {"dpmpc.cli.over", "dpmpc.runs.one"} <= rooms and "dpmpc.data.two" not in rooms
