"""Tables of which little or nothing can be learnt go through every command that reads records: each is one clear line
and a code that is not 0, with nothing spent, or does what it does. None shows a traceback or hangs.

    python -m tests.endurance.degenerate_tables                     # every table with every command
    python -m tests.endurance.degenerate_tables --only "one class"  # those whose name, or whose command, has this
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.endurance.mutated_files import counted, ended, wrong_with
from tests.runs import own_addresses

N = 60
NAMES = ("age", "sex", "note", "ill", "site")
Row = list[str]
End = tuple[int | None, str, str]  # code, what it wrote to standard error, the traceback of a fault


# -- tables ------------------------------------------------------------------------------------------------------------
def usual(n: int = N) -> list[Row]:
    """Records of which something can be learnt."""
    rng = random.Random(1)
    return [
        [str(rng.randint(18, 90)), rng.choice("fm"), f"seen on ward {k}", rng.choice(["yes", "no"]), "abc"[k % 3]]
        for k in range(n)
    ]


def csv(rows: Sequence[Row], names: Sequence[str] = NAMES) -> bytes:
    """Those records as a file."""
    return "\n".join([",".join(names), *(",".join(row) for row in rows), ""]).encode()


def put(**columns: str | Callable[[int], str]) -> bytes:
    """The usual records with other columns: the same value everywhere, or one by the record's number."""
    rows = usual()
    for name, value in columns.items():
        for k, row in enumerate(rows):
            row[NAMES.index(name)] = value if isinstance(value, str) else value(k)
    return csv(rows)


def only(*names: str) -> bytes:
    """The usual records with these columns alone."""
    places = [NAMES.index(name) for name in names]
    return csv([[row[place] for place in places] for row in usual()], names)


def cycled(*values: str) -> Callable[[int], str]:
    """One of these values, by turns."""
    return lambda k: values[k % len(values)]


TABLES: dict[str, bytes] = {
    "nothing": b"",
    "a mark alone": b"\xef\xbb\xbf",
    "a mark of UTF-16 alone": b"\xff\xfe",
    "blank lines": b"\n\n\n\n",
    "zeros": bytes(300),
    "a header alone": csv([]),
    "a header without an end": csv([]).rstrip(),
    "one record": csv(usual(1)),
    "two records": csv(usual(2)),
    "all alike": csv(usual(1) * N),
    "all constant but the target": put(age="40", sex="f", note="-"),
    "all missing but the target": put(age="", sex="", note=""),
    "all missing": put(age="", sex="", note="", ill=""),
    "ids and texts alone": put(age=lambda k: f"P{k:07}", sex=lambda k: f"Q{k:07}", note=lambda k: f"it is {k} days"),
    "one class": put(ill="no"),
    "a class of one record": put(ill=lambda k: "yes" if k == 30 else "no"),
    "a class at one owner": put(ill=lambda k: "yes" if k % 3 == 0 and k % 2 else "no"),
    "a target of other words": put(ill=cycled("maybe", "perhaps")),
    "a target that is missing": put(ill=""),
    "a target that is all different": put(ill=lambda k: f"P{k:07}"),
    "the target alone": only("ill", "site"),
    "one column": only("ill"),
    "one feature": only("age", "ill", "site"),
    "ids twice": put(note=lambda k: f"P{k // 2:07}"),
    "infinite": put(age=cycled("inf", "-inf", "nan")),
    "huge": put(age=cycled("1e308", "-1e308", "1e309", "5e-324")),
    "some infinite": put(age=lambda k: ("inf", "nan", "1e308", "-1e308")[k] if k < 4 else str(20 + k)),
    "one number": put(age="1e308"),
    "long texts": csv([[*row[:2], "x" * 1_000_000, *row[3:]] for row in usual(12)]),
    "long names": csv(usual(), [name if name in ("ill", "site") else name * 100_000 for name in NAMES]),
    "names twice": csv(usual(), ("age", "age", "age", "ill", "site")),
    "no names": csv(usual(), ("", "", "", "ill", "site")),
    "one owner's records missing": put(site=cycled("a", "b", "")),
    "one owner": put(site="a"),
    "an owner of one record": put(site=lambda k: "b" if k == 7 else "a"),
    "fields missing": csv([row[: 2 + k % 4] for k, row in enumerate(usual())]),
    "more fields than names": csv([[*row, "x"] for row in usual()]),
}


