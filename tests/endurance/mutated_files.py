"""Files of a run, a kit and an account are changed at one place each: a command that reads them ends by one line and a
code that is not 0, or does what it does; it shows no traceback, does not hang, and spends nothing.

    python -m tests.endurance.mutated_files                     # 40 changes of each file
    python -m tests.endurance.mutated_files --each 0 --seed 7   # every change
"""

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from dpmpc.cli.main import main as command
from tests.endurance.mutated_sites import changed, others, text_of
from tests.runs import own_addresses

HANG = 60  # seconds of a command that takes two
LONGEST = 5000
TOML = """
[run]
data_id = "mutated"
tls = false
[[parties]]
name = "p0"
address = "{0}"
[[parties]]
name = "p1"
address = "{1}"
[[parties]]
name = "p2"
address = "{2}"
[[owners]]
name = "o0"
records = 60
[records]
target = "ill"
positive = ["yes"]
preprocessing = "records"
[records.bounds]
age = [0, 100]
sex = ["f", "m"]
[learning]
method = "gradient"
iterations = 3
step = 0.1
[privacy]
epsilon = 1
delta = 1e-4
[limits]
budget = "9.0,1e-3"
data_id = "mutated"
"""


# -- what is changed ---------------------------------------------------------------------------------------------------
def of_bytes(good: bytes) -> Iterator[tuple[str, bytes]]:
    """What may befall any file."""
    yield "nothing in it", b""
    yield "its first half", good[: len(good) // 2]
    yield "its end missing", good[:-1]
    yield "twice", good * 2
    yield "zeros", bytes(len(good))
    yield "no UTF-8", b"\xff\xfe" + good
    yield "a mark of UTF-8 before", b"\xef\xbb\xbf" + good
    yield "another's", b"PK\x03\x04" + good
    yield "nested deep", b"[" * 100_000
    yield "nested deep in a table", b'{"a":' * 100_000
    yield "a list", b"[]\n"
    yield "a table", b"{}\n"
    yield "a number", b"3\n"
    yield "a null", b"null\n"
    yield "lines of Windows", good.replace(b"\n", b"\r\n") + b"\r\n"


def of_json(good: bytes) -> Iterator[tuple[str, bytes]]:
    """One place of a JSON file is another."""
    for at, how, text in changed(json.loads(good), json.dumps, _twice):
        yield f"{at} {how}", text.encode()


def _twice(value: Any, key: str) -> str:
    return "{" + f"{json.dumps(key)}: {json.dumps(value[key])}, " + json.dumps(value)[1:]


def of_toml(good: bytes) -> Iterator[tuple[str, bytes]]:
    """One place of a TOML file is another."""
    import tomllib

    value = tomllib.loads(good.decode())
    for at, how, text in changed(value, text_of, lambda value, key: text_of(value) + text_of({key: value[key]})):
        yield f"{at} {how}", text.encode()


def of_lines(good: bytes) -> Iterator[tuple[str, bytes]]:
    """One line of a file of JSON lines is another, or not where it was; of the first, a middle one and the last."""
    lines = good.splitlines()
    for k in sorted({0, len(lines) // 2, len(lines) - 1}):
        before, after = lines[:k], lines[k + 1 :]
        for how, put in (("gone", []), ("twice", [lines[k]] * 2), ("a text", [b"canary"]), ("half", [lines[k][:40]])):
            yield f"line {k} {how}", b"\n".join([*before, *put, *after, b""])
        for at, how, text in changed(json.loads(lines[k]), json.dumps, _twice):
            yield f"line {k} {at} {how}", b"\n".join([*before, text.encode(), *after, b""])


def of_model(good: bytes) -> Iterator[tuple[str, bytes]]:
    """One array of model.npz is another; where it holds JSON, one place of that."""
    with np.load(io.BytesIO(good), allow_pickle=False) as saved:
        arrays = {name: saved[name] for name in saved.files}

    def packed(made: dict[str, Any]) -> bytes:
        file = io.BytesIO()
        np.savez(file, **made)
        return file.getvalue()

    for name, array in arrays.items():
        yield f"{name} missing", packed({key: each for key, each in arrays.items() if key != name})
        puts: dict[str, Any] = {
            "no values": array[..., :0] if array.ndim else np.array([]),
            "a list more": np.array([array, array]),
            "texts": np.array(["canary"] * max(array.size, 1)),
            "objects": np.array([{"a": 1}], dtype=object),
            "a number": np.array(3),
            "complex": np.array([1j]),
        }
        if array.dtype.kind == "f":
            for value in (np.nan, np.inf, 1e308, -1.0, 0.0):
                puts[f"all {value}"] = np.full_like(array, value)
        for how, put in puts.items():
            yield f"{name} {how}", packed({**arrays, name: put})
        if array.ndim == 0 and array.dtype.kind == "U":
            for how, text in [*of_bytes(str(array).encode()), *_json_of(str(array))]:
                with contextlib.suppress(UnicodeDecodeError):
                    yield f"{name}: {how}", packed({**arrays, name: np.array(text.decode())})
    yield "a member more", packed({**arrays, "more": np.array(1)})
    with zipfile.ZipFile(io.BytesIO(good)) as packed_file:
        names = packed_file.namelist()
    for name in names:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as made, zipfile.ZipFile(io.BytesIO(good)) as before:
            for each in names:
                made.writestr(each, b"canary" if each == name else before.read(each))
        yield f"{name} is no array", file.getvalue()


def _json_of(text: str) -> Iterator[tuple[str, bytes]]:
    try:
        json.loads(text)
    except ValueError:
        for how, other in others(text).items():
            yield how, str(other).encode()
    else:
        yield from of_json(text.encode())


# -- what reads it -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Read:
    """A file, how it is changed, and the commands that read it."""

    path: str
    changes: Callable[[bytes], Iterator[tuple[str, bytes]]]
    commands: tuple[tuple[str, ...], ...]


CHECK, JOIN = ("check", "--plan", "kits/o0/plan.json", "--csv", "r.csv"), ("join", "kits/o0", "--csv", "r.csv")
DRY = (*JOIN, "--dry-run", "--wait", "0.01")
PREDICT, VERIFY, REPORT = ("predict", "run", "--csv", "r.csv"), ("verify", "run", "--structure"), ("report", "run")
ASKED_PLAN = ("check", "--plan", "run/plan.json", "--csv", "r.csv")
STATUS, SPENT, REMEMBERED = ("status", "run"), ("budget", "run"), ("budget",)
RESUME = ("train", "--resume", "run")
READS = (
    Read("kits/o0/plan.json", of_json, (CHECK, DRY, ("status", "kits/o0"))),
    Read("kits/o0/site.toml", of_toml, (CHECK, DRY)),
    Read("kits/o0/limits.toml", of_toml, (DRY,)),
    Read("kits/o0/schema.json", of_json, (("check", "--schema", "kits/o0/schema.json", "--csv", "r.csv"),)),
    Read("account/*.jsonl", of_lines, (DRY, REMEMBERED)),
    Read("run/plan.json", of_json, (ASKED_PLAN, VERIFY, REPORT, STATUS)),
    Read("run/report.json", of_json, (REPORT,)),
    Read("run/verify.json", of_json, (REPORT,)),
    Read("run/status_owners.json", of_json, (STATUS,)),
    Read("run/history.csv", of_bytes, (REPORT,)),
    Read("run/attempt.json", of_json, (RESUME,)),
    Read("run/request.json", of_json, (RESUME,)),
    Read("run/owners.opened.bin", of_bytes, (VERIFY, RESUME)),
    Read("run/model.npz", of_model, (PREDICT, REPORT)),
    Read("run/ledger_0.jsonl", of_lines, (SPENT, VERIFY, REPORT)),
    Read("run/party_0.transcript.jsonl", of_lines, (VERIFY, REPORT)),
)


def made(folder: Path) -> None:
    """Records, a finished run on them with its account, and kits for another, in `folder`, which is the current one."""
    rng = random.Random(1)
    rows = [f"{rng.randint(18, 90)},{rng.choice('fm')},{rng.choice(['yes', 'no'])}" for _ in range(60)]
    (folder / "r.csv").write_text("\n".join(["age,sex,ill", *rows, ""]))
    (folder / "consortium.toml").write_text(TOML.format(*own_addresses(3)[1::2]))
    for words in (
        ("train", "--csv", "r.csv", "--owners", "3", "-M", "3", "--epsilon",
         "5", "--delta", "1e-4", "--iterations", "3", "--data-id", "mutated", "--out", "run", "--schema", "s.json"),
        ("verify", "run", "--structure"),
        ("kit", "consortium.toml", "--out", "kits"),
    ):  # fmt: skip
        if "s.json" in words:
            schema = json.dumps({
                "columns": [{"kind": "number", "name": "age", "low": 0, "high": 100},
                            {"kind": "category", "name": "sex", "categories": ["f", "m"]}],
                "target": {"kind": "label", "name": "ill", "positive": ["yes"], "negative": ["no"]},
            })  # fmt: skip
            (folder / "s.json").write_text(schema)
        code, said, fault = ended(words)
        assert code == 0, (words, said, fault)


def ended(words: Sequence[str]) -> tuple[int | None, str, str]:
    """Exit code, standard error and traceback of a command in this process. Without a code it hung or had a fault."""

    def late(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt("it hung")

    said, code, fault = io.StringIO(), None, ""
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(HANG)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            command(list(words))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else None
    except BaseException as error:  # noqa: BLE001  (a fault of any kind is what is looked for)
        places = [f"{Path(each.filename).name}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
        fault = f"{type(error).__name__}: {error!s:.200} at {' '.join(places[-4:])}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return code, said.getvalue(), fault


def wrong_with(code: int | None, said: str, fault: str) -> str:
    """What is wrong with an end; empty where nothing is."""
    lines = said.strip().splitlines()
    if fault or code is None:
        return f"it has a fault: {fault}"
    if "Traceback" in said:
        return f"it shows a traceback: {said[-1500:]}"
    if code == 130:
        return "it hung"
    if code > 1 and (not lines or not lines[-1].startswith("error: ") or len(lines[-1]) > LONGEST):
        return f"its code is {code}, without a line: {said[-300:]}"
    if code > 1 and not any(mark in lines[-1] for mark in (";", "missing")):
        return f"its line has no value and no way out: {lines[-1][-300:]}"
    if "\x1b" in said:
        return f"it drives the terminal: {said[-300:]!r}"
    if "<<" in said:
        return f"a setting is marked: {said[-300:]}"
    return ""


def counted(folder: Path) -> dict[str, bytes]:
    """What is spent: every ledger and account."""
    found = [*folder.rglob("ledger*.jsonl"), *(folder / "account").glob("*.jsonl")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


def tried(read: Read, folder: Path, rng: random.Random, each: int, say: Callable[[str], object]) -> tuple[int, int]:
    """How many changes of a file were tried with each command, and how many ends were not as they should be."""
    (path,) = sorted(folder.glob(read.path))
    good, bad = path.read_bytes(), 0
    ways = [*of_bytes(good), *([] if read.changes is of_bytes else read.changes(good))]
    if each and len(ways) > each:
        ways = rng.sample(ways, each)
    for how, content in ways:
        path.write_bytes(content)
        spent = counted(folder)
        for words in read.commands:
            wrong = wrong_with(*ended(words))
            if words != RESUME and counted(folder) != spent:
                wrong += " it spent"
                path.write_bytes(content)
            if wrong:
                bad += 1
                say(f"{read.path}: {how}: {' '.join(words[:2])}: {wrong}")
        path.write_bytes(good)
    return len(ways), bad


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=40, metavar="N", help="changes of a file; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose path has this")
    asked = parser.parse_args()
    rng, bad = random.Random(asked.seed), 0
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        os.environ["DPMPC_ACCOUNT"] = f"{temporary}/account"
        folder = Path(temporary)
        made(folder)
        for read in READS:
            if asked.only in read.path:
                number, wrong = tried(read, folder, rng, asked.each, lambda text: print(text, flush=True))
                bad += wrong
                print(f"{read.path}: {number} changes, {wrong} ends were not as they should be", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
