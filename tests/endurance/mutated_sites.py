"""One site of a consortium has another file: each key of `consortium.toml` is put to anything else at that site alone.
It is refused by one line that names a key; or the plan is that of the others; or it is another, and then all sites end
by one line before anything is spent.

    python -m tests.endurance.mutated_sites                         # every change, and 10 meetings a kind of run
    python -m tests.endurance.mutated_sites --meetings 40 --seed 7
"""

import argparse
import copy
import json
import math
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_keys import ConsortiumFile
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.privacy.ledgers import merge, read_ledgers
from tests.machines import process, together
from tests.made_up_sites import EACH, OWNERS, files
from tests.runs import own_addresses

Path_ = tuple[str | int, ...]  # where a value stands in a file
CANARY = "Xyzzy-canary"
HEAD: dict[str, Any] = {
    "run": {"data_id": "made up", "tls": False, "role": "both", "wait": 60.0},
    "privacy": {"epsilon": 12.0, "delta": 1e-5},
    "mpc": {"backend": "shamir"},
}
RECORDS: dict[str, Any] = {
    "target": "outcome", "positive": ["yes"], "negative": ["no"], "unknown": ["dose", "ward"],
    "bounds": {"age": [0, 150]},
}  # fmt: skip
ASKED = {"bounds": {"age": [0, 150], "ward": ["north", "south"]}}
BASES: dict[str, dict[str, Any]] = {
    "train": {"records": {**RECORDS, "test_fraction": 0.3}, "learning": {"iterations": 2}},
    "stats": {"records": ASKED, "stats": {"queries": ["mean(age)", "count by ward"]}},
    "synth": {"records": ASKED, "synth": {"target": "ward", "cuts": {"age": [18, 40, 65]}, "hopeless": "allow"}},
}


def based(kind: str, addresses: list[str]) -> dict[str, Any]:
    """A valid file of three sites, as a value."""
    value = {**copy.deepcopy(HEAD), **copy.deepcopy(BASES[kind])}
    value["parties"] = [{"name": f"s{i}", "address": address} for i, address in enumerate(addresses[1::2])]
    value["owners"] = [{"name": f"s{j}", "records": EACH} for j in range(OWNERS)]
    return value


# -- TOML --------------------------------------------------------------------------------------------------------------
def written(value: Any) -> str:
    """A value as TOML has it, in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)} = {written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text)


def text_of(value: dict[str, Any]) -> str:
    """The file."""
    return "".join(f"{_quoted(key)} = {written(each)}\n" for key, each in value.items())


# -- what is changed ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Mutant:
    """A text in which what stands at `at` was changed in this way."""

    at: Path_
    how: str
    text: str

    @property
    def name(self) -> str:
        """The key that was changed: where a list is, that of the list."""
        return str(next((step for step in reversed(self.at) if isinstance(step, str)), ""))


def places(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every place in a value."""
    if at:
        yield at
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*at, key))


