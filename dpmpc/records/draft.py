"""A first schema, from a look at one's own records, to be edited: TOML that says of each column what it does with it.

Ranges are rounded outwards to a tenth of their span or so, dates to whole years, and a value is listed only where two
records share it, so that no constant is one record's value; the constants still depend on records, so bounds is "data".
"""

import datetime
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpmpc.errors import RecordError, number_of
from dpmpc.intake.column_profile import ColumnProfile, quoted
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.intake.profile import TableProfile
from dpmpc.intake.spelling import comparing, is_number, listed, named
from dpmpc.records.schema import (
    Categorical,
    Classes,
    Column,
    Date,
    Goal,
    Kind,
    Labels,
    Missing,
    Numeric,
    Range,
    Schema,
    Surveyed,
    Target,
)

MOST_CLASSES = 20  # a target of more whole numbers than that is a quantity
_EPOCH = datetime.date(1970, 1, 1)


_FAR = 8e307  # twice that is a number
_FINEST = 1e-9  # of the larger end: nearer ends would be two records' values
_LEAST = 1e-300


def rounded(low: float, high: float) -> tuple[float, float]:
    """A range that holds [low, high] and whose ends are multiples of 1, 2 or 5 times a power of ten, about a tenth of
    its span: none is a record's value but by chance. It is no wider than a range may be: what is larger is clipped."""
    if not low < high:
        return (low, high) if low == 0 == high else rounded(min(low, 0.0), max(high, 0.0))
    low, high = (min(max(end, -_FAR), _FAR) for end in (low, high))
    span = max(high / 10 - low / 10, _FINEST * max(abs(low), abs(high)), _LEAST)  # tenths, for the span may overflow
    power = 10.0 ** math.floor(math.log10(span))
    step = next((k * power for k in (1, 2, 5) if k * power >= span), 10 * power)
    digits = max(0, -math.floor(math.log10(step)))
    return round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits)


def years(low: float, high: float) -> tuple[datetime.date, datetime.date]:
    """The first day of the year of `low` and of the one after `high`, both in days since 1970-01-01."""
    first, last = (_EPOCH + datetime.timedelta(days=math.floor(day)) for day in (low, high))
    return datetime.date(first.year, 1, 1), datetime.date(min(last.year + 1, 9999), 1, 1)


def check_features(intake: TableProfile, features: Sequence[ColumnProfile]) -> None:
    """Errors: there are none of them, with what the columns seem to be, for the owner's eyes."""
    if not features:
        left = ", ".join(f"{c.name}: {c.kind}" for c in intake.columns if c.role == "feature")[:200]
        raise RecordError(
            f"training needs features; no column of {intake.source} can be one ({left or 'there is no other'}); check"
            " how they are spelled with `dpmpc describe`, or give a schema",
            "training needs features; an owner's records have none",
        )


def column_of(found: ColumnProfile, *, hashed: bool) -> Column:
    """The schema's column for one that is used. `hashed`: texts in numbered buckets that two records share, so that no
    text is published; else each text that they share is listed."""
    if found.kind == "category":
        if not hashed:
            key = comparing(found.shared)
            once = {key(value): listed(value) for value in reversed(found.shared)}  # of one value the first
            return Categorical(found.name, tuple(once.values())[::-1])
        held: dict[int, int] = {}
        for value, count in found.values:
            if is_number(value) and not found.worded:  # has no bucket
                continue
            place = bucket(found.name, value, BUCKETS)
            held[place] = held.get(place, 0) + count
        number = found.least is not None
        low, high = rounded(found.least or 0.0, found.greatest or 0.0)
        kept = tuple(sorted(k for k, n in held.items() if n > 1))
        return Surveyed(found.name, number, low, high, BUCKETS, kept)
    if found.kind == "time":
        return Date(found.name, _EPOCH, _EPOCH + datetime.timedelta(days=1), ("hour",))
    assert found.least is not None and found.greatest is not None
    if found.kind == "date":
        return Date(found.name, *years(found.least, found.greatest))
    return Numeric(found.name, *rounded(found.least, found.greatest))


