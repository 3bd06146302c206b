"""Made-up files, each with one habit that once was read wrong in silence or stopped a run for good, of known values."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.intake.corpus.judge import Case, Truth

N = 400


def numbers(values: Sequence[float | None]) -> Truth:
    there = [v for v in values if v is not None]
    return Truth("number", float(np.mean(there)), missing=len(values) - len(there))


def words(values: Sequence[str]) -> Truth:
    there = [v for v in values if v]
    return Truth("category", values=dict(Counter(there)), missing=len(values) - len(there))


def text_of(rows: Sequence[Sequence[Any]], separator: str = ",") -> str:
    def cell(value: Any) -> str:
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if {separator, '"', "\n"} & {*text} else text

    return "".join(separator.join(map(cell, row)) + "\n" for row in rows)


def cases() -> list[Case]:
    g = np.random.default_rng(77)
    age = [int(a) for a in g.integers(20, 95, N)]
    flow = [float(f) for f in np.round(g.gamma(4, 5, N) + 1, 1)]
    ill = [int(a + e > 60) for a, e in zip(age, g.normal(0, 10, N), strict=True)]
    made = list[Case]()

    def add(name: str, columns: dict[str, Sequence[Any]], truth: dict[str, Truth], **more: Any) -> None:
        raw = more.pop("raw", None) or text_of([list(columns), *zip(*columns.values(), strict=True)])
        made.append(Case(name, raw.encode(more.pop("encoding", "utf-8")), more.pop("target", "ill"), truth, N, **more))

    plain = {"age": numbers(age), "ill": numbers(ill)}
    rows = [(f"{a}.5", f, "mw"[k % 2], y) for k, (a, f, y) in enumerate(zip(age, flow, ill, strict=True))]
    add("no line of names", {}, {"column 2": numbers(flow)}, raw=text_of(rows), target="column 4")
    limit = [["<5", ">5", "none"][k] for k in g.integers(0, 3, N)]
    add("limits are levels", {"stay": limit, "age": age, "ill": ill}, {"stay": words(limit), **plain}, stops=0)
    comma = "".join(
        f"{a},{1000 + a if k % 3 else f'1,{a:03d}'},{y},\n" for k, (a, y) in enumerate(zip(age, ill, strict=True))
    )
    add("a comma too many", {}, {}, raw="age,cost,ill,note\n" + comma, refused="as many fields as there are columns")
    days = [[int(d), 77, 88][int(d > 20) + int(d > 24)] if k > 3 else 99 for k, d in enumerate(g.integers(1, 31, N))]
    add(
        "codes of surveys",
        {"days": days, "ill": ill},
        {"days": numbers([None if d > 70 else d for d in days])},
        stops=0,
    )
    smokes = [[1, 2, -99][k] for k in g.choice(3, N, p=[0.4, 0.5, 0.1])]
    sex = [[1, 2, 9][k] for k in g.choice(3, N, p=[0.45, 0.45, 0.1])]
    few = {
        "smokes": numbers([None if v < 0 else v for v in smokes]),
        "sex": numbers([None if v > 2 else v for v in sex]),
    }
    add("codes among few values", {"smokes": smokes, "sex": sex, "ill": ill}, few, stops=0)
    gas = {f"gas{k}": [-300 if g.random() < 0.07 else f for f in flow] for k in range(4)}
    lacks = {name: numbers([None if v == -300 else v for v in values]) for name, values in gas.items()}
    add("one negative number in several columns", {**gas, "ill": ill}, lacks, stops=0)
    said = [["the ward\u2019s own", "f\u00eate \u2013 none"][k] for k in g.integers(0, 2, N)]
    add("Windows quotes", {"age": age, "note": said, "ill": ill}, {"note": words(said), **plain}, encoding="cp1252")
    label = [["1. Often", "2. Never"][k] for k in g.integers(0, 2, N)]
    house = [["1Fam", "2Fam", "Duplex"][k] for k in g.integers(0, 3, N)]
    coded = {"label": words(label), "house": words(house), **plain}
    add("labels with codes", {"age": age, "label": label, "house": house, "ill": ill}, coded, stops=0)
    until = ["9999-12-31" if g.random() < 0.5 else f"2022-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(N)]
    open_ended = Truth("date", missing=until.count("9999-12-31"))
    add("a date for none", {"age": age, "until": until, "ill": ill}, {"until": open_ended, **plain}, stops=0)
    three = [["When", "A1", "A2"], ["Started on", "Your age?", "Ill?"], ['{"id":"w"}', '{"id":"a"}', '{"id":"b"}']]
    body = [(f"2023-05-{1 + k % 28:02d} 09:00:00", a, "yn"[y]) for k, (a, y) in enumerate(zip(age, ill, strict=True))]
    add("three lines of names", {}, {"A1": numbers(age)}, raw=text_of([*three, *body]), target="A2")
    two = [["V0", "V1", "V2"], ["KEY", "PAID_0", "late next month"]]
    body2 = [(k, a, y) for k, (a, y) in enumerate(zip(age, ill, strict=True))]
    add("a second line of names with digits", {}, {"V1": numbers(age)}, raw=text_of([*two, *body2]), target="V2")
    head = "Office;\nAll rights\n;\nNo;Place;Men;;Ill\n;;First;Second;\n"
    merged = head + text_of(
        [(k, f"Town {k}", a, f, y) for k, (a, f, y) in enumerate(zip(age, flow, ill, strict=True))], ";"
    )
    add("merged titles", {}, {"Men": numbers(age), "column 4": numbers(flow)}, raw=merged, target="Ill")
    names = {"X_NO2": [a * 3 for a in age], "number of calls": [a + k % 90 for k, a in enumerate(age)], "ill": ill}
    add("names that look like those of identifiers", names, {k: numbers(v) for k, v in names.items()}, stops=0)
    gappy = ["" if g.random() < 0.4 else ["low", "high"][k] for k in g.integers(0, 2, N)]
    add("a column of gaps", {"age": age, "grade": gappy, "ill": ill}, {"grade": words(gappy), **plain}, stops=0)
    percent = [f"{p}%" if k % 2 else f"{p / 100:.2f}" for k, p in enumerate(g.integers(70, 101, N))]
    add("per cent and fractions", {"age": age, "sat": percent, "ill": ill}, plain, stops=0, said=("sat",))
    flags = {f"flag{k}": [int(u < p) for u in g.random(N)] for k, p in enumerate((0.2, 0.1, 0.05))}
    add("rare flags", {"age": age, **flags, "ill": ill}, {k: numbers(v) for k, v in flags.items()}, stops=0)
    classes = ["flu" if y else "notflu" for y in ill]
    add("a negated class", {"age": age, "ill": classes}, {"age": plain["age"], "ill": words(classes)}, stops=0)
    dist = [["<5 km", "5-10 km", "12 km", ">16 km"][k] for k in g.integers(0, 4, N)]
    add("levels with units", {"age": age, "dist": dist, "ill": ill}, {"dist": words(dist), **plain}, stops=0)
    return made