def known(kind: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every key that the file may have, in its sections."""
    for each in msgspec.structs.fields(kind):
        part = next(
            (p for p in (each.type, *getattr(each.type, "__args__", ())) if hasattr(p, "__struct_fields__")), None
        )
        yield (*at, each.encode_name)
        if part is not None and not at and each.name not in ("parties", "owners"):
            yield from known(part, (each.encode_name,))


def others(value: Any) -> dict[str, Any]:
    """What a value is put to, by name."""
    found: dict[str, Any] = {
        "nan": math.nan, "infinite": math.inf, "huge": 10**400, "large": 2**62, "huge float": 1e308, "tiny": 5e-324,
        "negative": -1, "zero": 0, "a text": CANARY, "no text": "", "a list": [], "a nested list": [[[1]]],
        "a table": {}, "true": True, "false": False, "a long text": "x" * 100_000, "an escape": "\u001b[2J",
        "two lines": "a\nepsilon = 0.01",
    }  # fmt: skip
    if isinstance(value, bool):
        found["other"] = not value
    elif isinstance(value, int | float):
        found |= {
            "one more": value + 1,
            "twice": value * 2,
            "half": value / 2,
            "as text": str(value),
            "with a minus": -value,
        }
        found["the next"] = math.nextafter(float(value), math.inf)
    elif isinstance(value, str):
        look = str.maketrans("aeosp", "\u0430\u0435\u043e\u0455\u0440")
        found |= {"look-alike": value.translate(look), "one more": value + "1", "in capitals": value.upper()}
        found["with space"] = value + " "
    elif isinstance(value, list):
        found |= {"twice": value * 2, "backwards": value[::-1], "one less": value[:-1], "with a null": [*value, ""]}
    return {name: each for name, each in found.items() if not (type(each) is type(value) and each == value)}


def _set(value: Any, at: Path_, new: Any) -> Any:
    made = copy.deepcopy(value)
    part = made
    for step in at[:-1]:
        part = part.setdefault(step, {}) if isinstance(part, dict) else part[step]
    part[at[-1]] = new
    return made


def _without(value: Any, at: Path_) -> Any:
    made = copy.deepcopy(value)
    part = made
    for step in at[:-1]:
        part = part[step]
    del part[at[-1]]
    return made


def _renamed(value: Any, at: Path_, name: str) -> Any:
    made = copy.deepcopy(value)
    part = made
    for step in at[:-1]:
        part = part[step]
    if not isinstance(part, dict):
        return None
    part[name] = part.pop(at[-1])
    return made


def changed(
    base: Any, text: Callable[[Any], str], twice: Callable[[Any, str], str]
) -> Iterator[tuple[Path_, str, str]]:
    """(place, how, text) of every change of a value that is written with `text`; with `twice` where one of its keys is
    there twice."""
    for at in list(places(base)):
        value: Any = base
        for step in at:
            value = value[step]
        for how, new in others(value).items():
            yield at, how, text(_set(base, at, new))
        yield at, "missing", text(_without(base, at))
        if isinstance(at[-1], str):
            typo, look = at[-1][:-1] + "x", at[-1].translate(str.maketrans("aeo", "\u0430\u0435\u043e"))
            for how, name in (("a typo", typo), ("a look-alike", look)):
                if name != at[-1] and (made := _renamed(base, at, name)) is not None:
                    yield at, how, text(made)
        if len(at) == 1 and isinstance(at[0], str):
            yield at, "there twice", twice(base, at[0])


def mutants(base: dict[str, Any]) -> Iterator[Mutant]:
    """Every change of a file of a consortium."""
    there = set(places(base))
    for at, how, text in changed(base, text_of, lambda value, key: text_of(value) + f"{key} = {written(value[key])}\n"):
        yield Mutant(at, how, text)
    for at in known(ConsortiumFile):
        if at not in there:
            for how, new in others(None).items():
                yield Mutant(at, f"new: {how}", text_of(_set(base, at, new)))


# -- what becomes of it ------------------------------------------------------------------------------------------------
def read(text: str, folder: Path) -> tuple[str, Plan | None]:
    """The refusal in one line, or the plan. Any other error is a fault."""
    path = folder / "consortium.toml"
    path.write_text(text, encoding="utf-8")
    try:
        return "", read_consortium(path).plan
    except UsageError as error:
        return str(error), None


def met(honest: Plan, other: Plan, folder: Path, wait: float) -> tuple[list[DpmpcError | None], list[int]]:
    """What the three sites end with of which the second has another plan, and how many releases each has spent."""
    records, addresses = files(folder), own_addresses(OWNERS)
    for name, plan in (("honest", honest), ("other", other)):
        (folder / name).mkdir()
        plan.write(plan_path(folder / name))
    plans = [plan_path(folder / name) for name in ("honest", "other", "honest")]
    sites = [
        process(plan, folder, str(k), addresses, record, wait, role="both")
        for k, (plan, record) in enumerate(zip(plans, records, strict=True))
    ]
    return together(sites), [len(merge(read_ledgers(folder / str(k)))) for k in range(OWNERS)]


def wrong_with(mutant: Mutant, honest: Plan, folder: Path) -> tuple[str, str, Plan | None]:
    """("refused", "the same" or "another", what is wrong with the refusal, the plan)."""
    why, plan = read(mutant.text, folder)
    if plan is not None:
        return ("the same" if plan == honest else "another"), "", plan
    if "\n" in why.partition("\n  ")[0] or len(why) > 5000:  # a question is pointed into
        return "refused", "it is no line", None
    known_ = {"name", *map(str, mutant.at), *(str(key) for at in known(ConsortiumFile) for key in at)}
    placed = "\n  " in why or "(at line " in why
    return "refused", "" if placed or any(key in why for key in known_) else f"it names no key: {why}", None


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meetings", type=int, default=10, metavar="N", help="other plans that are brought to one")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng, bad = random.Random(asked.seed), 0
    for kind in BASES:
        with tempfile.TemporaryDirectory() as folder:
            base = based(kind, own_addresses(OWNERS))
            why, honest = read(text_of(base), Path(folder))
            assert honest is not None, why
            count, plans = Counter[str](), list[tuple[Mutant, Plan]]()
            for mutant in mutants(base):
                what, wrong, plan = wrong_with(mutant, honest, Path(folder))
                count[what] += 1
                bad += bool(wrong)
                plans += [] if plan is None or what == "the same" else [(mutant, plan)]
                if wrong:
                    print(f"{kind}: {mutant.at} {mutant.how}: {wrong}", flush=True)
        print(f"{kind}: {dict(count)}", flush=True)
        for mutant, plan in rng.sample(plans, min(len(plans), asked.meetings)):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["DPMPC_ACCOUNT"] = f"{folder}/account"
                try:
                    other = replace(plan, run_id=honest.run_id)  # else that says it
                except UsageError:
                    continue
                if other == honest:
                    continue
                ends, spent = met(honest, other, Path(folder), 60.0)
            wrong = "" if all(end is not None and "\n" not in str(end) for end in ends) else f"ends {ends}"
            wrong += f"spent {spent}" * any(spent)
            bad += bool(wrong)
            print(f"{kind}: {mutant.at} {mutant.how}: {wrong or str(ends[0])[-160:]}", flush=True)
    print(f"{bad} were not as they should be")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
