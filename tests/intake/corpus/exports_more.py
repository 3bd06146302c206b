"""More made-up files, in habits of programs and countries that nobody had listed when they were drawn."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.intake.corpus.cases import numbers, text_of, words
from tests.intake.corpus.judge import Case, Truth

N = 260


def exports_more() -> list[Case]:
    """The files."""
    g = np.random.default_rng(4711)
    age = [int(a) for a in g.integers(18, 95, N)]
    cost = [round(float(c), 2) for c in g.gamma(3, 900, N) + 20]
    crp = [round(float(c), 1) for c in g.gamma(2, 9, N) + 0.6]
    ill = [int(a + e > 56) for a, e in zip(age, g.normal(0, 12, N), strict=True)]
    day = [datetime.date(2020, 3, 1) + datetime.timedelta(int(k)) for k in g.integers(0, 1200, N)]
    gone = [bool(u < 0.07) for u in g.random(N)]
    site = [("north", "south", "west")[k % 3] for k in range(N)]
    seen = Truth("date")
    made = list[Case]()

    def some(values: Sequence[float]) -> Truth:
        return numbers([None if b else v for v, b in zip(values, gone, strict=True)])

    def add(name: str, columns: dict[str, Sequence[Any]], truth: dict[str, Truth], **more: Any) -> None:
        separator, encoding = more.pop("separator", ","), more.pop("encoding", "utf-8")
        if "owners" in more and "ill" in columns:
            truth = {**truth, "ill": words(yes)}
        raw = more.pop("raw", None) or text_of([list(columns), *zip(*columns.values(), strict=True)], separator)
        for old, new in more.pop("swap", ()):
            raw = raw.replace(old, new)
        made.append(Case(name, raw.encode(encoding), more.pop("target", "ill"), truth, more.pop("rows", N), **more))

    yes, plain = [("no", "yes")[y] for y in ill], {"age": numbers(age)}
    also = {"site": site, "age": age, "ill": yes}
    boxes = [("Unchecked", "Checked")[int(v)] for v in g.integers(0, 2, N)]
    add("REDCap with labels", {"Record ID": range(1, N + 1), "Fever? (choice=Yes)": boxes,
        "Complete?": ["Complete"] * N, **also}, {"Fever? (choice=Yes)": words(boxes), **plain},
        owners="site")  # fmt: skip
    asked = [("Y", "N", "N/A")[int(v)] for v in g.integers(0, 3, N)]
    lime = {"id": range(N), "submitdate": ["1980-01-01 00:00:00" if b else f"{d} 10:00:00" for d, b in
            zip(day, gone, strict=True)], "startlanguage": ["de"] * N, "G1Q1": asked, **also}  # fmt: skip
    add("LimeSurvey", lime, {"G1Q1": words([v if v != "N/A" else "" for v in asked]), **plain,
        "submitdate": Truth("date", missing=sum(gone))}, owners="site")  # fmt: skip
    rows = [("R1", "", "", ""), *((k, a, s, y) for k, (a, s, y) in enumerate(zip(age, site, yes, strict=True)))]
    monkey = text_of([("Respondent ID", "How old are you?", "Where?", "Ill?"), ("", "Open-Ended Response", "Response",
                     "Response"), *rows[1:]])  # fmt: skip
    add("SurveyMonkey", {}, {"How old are you?": numbers(age), "Where?": words(site)}, raw=monkey, target="Ill?")
    debit = ["" if y else f"{c:.2f}" for c, y in zip(cost, ill, strict=True)]
    credit = [f"{c:.2f}" if y else "" for c, y in zip(cost, ill, strict=True)]
    add("bank of the US", {"Date": [f"{d:%m/%d/%Y}" for d in day], "Debit": debit, "Credit": credit, "age": age,
        "site": site, "late": [("N", "Y")[int(v)] for v in g.integers(0, 2, N)]},
        {"Date": seen, "Debit": numbers([float(v) if v else None for v in debit]), **plain}, target="late",
        owners="site")  # fmt: skip
    euro = [f"{'-' if y else '+'}{c:,.2f}".replace(",", "x").replace(".", ",").replace("x", ".") + " \u20ac"
            for c, y in zip(cost, ill, strict=True)]  # fmt: skip
    add("bank of Spain", {"Fecha": [f"{d:%d/%m/%Y}" for d in day], "Importe": euro, "Edad": age,
        "Domiciliado": [("No", "S\u00ed")[int(v)] for v in g.integers(0, 2, N)]}, {"Fecha": seen, "Edad": numbers(age),
        "Importe": numbers([-c if y else c for c, y in zip(cost, ill, strict=True)])}, separator=";",
        encoding="iso-8859-15", target="Domiciliado")  # fmt: skip
    add("errors of a spreadsheet", {"ratio": ["#DIV/0!" if b else c for c, b in zip(crp, gone, strict=True)],
        "found": ["#N/A" if b else c for c, b in zip(cost, gone, strict=True)], **also},
        {"ratio": some(crp), "found": some(cost), **plain}, owners="site")  # fmt: skip
    stamp = [f"{d}T{k % 24:02d}:{k % 60:02d}:07.{k % 1000:03d}Z" for k, d in enumerate(day)]
    add("log of a sensor", {"time": stamp, "pm10": ["-9999" if b else c for c, b in zip(crp, gone, strict=True)],
        "rh": ["NaN" if b else c for c, b in zip(crp, gone, strict=True)], **also},
        {"time": seen, "pm10": some(crp), "rh": some(crp), **plain}, owners="site")  # fmt: skip
    add("SPSS with its word", {"score": ["#NULL!" if b else c for c, b in zip(crp, gone, strict=True)],
        "SES": [("1", "2", "3", "#NULL!")[int(v)] for v in g.integers(0, 4, N)], **also},
        {"score": some(crp), **plain}, owners="site", separator="\t")  # fmt: skip
    sexes = [("\u7537", "\u5973")[int(v)] for v in g.integers(0, 2, N)]
    add("Japanese hospital", {"\u5e74\u9f62": age, "\u6027\u5225": sexes, "\u5165\u9662\u65e5": [
        f"{d.year}\u5e74{d.month}\u6708{d.day}\u65e5" for d in day], "\u6b7b\u4ea1": yes},
        {"\u5e74\u9f62": numbers(age), "\u6027\u5225": words(sexes), "\u5165\u9662\u65e5": seen},
        encoding="cp932", target="\u6b7b\u4ea1")  # fmt: skip
    pay = [int(v) for v in g.integers(18_000, 92_000, N)]
    add("Swedish register", {"\u00e5lder": age, "l\u00f6n": [f"{v:,}".replace(",", "\u00a0") + ",50" for v in pay],
        "sjuk": [("Nej", "Ja")[y] for y in ill]}, {"\u00e5lder": numbers(age), "l\u00f6n": numbers([v + 0.5 for v in
        pay])}, separator=";", target="sjuk")  # fmt: skip
    rupees = [int(v) for v in g.integers(100_000, 9_000_000, N)]

    def lakh(value: int) -> str:
        head, tail = str(value)[:-3], str(value)[-3:]
        parts = [head[max(0, k - 2) : k] for k in range(len(head), 0, -2)][::-1]
        return ",".join([*parts, tail])

    add("Indian accounts", {"Income": [f"Rs. {lakh(v)}" for v in rupees], **also}, {"Income": numbers(rupees), **plain},
        owners="site")  # fmt: skip
    flagged = [f"{c} {('', 'H', 'L')[k % 3]}".strip() for k, c in enumerate(crp)]
    add("flags of a laboratory", {"CRP": flagged, **also}, plain, owners="site", said=("CRP",))
    trace = [("T" if b else f"{c:.2f}") for c, b in zip(crp, gone, strict=True)]
    add("weather station", {"precip": trace, "wind": ["M" if b else c for c, b in zip(crp, gone, strict=True)], **also},
        {"wind": some(crp), "precip": some([round(c, 2) for c in crp]), **plain}, owners="site")  # fmt: skip
    took = [f"{k % 3}:{k % 60:02d}:{(7 * k) % 60:02d}" for k in range(N)]
    add("run times", {"took": took, **also}, plain, owners="site")
    top = [a if a < 90 else "90+" for a in age]
    add("oldest together", {"years": top, **also}, plain, owners="site", said=("years",))
    add("codes of currencies", {"paid": [f"USD {c:,.2f}" for c in cost], **also}, {"paid": numbers(cost), **plain},
        owners="site")  # fmt: skip
    add("years of two digits", {"seen": [f"{d:%d.%m.%y}" for d in day], **also}, {"seen": seen, **plain}, owners="site")
    fine = [f"{c * 1e-6:.2E}" for c in cost]
    add("powers with a comma", {"conc": [f.replace(".", ",") for f in fine], **also},
        {"conc": numbers([float(f) for f in fine]), **plain}, separator=";", owners="site")  # fmt: skip
    stage = [("I", "II", "IIIa", "IV")[int(v)] for v in g.integers(0, 4, N)]
    blood = [("A+", "A-", "0+", "AB-")[int(v)] for v in g.integers(0, 4, N)]
    add("stages and groups of blood", {"stage": stage, "blood": blood, **also}, {"stage": words(stage), "blood":
        words(blood), **plain}, owners="site", stops=0)  # fmt: skip
    month = [f"{d:%Y-%m}" for d in day]
    add("months of years", {"month": month, **also}, plain, owners="site")
    zips = [("01234", "94110", "00501")[int(v)] for v in g.integers(0, 3, N)]
    add("formulas that keep zeros", {"zip": zips, **also}, plain, owners="site",
        swap=[(z, f'="{z}"') for z in ("01234", "94110", "00501")])  # fmt: skip
    unix = [int(datetime.datetime(d.year, d.month, d.day, tzinfo=datetime.UTC).timestamp()) for d in day]
    add("seconds since 1970", {"created": unix, **also}, {"created": numbers(unix), **plain}, owners="site")
    head, body = ["site", "age", "ill"], list(zip(site, age, yes, strict=True))
    twice = text_of([head, *body[:130], head, *body[130:]])
    add("two exports one after the other", {}, {}, raw=twice, rows=N + 1)
    add("a note that is quoted badly", {}, {}, raw="age,note,ill\n" + "".join(
        f'{a},"he said "no"",{y}\n' for a, y in zip(age, yes, strict=True)), refused="quotes must pair up")  # fmt: skip
    wide = [f"{a}".translate({48 + k: 0xFF10 + k for k in range(10)}) for a in age]
    add("wide digits", {"age": wide, "site": site, "ill": yes}, plain, owners="site")
    odd = [("Male", "male ", "FEMALE", "Female")[int(v)] for v in g.integers(0, 4, N)]
    add("case differs", {"sex": odd, **also}, plain, owners="site")
    add("Norwegian laboratory", {"alder": age, "Hb": [f"{c:.1f} g/dL".replace(".", ",") for c in crp],
        "d\u00f8d": [("nei", "ja")[y] for y in ill]}, {"alder": numbers(age), "Hb": numbers(crp)}, separator=";",
        target="d\u00f8d", encoding="cp1252")  # fmt: skip
    return made