# -- commands ----------------------------------------------------------------------------------------------------------
SCHEMA = {
    "columns": [
        {"kind": "number", "name": "age", "low": 0, "high": 100},
        {"kind": "category", "name": "sex", "categories": ["f", "m"]},
    ],
    "target": {"kind": "label", "name": "ill", "positive": ["yes"], "negative": ["no"]},
}
BOUNDS = {"age": [0, 100], "sex": ["f", "m"], "ill": ["no", "yes"]}
PROMISE = ("--epsilon", "5", "--delta", "1e-3", "--engine", "clear")
OWNED = ("--csv", "r.csv", "--owners-column", "site", *PROMISE)
TRAIN = ("train", *OWNED, "--iterations", "3", "--out", "out")
STATS = ("stats", "count", "mean(age)", "count by ill", "table(sex, ill)", "--bounds", "bounds.json", *OWNED)
SYNTH = ("synth", "--bounds", "bounds.json", "--hopeless", "--drop", "note", *OWNED)
COMMANDS: dict[str, tuple[str, ...]] = {
    "describe": ("describe", "r.csv", "--target", "ill", "--schema", "drafted.toml"),
    "check": ("check", "--schema", "s.json", "--csv", "r.csv"),
    "check of a plan": ("check", "--plan", "kits/a/plan.json", "--csv", "r.csv"),
    "join": ("join", "kits/a", "--csv", "r.csv", "--dry-run", "--wait", "0.01"),
    "predict": ("predict", "model", "--csv", "r.csv", "--out", "p.csv"),
    "train": (*TRAIN, "--target", "ill"),
    "train on records": (*TRAIN, "--target", "ill", "--preprocessing", "records"),
    "train by a schema": (*TRAIN, "--schema", "s.json"),
    "train by bounds": (*TRAIN, "--target", "ill", "--bounds", "bounds.json", "--drop", "note"),
    "train on classes": (*TRAIN, "--target", "ill", "--task", "softmax"),
    "train on numbers": (*TRAIN, "--target", "age", "--task", "ridge"),
    "train on persons": (*TRAIN, "--target", "ill", "--person", "note"),
    "train at one owner": ("train", "--csv", "r.csv", "--owners", "1", *PROMISE, "--schema", "s.json", "--out", "out"),
    "stats": (*STATS, "--out", "out"),
    "synth": (*SYNTH, "--out", "out"),
}  # fmt: skip
FITS = ("fit of a frame", "fit of an array", "fit of numbers", "fit of persons", "train a frame")


def fitted(how: str) -> End:
    """The same of an estimator, or of `dpmpc.train`, on the frame that pandas makes of the file."""
    import numpy as np
    import pandas as pd

    import dpmpc
    from dpmpc.errors import DpmpcError
    from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge

    try:
        frame = pd.read_csv("r.csv")
        X, y = frame.drop(columns=["ill", "site"], errors="ignore"), frame.ill
        if how == "fit of numbers":
            y = frame.age
            X = X.drop(columns="age")
        elif how == "fit of an array":
            X = np.asarray(X.select_dtypes("number"))
    except (ValueError, AttributeError):  # pandas has no such frame
        return 0, "", ""
    promise: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-3, "data_id": "degenerate", "engine": "clear"}
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            if how == "train a frame":
                dpmpc.train(records=frame, target="ill", owners=1, out="out", overwrite=True, **promise)
            elif how == "fit of numbers":
                PrivateRidge(**promise).fit(X, y)
            elif how == "fit of persons":
                PrivateLogisticRegression(**promise, person="note").fit(X, y)
            else:
                PrivateLogisticRegression(**promise).fit(X, y)
    except DpmpcError as error:
        return 2, f"error: {error}", ""
    except Exception as error:  # noqa: BLE001  (a fault of any kind is what is looked for)
        at = traceback.extract_tb(error.__traceback__)
        if isinstance(error, ValueError) and "sklearn" in Path(at[-1].filename).parts:  # which has no ways out
            return 2, "error: scikit-learn refuses it; its own words", ""
        return None, "", f"{type(error).__name__}: {error!s:.200} at {Path(at[-1].filename).name}:{at[-1].lineno}"
    return 0, "", ""


# -- trials ------------------------------------------------------------------------------------------------------------
def kit(sizes: Sequence[int]) -> str:
    """A consortium of three owners with so many records."""
    text = TOML.format(*own_addresses(3)[1::2])
    for name, size in zip("abc", sizes, strict=True):
        text += f'[[owners]]\nname = "{name}"\nrecords = {size}\n'
    return text


TOML = """
[run]
data_id = "degenerate"
tls = false
[records]
target = "ill"
positive = ["yes"]
negative = ["no"]
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
[[parties]]
name = "p0"
address = "{0}"
[[parties]]
name = "p1"
address = "{1}"
[[parties]]
name = "p2"
address = "{2}"
"""


def made(folder: Path) -> None:
    """A model, a schema, bounds and kits, in `folder`, which is the current one."""
    (folder / "s.json").write_text(json.dumps(SCHEMA))
    (folder / "bounds.json").write_text(json.dumps(BOUNDS))
    (folder / "r.csv").write_bytes(csv(usual()))
    (folder / "consortium.toml").write_text(kit((N, N, N)))
    for words in ((*TRAIN[:-1], "model", "--schema", "s.json"), ("kit", "consortium.toml", "--out", "kits")):
        code, said, fault = ended(words)
        assert code == 0, (words, said, fault)


def tried(table: str, command: str, folder: Path) -> tuple[int | None, str]:
    """The code of a command on a table, and what is wrong with its end; empty where nothing is."""
    (folder / "r.csv").write_bytes(TABLES[table])
    for name in ("out", "p.csv", "drafted.toml"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    before = counted(folder)
    code, said, fault = ended(COMMANDS[command]) if command in COMMANDS else fitted(command)
    wrong = wrong_with(code, said, fault)
    if code and counted(folder) != before:
        wrong += f" it ended with {code} and spent: {said.strip().splitlines()[-1:]}"
    return code, wrong


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="tables and commands whose name has this")
    asked, bad, many = parser.parse_args(), 0, 0
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        os.environ["DPMPC_ACCOUNT"] = f"{temporary}/account"
        made(Path(temporary))
        for command in (*COMMANDS, *FITS):
            for table in TABLES:
                if asked.only in command or asked.only in table:
                    code, wrong = tried(table, command, Path(temporary))
                    bad, many = bad + bool(wrong), many + 1
                    print(f"{command}: {table}: {wrong or f'code {code}'}", flush=True)
    print(f"{many} tries, {bad} ends were not as they should be", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
