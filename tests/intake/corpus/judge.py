"""What becomes of a file whose right reading is known: the figures that come out, what is said, and how often it stops.

A user is played who follows the words literally: the first way out that an error or a line of the look gives is stated,
and the file is opened again.
"""

import ast
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import dpmpc
from dpmpc.errors import DpmpcError, owner_text
from dpmpc.intake.describe import describe
from dpmpc.intake.profile import TableProfile
from dpmpc.intake.spelling import Spelling, is_number
from dpmpc.records import CsvFile
from dpmpc.records.derive import TableSettings, looked
from dpmpc.records.loading import opened

_CLOSE = 1e-9
_COARSE = 0.15  # of a range, or of the rows: so far may a synthetic table of cells be off


@dataclass(frozen=True)
class Truth:
    """A column as it is meant. `mean`: of its numbers, to be within rounding; `values`: how often each value of a
    category is there; `missing`: fields without a value; `said`: a line must be said of it, as no option reads it."""

    kind: str
    mean: float | None = None
    values: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    said: bool = False


@dataclass(frozen=True)
class Case:
    """A file, its target and the columns that are held against what is read. `stops`: how often a run may stop.
    `refused`: words of a rule by which it is refused for good, as it must be. `said`: columns of which a line must be
    said, as no option reads them right."""

    name: str
    raw: bytes
    target: str
    truth: dict[str, Truth]
    rows: int
    stops: int = 1
    refused: str = ""
    said: tuple[str, ...] = ()
    owners: str = ""  # the column that says whose a record is; "" for none: `stats` and `synth` are not asked then


def stated_in(text: str) -> dict[str, object]:
    """The settings of the first way out of a text."""
    at = text.find("Spelling(")
    for end in (k for k, sign in enumerate(text) if at >= 0 and sign == ")" and k > at):
        try:
            call = ast.parse(text[at : end + 1], mode="eval").body
        except SyntaxError:
            continue
        assert isinstance(call, ast.Call)
        return {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    return {}


def followed(spelling: Spelling, text: str) -> Spelling:
    """The spelling with what a text says to state; lists get longer."""
    more = stated_in(text)
    lists = {name: (*getattr(spelling, name), *value) for name, value in more.items() if isinstance(value, tuple)}
    return replace(spelling, **{**more, **lists})  # type: ignore[arg-type]


def judged(case: Case, folder: Path, spelling: Spelling = Spelling(), runs: bool = True) -> list[str]:  # noqa: B008
    """What is wrong with how a file is read, and with what `describe`, `train`, `stats` and `synth` then say (`runs`);
    nothing where all is right."""
    path = folder / f"{re.sub('[^a-z0-9]', '_', case.name)}.csv"
    path.write_bytes(case.raw)
    said = list[str]()
    for stop in range(case.stops + 1):
        try:
            with opened(CsvFile(path), spelling=spelling, unsaid=case.target) as (table, _):
                found, _ = looked(table, TableSettings(case.target))
                lines = found.findings
                if (after := _follow(case, spelling, lines)) != spelling:
                    said += lines
                    with opened(CsvFile(path), spelling=after) as (again, _):
                        found, _plain = looked(again, TableSettings(case.target))
                        said += found.findings
                wrong = _held(case, found, [*said, *lines])
                return wrong or (_ran(case, found, path, after) if runs else [])
        except DpmpcError as error:
            text = owner_text(error)
            if case.refused and case.refused in text:
                return []
            said.append(text)
            before = spelling
            try:
                spelling = followed(spelling, text)
            except DpmpcError as refused:
                return [f"a way out that is refused ({refused}): {text}"]
            if spelling == before:
                return [f"a stop without a way out: {text}"]
            if stop == case.stops:
                return [f"stops {stop + 1} times: {' / '.join(said)}"]
    return []


def _follow(case: Case, spelling: Spelling, lines: list[str]) -> Spelling:
    """With what the lines on the columns of this case say of values that stand for none, and of codes."""
    for line in lines:
        named = [truth for name, truth in case.truth.items() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line)]
        if "is no record" in line:
            spelling = followed(spelling, line.partition("is no record")[2])
        elif named and "to state" in line:
            spelling = followed(spelling, line.partition("to state")[2].replace("<<", "").replace(">>", ""))
        elif named and "to read them as words" in line and all(truth.kind == "category" for truth in named):
            spelling = followed(spelling, line.partition("to read them as words")[2])
    return spelling


