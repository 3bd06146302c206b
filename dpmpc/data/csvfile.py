"""Any CSV file as a data set: column kinds and classes found in the file, or fixed by a file of public bounds."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from dpmpc.data.dataset import Dataset, Ints, build, split
from dpmpc.data.preprocess import Bounds, Categorical, Column, Labels, Numeric, Preprocessing, Range, Task
from dpmpc.data.table import Floats, Table, Texts, is_missing, parse, read_table
from dpmpc.errors import UsageError

_MOST_CATEGORIES = 1000
_DECIMAL_COMMA = re.compile(rb"[+-]?[\d.]*\d,?\d*")


def load_csv(
    path: Path,
    *,
    target: str,
    owners_column: str | None = None,
    task: Task | None = None,
    seed: int,
    test_fraction: float = 0.2,
    intercept: bool = True,
    max_rows: int | None = None,
    bounds_file: Path | None = None,
    missing: Literal["fill", "drop"] = "fill",
    drop: Sequence[str] = (),
    positive: str | None = None,
) -> Dataset:
    """The data set in a CSV file with a header; every column is a feature but the target, the owners' and `drop`.

    A column is numeric if all its values are numbers, and else categorical. A target with two values is a label (+1 is
    `positive`, by default the greater number or the later text); one with more is numeric, for ridge regression.
    bounds_file: JSON, {column: [low, high] or [category, ...]} for every feature; for the target [low, high], or
    [negative, positive]. With it bounds are "public"; without, ranges and lists come from the file's records: "data".
    missing: "fill", or "drop" for records with a missing feature. A missing target or owner is an error.
    Errors: a missing file or column, a target that does not suit the task, values that are no finite numbers.
    """
    table = read_table(path)
    for name in (target, *([owners_column] if owners_column is not None else []), *drop):
        table.column(name)
    if owners_column == target:
        raise UsageError(f"the target and the owners' column are two columns; both are '{target}'; change one")
    features = [name for name in table.names if name not in {target, owners_column, *drop}]
    if not features:
        raise UsageError(
            f"training needs features; {table.source} has no column besides target and owners; add columns"
        )
    public = None if bounds_file is None else read_bounds(bounds_file)
    if public is not None and (absent := [name for name in (*features, target) if name not in public]):
        raise UsageError(
            f"public bounds must cover every feature and the target; {bounds_file} lacks {', '.join(absent[:8])};"
            " add them, or leave such columns out with --drop"
        )
    goal = _target(target, table[target], task, positive, None if public is None else public[target])
    given: Mapping[str, list[float] | list[str]] = {} if public is None else public
    columns = tuple(_column(name, table, given.get(name)) for name in features)
    bounds: Bounds = "data" if public is None else "public"
    preprocessing = Preprocessing(columns, goal, intercept, missing, bounds)
    if missing == "drop":
        whole = preprocessing.complete(table)
        if not whole.any():
            raise UsageError(
                f"training needs complete records; every record of {table.source} misses a value; fill instead"
            )
        table = table.rows(np.flatnonzero(whole))
    groups, names = (None, ()) if owners_column is None else _owners(owners_column, table[owners_column])
    train, test = split(table.n, test_fraction=test_fraction, max_rows=max_rows, seed=seed, groups=groups)
    order = np.concatenate([train, test])
    return build(
        table.source,
        preprocessing,
        table.rows(order),
        len(train),
        groups=None if groups is None else groups[order],
        group_names=names,
    )


def read_bounds(path: Path) -> dict[str, list[float] | list[str]]:
    """The public bounds in a JSON file: column -> [low, high], or a list of categories. Errors: anything else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"a bounds file must be readable; {path}: {error.strerror}; check the path") from None
    except ValueError as error:
        raise UsageError(f"a bounds file is JSON; {path.name}: {error}; correct it") from None
    rule = "a bounds file maps each column to [low, high] or to a list of texts"
    if not isinstance(value, dict):
        raise UsageError(f"{rule}; {path.name} holds a {type(value).__name__}; write an object")
    result: dict[str, list[float] | list[str]] = {}
    for name, entry in value.items():
        if not isinstance(entry, list) or not entry:
            raise UsageError(f"{rule}; '{name}' has {json.dumps(entry)[:60]}; correct it")
        if all(isinstance(part, str) for part in entry):
            if len(set(entry)) < len(entry):
                raise UsageError(f"{rule}, each once; '{name}' repeats one; remove it")
            result[name] = entry
        elif len(entry) == 2 and all(isinstance(part, int | float) and np.isfinite(part) for part in entry):
            if not entry[0] < entry[1]:
                raise UsageError(f"{rule}, low < high; '{name}' has {entry}; correct it")
            result[name] = [float(part) for part in entry]
        else:
            raise UsageError(f"{rule}; '{name}' has {json.dumps(entry)[:60]}; correct it")
    return result


