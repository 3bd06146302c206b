"""Made-up files in the layouts of programs and offices: metadata above and below, settings, comments, flags, marks."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.intake.corpus.cases import numbers, text_of, words
from tests.intake.corpus.judge import Case, Truth

N = 180


def programs() -> list[Case]:
    """The files."""
    g = np.random.default_rng(5454)
    age = [int(a) for a in g.integers(18, 95, N)]
    cost = [round(float(c), 2) for c in g.gamma(3, 900, N) + 20]
    crp = [round(float(c), 1) for c in g.gamma(2, 9, N) + 0.6]
    ill = [int(a + e > 56) for a, e in zip(age, g.normal(0, 12, N), strict=True)]
    day = [datetime.date(2020, 3, 1) + datetime.timedelta(int(k)) for k in g.integers(0, 1200, N)]
    gone = [bool(u < 0.07) for u in g.random(N)]
    site = [("north", "south", "west")[k % 3] for k in range(N)]
    yes, seen, made = [("no", "yes")[y] for y in ill], Truth("date"), list[Case]()
    also: dict[str, Sequence[Any]] = {"site": site, "age": age, "ill": yes}
    plain = {"age": numbers(age), "ill": words(yes)}

    def some(values: Sequence[float]) -> Truth:
        return numbers([None if b else v for v, b in zip(values, gone, strict=True)])

    def but(values: Sequence[Any], word: str) -> list[Any]:
        return [word if b else v for v, b in zip(values, gone, strict=True)]

    def add(name: str, given: str | dict[str, Sequence[Any]], truth: dict[str, Truth], **more: Any) -> None:
        encoding, separator = more.pop("encoding", "utf-8"), more.pop("separator", ",")
        raw = given if isinstance(given, str) else text_of([list(given), *zip(*given.values(), strict=True)], separator)
        data = raw.encode(encoding)
        made.append(Case(name, data, more.pop("target", "ill"), dict(truth), more.pop("rows", N), **more))

    # offices: titles that fill some fields, years as names, names over two lines, notes below
    bank = '"Data Source","World Indicators",\n\n"Last Updated","2023-12-18",\n\n"Name","Code","2018","2019","2020",\n'
    bank += "".join(f'"Land {k}","L{k:03d}","{c}","{"" if b else d}","{a}",\n' for k, (c, d, a, b) in
                    enumerate(zip(crp, cost, age, gone, strict=True)))  # fmt: skip
    add("indicators of a bank", "\ufeff" + bank, {"2018": numbers(crp), "2019": some(cost), "2020": numbers(age)},
        target="2020")  # fmt: skip
    rows = list(zip([f"P{k}" for k in range(N)], age, cost, age[1:] + age[:1], crp, yes, strict=True))
    above = [("Region", "2019", "", "2020", "", "ill"), ("", "men", "women", "men", "women", "")]
    add("years over two columns", text_of([*above, *rows], ";"), {"2019": numbers(age)}, stops=2)
    above = [("place", "2020", "2020", "ill"), ("place", "people", "share (%)", "ill")]
    rows = list(zip([f"P{k}" for k in range(N)], age, but(crp, "-"), yes, strict=True))
    add("a year twice", text_of([*above, *rows]), {"2020 (1)": numbers(age), "2020 (2)": some(crp)}, stops=2)
    months = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
    series = [("Title", "INDEX", "RATE", "ill"), ("CDID", "D7BT", "L55O", "Q1"), ("PreUnit", "", "", ""),
              ("Unit", "Index", "%", ""), ("Release date", "15-11-2023", "15-11-2023", ""),
              ("Next release", "20 December 2023", "", ""), ("Important notes", "", "", "")]  # fmt: skip
    rows = [
        (f"{1980 + k // 12} {months[k % 12]}", a, c, y) for k, (a, c, y) in enumerate(zip(age, crp, yes, strict=True))
    ]
    add("series with seven lines above", text_of([*series, *rows]), {"INDEX": numbers(age), "RATE": numbers(crp)})
    wonder = "".join(f'\t"County {k}"\t{"Suppressed" if b else a}\t{c}\t{y}\n' for k, (a, c, y, b) in
                     enumerate(zip(age, crp, yes, gone, strict=True)))  # fmt: skip
    wonder = f'"Notes"\t"County"\tDeaths\tRate\till\n{wonder}"Total"\t\t9999\t12.3\t\n"---"\n"Dataset: Deaths"\n"---"\n'
    add("deaths with notes", wonder, {"Deaths": some(age), "Rate": numbers(crp)}, stops=2)
    minus = [f"\u25b3{c}" if y else f"{c}" for c, y in zip(crp, ill, strict=True)]
    less = [-c if y else c for c, y in zip(crp, ill, strict=True)]
    japan = {"\u5730\u57df": site, "\u5897\u6e1b": but(minus, "***"), "\u5e74\u9f62": age, "ill": yes}
    add("triangles below zero", japan, {"\u5897\u6e1b": some(less), "\u5e74\u9f62": numbers(age), "ill": words(yes)},
        encoding="cp932", owners="\u5730\u57df", stops=2)  # fmt: skip
    add("Eurostat's colon", {"val": but(crp, ":"), **also}, {"val": some(crp), **plain}, owners="site")
    # instruments and programs: settings, comments, lines of widths, units and kinds
    logger = '"TOA5","CR1000X","CR1000X","1234","Std.03.02","CPU:x.CR1X","5512","Hourly"\n'
    logger += '"TIMESTAMP","RECORD","AirTC","RH","site","ill"\n"TS","RN","Deg C","%","",""\n"","","Avg","Smp","",""\n'
    logger += "".join(f'"{d} {k % 24:02d}:00:00",{k},{c},{a},"{s}","{y}"\n' for k, (d, c, a, s, y) in
                      enumerate(zip(day, crp, but(age, '"NAN"'), site, yes, strict=True)))  # fmt: skip
    add("data logger", logger, {"TIMESTAMP": seen, "AirTC": numbers(crp), "RH": some(age), "ill": words(yes)},
        owners="site", stops=2)  # fmt: skip
    river = "# ------ WARNING ------\n# Some of the data\n#\nagency\tsite_no\tday\tflow\till\n5s\t15s\t20d\t14n\t4s\n"
    river += "".join(f"USGS\t0{1646500 + k % 3}\t{d}\t{c}\t{y}\n" for k, (d, c, y) in
                     enumerate(zip(day, but(cost, "Ice"), yes, strict=True)))  # fmt: skip
    add("river with a line of widths", river, {"day": seen, "flow": some(cost)}, stops=2)
    saved = "".join(f"{a:.18e} {c:.18e} {y:.18e}\n" for a, c, y in zip(age, crp, ill, strict=True))
    add("names behind a sign", "# age crp ill\n" + saved, {"age": numbers(age), "crp": numbers(crp)})
    body = "".join(f"{s},{a},{y}\n" for s, a, y in zip(site, age, yes, strict=True))
    arff = "% made\n@relation x\n\n@attribute site {north, south, west}\n@ATTRIBUTE age numeric\n"
    add("ARFF", f"{arff}@attribute 'ill' {{no,yes}}\n@data\n{body}", plain, owners="site")
    query = "".join(f" {s:<8} | {a:>4} | {y:<4} \n" for s, a, y in zip(site, age, yes, strict=True))
    add("query at a prompt", f" {'site':<8} | {'age':<4} | ill\n----------+------+------\n{query}({N} rows)\n\n", plain,
        owners="site", stops=3)  # fmt: skip
    # one column each: moments with zones, open levels, marks, lengths
    stamp = [f"{d:%Y/%m/%d} {k % 12 + 1}:{k % 60:02d}:07 {'AP'[k % 2]}M GMT+2" for k, d in enumerate(day)]
    add("moments with a zone", {"Timestamp": stamp, **also}, {"Timestamp": seen, **plain}, owners="site")
    moments = [f"{d:%d%b%y}:10:{k % 60:02d}:00".upper() for k, d in enumerate(day)]
    add("moments of SAS", {"ADM": moments, **also}, {"ADM": seen, **plain}, owners="site")
    stay = [("12 +" if a > 80 else str(a // 8)) for a in age]
    add("levels with an open end", {"visits": stay, **also}, plain, owners="site", said=("visits",))
    tall = [f"{5 + k % 2} ft {k % 12} in" for k in range(N)]
    add("feet and inches", {"height": tall, **also}, plain, owners="site", said=("height",))
    noted = [f"{c}{'¹' if b else ''}" for c, b in zip(crp, gone, strict=True)]
    add("marks of notes", {"rate": noted, "est": but([f"{c}" for c in crp], "12.5 (e)"), **also}, plain, owners="site",
        said=("rate", "est"))  # fmt: skip
    add(
        "objects in a field",
        {"meta": [f'{{"v": {a}, "who": "x, y"}}' for a in age], **also},
        plain,
        owners="site",
        stops=0,
    )
    rows = list(zip(site, age, crp, yes, strict=True))
    groups = [(*rows[k : k + 30], ("Subtotal", sum(r[1] for r in rows[k : k + 30]), "", "")) for k in range(0, N, 30)]
    add("sums within", text_of([("site", "age", "crp", "ill"), *(row for group in groups for row in group)]), {},
        said=("site",), rows=N + len(groups))  # fmt: skip
    long = text_of([list(also), *zip(*also.values(), strict=True)]) + "\n" + "Note: something\n" * 12
    add("many remarks below", f" , , \n{long}", plain, owners="site")
    add("pages", "<table><tr><td>1</td></tr></table>\n", {}, refused="it is a page")
    add("dump", f"-- made\nCREATE TABLE t (site text);\nINSERT INTO t VALUES ('a');\n{body}", {}, refused="it is SQL")
    add("objects", '[{"site": "a", "age": 3}]\n', {}, refused="it is JSON")
    add("quotes with a backslash", "age,note,ill\n" + "".join(f'{a},"he said \\"no\\"",{y}\n' for a, y in zip(age, yes,
        strict=True)), {}, refused="export it with a quote within a field")  # fmt: skip
    add("single quotes", "age,note,ill\n" + "".join(f"{a},'a, {k % 3}','{y}'\n" for k, (a, y) in enumerate(zip(age, yes,
        strict=True))), {}, refused="double quotes around fields")  # fmt: skip
    return made