def schema_of(
    intake: TableProfile,
    target: str,
    *,
    goal: Goal | None = None,
    positive: str | None = None,
    intercept: bool = True,
    missing: Missing = "fill",
    hashed: bool = False,
    stated: Target | None = None,
) -> Schema:
    """A schema whose constants are read off the records; its target is as `stated`, if it is.
    Errors (all of them for the owner's eyes): a target that suits no task; no column that can be a feature."""
    found = stated or target_of(intake[target], None if goal is None else goal.kind, positive)
    check_features(intake, intake.features)
    columns = tuple(column_of(column, hashed=hashed) for column in intake.features)
    task, found = ("", found) if goal is None else (goal.name, goal.taken(found))
    return Schema(columns, found, intercept, missing, "data", task=task)


def target_of(found: ColumnProfile, kind: Kind | None, positive: str | None) -> Target:
    """The target as it seems: two values are a label, some texts classes, other numbers a quantity.

    Each class is held by two records at least. Errors: it suits no task, or the one that was asked for.
    """
    name, held_by = found.name, f"'{found.name}' has {number_of(found.distinct, 'different value')}"
    public = f"the target '{name}' does not suit the task"
    names = [value for value, _ in found.values]
    names.sort(key=float) if all(map(is_number, names)) else names.sort(key=str.encode)
    if kind is None:
        whole = found.kind in ("number", "identifier") and all(is_number(v) and float(v) % 1 == 0 for v in names)
        if found.listed and len(names) == 2:
            kind = "two"
        elif found.kind in ("number", "identifier") and whole and found.listed and 2 < len(names) <= MOST_CLASSES:
            raise RecordError(
                f"a target of few whole numbers may be classes or a quantity; '{name}' has {len(names)}"
                f" ({_some(names)}); set <<task=ridge>> for a quantity, <<task=softmax>> for classes",
                public,
            )
        elif found.kind in ("number", "identifier"):
            kind = "number"
        else:
            kind = "several" if found.listed and 2 < len(names) <= MOST_CLASSES else "two"
    if kind == "number":
        if (
            found.least is None
            or found.greatest is None
            or found.dates
            or found.kind in ("category", "free text", "time")
        ):
            shown = f", such as '{names[0][:40]}'" if names else ""
            raise RecordError(
                f"a quantity is a target of finite numbers; {held_by}{shown}; choose another target", public
            )
        if found.least == found.greatest:
            raise RecordError(f"a target must vary; '{name}' is always {found.least:g}; choose another", public)
        return Range(name, *rounded(found.least, found.greatest))
    if len(names) == 1 and found.missing:
        raise RecordError(*one_or_none(name, names[0]))
    if len(names) == 1:
        raise RecordError(
            f"a target must vary; '{name}' is always '{names[0][:40]}'; choose another, or state both <<classes>>",
            public,
        )
    rare = [value for value, count in found.values if count < 2]
    most = 2 if kind == "two" else MOST_CLASSES
    if not found.listed or not 2 <= len(names) <= most or rare:
        few = f" ({_some(names)})" if names else ""
        if rare and len(names) <= most:
            few = f", of which {number_of(len(rare), 'is', 'are')} there once"
        raise RecordError(
            f"a label has two values, and classes are at most {MOST_CLASSES}, each in two records at least; {held_by}"
            f"{few}; correct it, choose another target, or set <<task=ridge>> for a quantity",
            public,
        )
    if kind == "several":
        return Classes(name, tuple(names))
    return label_of(name, names, positive)


_NO = frozenset(
    "no n not none false f 0 negative neg never absent nein falsch non faux nej nee ne nie nao não niet nem hayir "
    "hayır ei ikke ingen 否 нет ні όχι いいえ 아니오 아니요 ไม่ ไม่ใช่ خیر نه لا नहीं không tidak".split()
)