def _column(name: str, table: Table, public: list[float] | list[str] | None) -> Column:
    if public is not None:
        if isinstance(public[0], str):
            return Categorical(name, tuple(str(category) for category in public))
        return Numeric(name, float(public[0]), float(public[1]))
    raw = table[name]
    values, bad = parse(raw)
    present = ~is_missing(raw)
    if not present.any():
        raise UsageError(
            f"a feature needs values; column '{name}' of {table.source} is empty; leave it out with --drop"
        )
    if not bad.any():
        return Numeric(name, float(np.nanmin(values)), float(np.nanmax(values)))
    distinct = np.unique(raw[present])
    wrong = [text for text in distinct if text.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")]
    if wrong:
        raise UsageError(
            f"values are finite; column '{name}' of {table.source} holds '{wrong[0].decode()}'; leave missing"
            " values empty"
        )
    if all(_DECIMAL_COMMA.fullmatch(text) for text in distinct):
        raise UsageError(
            f"numbers have a decimal point; column '{name}' of {table.source} has '{distinct[0].decode()}'; save"
            " the file with points"
        )
    if len(distinct) > _MOST_CATEGORIES:
        raise UsageError(
            f"a categorical column has at most {_MOST_CATEGORIES} values; '{name}' has {len(distinct)}; leave it"
            " out with --drop"
        )
    return Categorical(name, tuple(text.decode() for text in distinct))


def _target(
    name: str, raw: Texts, task: Task | None, positive: str | None, public: list[float] | list[str] | None
) -> Labels | Range:
    absent = is_missing(raw)
    if absent.any():
        raise UsageError(
            f"the target is never missing; '{name}' is in record {int(np.argmax(absent)) + 1}; remove such records"
        )
    values, bad = parse(raw)
    if public is not None:
        return _public_target(name, raw, values, task, positive, public)
    distinct = np.unique(raw)
    if task is None:
        task = "logistic" if bad.any() or len(np.unique(values)) <= 2 else "ridge"
    if task == "ridge":
        if bad.any():
            text = raw[int(np.argmax(bad))].decode()
            raise UsageError(
                f"ridge needs a target of finite numbers; '{name}' holds '{text[:40]}'; choose another target"
            )
        if values.min() == values.max():
            raise UsageError(f"a target must vary; '{name}' is always {values.min()}; choose another target")
        return Range(name, float(values.min()), float(values.max()))
    classes: dict[str, tuple[str, ...]] = {}
    if bad.any():
        classes = {text.decode(): (text.decode(),) for text in distinct}
    else:  # 1 and 1.0 are one class
        for value in np.unique(values):
            same = tuple(text.decode() for text in np.unique(raw[values == value]))
            classes[min(same, key=lambda text: (len(text), text))] = same
    names = list(classes)
    if len(names) != 2:
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise UsageError(
            f"a label has two values; target '{name}' has {len(names)} ({shown}); choose a binary target, or ridge"
            " for a numeric one"
        )
    if positive is not None:
        holder = [key for key, texts in classes.items() if positive in texts]
        if not holder:
            raise UsageError(f"the positive class is one of {names[0]} and {names[1]}; got '{positive}'; correct it")
        names.sort(key=lambda key: key == holder[0])
    return Labels(name, classes[names[1]], classes[names[0]], names[1], names[0])


def _public_target(
    name: str,
    raw: Texts,
    values: Floats,
    task: Task | None,
    positive: str | None,
    public: list[float] | list[str],
) -> Labels | Range:
    """The target as the bounds file has it.

    Two texts are a label's classes; two numbers are a range, or a label's classes if the target has no other values.
    """
    if isinstance(public[0], str):
        if len(public) != 2 or task == "ridge":
            raise UsageError(
                f"bounds of a label are its two values, of a numeric target [low, high]; '{name}' has"
                f" {json.dumps(public)[:60]} for {task or 'logistic'}; correct the bounds"
            )
        classes = [(str(text),) for text in public]
    else:
        if task == "ridge" or (task is None and not np.isin(values, public).all()):
            return Range(name, float(public[0]), float(public[1]))
        classes = [
            tuple(text.decode() for text in np.unique(raw[values == value])) or (f"{value:g}",) for value in public
        ]
    if positive is not None:
        if not any(positive in texts for texts in classes):
            raise UsageError(
                f"the positive class is one of {classes[0][0]}, {classes[1][0]}; got '{positive}'; correct it"
            )
        classes.sort(key=lambda texts: positive in texts)
    return Labels(name, classes[1], classes[0], classes[1][0], classes[0][0])


def _owners(name: str, raw: Texts) -> tuple[Ints, tuple[str, ...]]:
    """(n,) the number of each record's owner, and the owners' names in the order of their numbers."""
    absent = is_missing(raw)
    if absent.any():
        raise UsageError(
            f"every record has an owner; '{name}' is empty in record {int(np.argmax(absent)) + 1}; fill it in"
        )
    names, numbers = np.unique(raw, return_inverse=True)
    return numbers.astype(np.int64).reshape(-1), tuple(text.decode() for text in names)