def _held(case: Case, found: TableProfile, said: list[str]) -> list[str]:
    """Where what was read is not what was meant, and no line says so of the column."""
    wrong = [f"nothing is said of '{name}'" for name in case.said if not any(f"'{name}'" in line for line in said)]
    if case.refused:
        return [*wrong, "it was not refused"]
    if found.rows != case.rows:
        wrong.append(f"{found.rows} records are {case.rows}")
    for name, truth in case.truth.items():
        column = next((c for c in found.columns if c.name == name), None)
        if column is None:
            wrong.append(f"there is no column '{name}' of {[c.name for c in found.columns]}")
            continue
        if name in case.said:
            continue
        if column.kind != truth.kind:
            wrong.append(f"'{name}' is {column.kind}, not {truth.kind} ({column.why})")
        elif truth.kind == "category" and dict(column.values) != truth.values:
            wrong.append(f"'{name}' has {dict(column.values)}, not {truth.values}")
        elif truth.mean is not None and column.listed:
            values = [(float(v), n) for v, n in column.values if is_number(v)]
            mean = sum(v * n for v, n in values) / sum(n for _, n in values)
            if abs(mean - truth.mean) > _CLOSE * max(1.0, abs(truth.mean)):
                wrong.append(f"'{name}' has the mean {mean}, not {truth.mean}")
        if column.missing + column.unread != truth.missing:
            wrong.append(f"'{name}' has {column.missing + column.unread} fields without a value, not {truth.missing}")
    return wrong


CONFIDENCE = 1 - 1e-9  # of each interval: a right one is missed once in 10^9


def _ran(case: Case, found: TableProfile, path: Path, spelling: Spelling) -> list[str]:
    """Where `describe`, `train`, `stats` and `synth` do not say of a file that is read right what is so."""
    wrong = list[str]()
    with opened(CsvFile(path), spelling=spelling, guess=True) as (table, _):
        shown = describe(table, target=case.target).to_json()
    if shown["records"] != case.rows or shown["proposed"] != {**shown["stated"], **shown["proposed"]}:
        wrong.append(f"describe has {shown['records']} records, and proposes {shown['proposed']}")
    if not case.owners or wrong:
        return wrong
    promise: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-5, "engine": "clear"}
    run = path.with_suffix(".run")
    made = dpmpc.train(
        run, csv=str(path), target=case.target, owners_column=case.owners, spelling=spelling, iterations=2,
        evaluate=False, **promise,
    )  # fmt: skip
    shutil.rmtree(run)
    if abs((have := sum(made.report["owner_sizes"])) - 0.8 * case.rows) > 3:  # a fifth is held out, of each owner
        wrong.append(f"train has {have} of {case.rows} records")
    truth = {name: each for name, each in case.truth.items() if name not in (*case.said, case.owners)}
    ends = {name: (found[name].least, found[name].greatest) for name, each in truth.items() if each.mean is not None}
    numbers = {name: [low, high] for name, (low, high) in ends.items() if low is not None and high is not None}
    listed = {name: sorted(each.values) for name, each in truth.items() if len(each.values) > 1}
    asked = [*(f'mean("{name}")' for name in numbers), *(f'table("{name}")' for name in listed)]
    public: dict[str, Any] = {**numbers, **listed}
    settings = {"owners": case.owners, "bounds": public, "spelling": spelling, "hopeless": "allow", **promise}
    answers = dpmpc.stats(CsvFile(path), asked, confidence=CONFIDENCE, **settings).outcome.answers
    for name, answer in zip((*numbers, *listed), answers, strict=True):
        meant = {value: float(count) for value, count in truth[name].values.items()} or {"": truth[name].mean or 0.0}
        counted = [line for line in answer.lines if line.statistic != "percent"]
        lines = {line.labels[0] if line.labels else "": line.number for line in counted}
        for value, true in meant.items():
            number = lines.get(value)
            if number is None:
                wrong.append(f"stats has {list(lines)} of '{name}', and not {value}")
            elif number.low is not None and number.high is not None and not number.low <= true <= number.high:
                wrong.append(f"stats has {number.low} to {number.high} of '{name}' {value}, which is {true}")
    rows = dpmpc.synth(CsvFile(path), cells=8, seed=1, **settings).values
    if list(rows) != list(public):
        wrong.append(f"synth has the columns {list(rows)}, not {list(public)}")
    for name, (low, high) in numbers.items():
        mean = float(np.mean(np.array(rows[name], dtype=float)[np.isfinite(np.array(rows[name], dtype=float))]))
        if abs(mean - (truth[name].mean or 0.0)) > _COARSE * (high - low):
            wrong.append(f"synth has the mean {mean} of '{name}', which is {truth[name].mean}")
    for name in listed:
        shares = Counter(str(value) for value in rows[name] if value is not None)
        for value, count in truth[name].values.items():
            if abs(shares[value] / len(rows[name]) - count / case.rows) > _COARSE:
                wrong.append(f"synth has {shares[value]} of '{name}' {value} in {len(rows[name])}, not {count}")
    return wrong