_USUAL = frozenset(
    "alive live living survived survivor stayed stay retained existing active healthy control controls normal benign "
    "good well stable discharged home other others rest background legit legitimate ham clean pass passed paid current "
    "unaffected untreated placebo sano sana vivo viva gesund lebend sain vivant vivo bueno".split()
)  # of two classes the one that nobody looks for
_WITHOUT = (
    "not",
    "non",
    "no",
    "un",
    "in",
    "ohne",
    "kein",
    "keine",
    "nicht",
    "sans",
    "sin",
    "senza",
    "sem",
    "without",
    "nie",
    "ej",
)


def _is_usual(value: str, other: str) -> bool:
    """Whether a class is the one that a word, or the other class, says is not what is looked for: no, alive."""
    small, letters = value.lower().strip(), "".join(re.findall(r"[^\W_]", value.lower()))
    words = re.findall(r"[^\W\d_]+", small)
    beside = "".join(re.findall(r"[^\W_]", other.lower()))
    negated = any(letters == f"{word}{beside}" for word in _WITHOUT)
    return small in _NO or (bool(words) and (words[0] in _NO | {*_WITHOUT} or words[0] in _USUAL)) or negated


def label_of(name: str, classes: list[str], positive: str | None) -> Labels:
    """The label of two classes: what `positive` says is +1; else the one of which the other is a "no" (no, not ill,
    notckd), or what nobody looks for (alive, stayed, control); else the second, the greater number or the later text.
    Errors: it is neither."""
    if positive is not None:
        if (seen := named(positive, classes)) is None:
            raise RecordError(
                f"the positive class is one of {classes[0]} and {classes[1]}; got '{positive}'; correct it",
                f"the positive class is none of those of '{name}'",
            )
        classes = sorted(classes, key=lambda value: value == seen)
    elif _is_usual(classes[1], classes[0]) and not _is_usual(classes[0], classes[1]):
        classes = classes[::-1]
    return Labels(name, (classes[1],), (classes[0],))


def one_or_none(name: str, value: str) -> tuple[str, str]:
    """What is said of a target that has one value or none, and what of that is public."""
    return (
        f"a label has two classes; '{name}' is '{value[:40]}' or has no value; where a field without one is the other "
        f"class, state <<classes={quoted(['', value])}>>; else choose another target",
        "a label has two classes; an owner's records have one",
    )


_HEAD = ('# Replace ranges and lists by what is known without the records, then set bounds = "public".',)


def toml_of(schema: Schema, intake: TableProfile | None = None, head: Sequence[str] = _HEAD) -> str:
    """The schema as TOML that `Schema.read` reads, with a comment on each column that it leaves out. `head`: the
    comments that it begins with."""
    value = schema.to_json()
    target, columns, found = value.pop("target"), value.pop("columns"), value.pop("found", [])
    lines = [
        *head,
        *_pairs(value),
        *(line for each in found for line in ("", "[[found]]", *_pairs(each))),
        "",
        *(["# positive is +1; exchange the lists and names to turn it round"] if target["kind"] == "label" else []),
        "[target]",
        *_pairs(target),
    ]
    for column in columns:
        lines += ["", "[[columns]]", *_pairs(column)]
    left = [] if intake is None else [c for c in intake.columns if c.role != "target" and not c.used]
    if left:
        lines += ["", "# Left out:"]
        lines += [f"# - {_text(c.name)}: {c.kind}" + (", as asked" if c.role == "dropped" else "") for c in left]
    return "\n".join(lines) + "\n"


def _pairs(value: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(part)}" for key, part in value.items() if part is not None]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(value: str) -> str:
    """A TOML string: JSON's, but that TOML escapes one character more and knows no surrogates."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _some(names: list[str]) -> str:
    return ", ".join(name[:30] for name in names[:6]) + (", ..." if len(names) > 6 else "")
