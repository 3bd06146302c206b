"""Made-up files as offices, registries, laboratories and survey programs write them, each in several habits at once."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.intake.corpus.cases import numbers, text_of, words
from tests.intake.corpus.judge import Case, Truth

N = 240


def _grouped(value: float, digits: int, decimal: str, between: str) -> str:
    text = f"{value:,.{digits}f}"
    return text.replace(",", "\x00").replace(".", decimal).replace("\x00", between)


def ugly() -> list[Case]:
    """The files."""
    g = np.random.default_rng(2031)
    age = [int(a) for a in g.integers(19, 94, N)]
    cost = [round(float(c), 2) for c in g.gamma(3, 900, N) + 20]
    crp = [round(float(c), 1) for c in g.gamma(2, 9, N) + 0.6]
    yes = [int(a + e > 56) for a, e in zip(age, g.normal(0, 12, N), strict=True)]
    day = [datetime.date(2021, 1, 1) + datetime.timedelta(int(k)) for k in g.integers(0, 900, N)]
    seen = Truth("date")
    ja = [["nein", "ja"][y] for y in yes]
    made = list[Case]()

    def add(name: str, raw: str | bytes, target: str, truth: dict[str, Truth], **more: Any) -> None:
        data = raw if isinstance(raw, bytes) else raw.encode(more.pop("encoding", "utf-8"))
        made.append(Case(name, data, target, truth, more.pop("rows", N), **more))

    def table(columns: dict[str, Sequence[Any]], separator: str = ",") -> str:
        return text_of([list(columns), *zip(*columns.values(), strict=True)], separator)

    # a spreadsheet in German: sep=, decimal commas, points between thousands, euro, dates, ja/nein, CRLF
    euro = [_grouped(c, 2, ",", ".") + " \u20ac" for c in cost]
    german = {"Alter": age, "Kosten": euro, "Aufnahme": [f"{d:%d.%m.%Y}" for d in day],
              "verstorben": [["nein", "ja"][y] for y in yes]}  # fmt: skip
    add("German spreadsheet", b"\xef\xbb\xbf" + ("sep=;\n" + table(german, ";")).replace("\n", "\r\n").encode(),
        "verstorben", {"Alter": numbers(age), "Kosten": numbers(cost), "Aufnahme": seen})  # fmt: skip
    # a ministry's: title over merged cells, a blank line, names, a footer of notes and a source
    rows = [(f"D\u00e9p. {k}", a, _grouped(c, 2, ",", "\u202f"), "on"[y]) for k, (a, c, y) in
            enumerate(zip(age, cost, yes, strict=True))]  # fmt: skip
    head = "Tableau 3 - D\u00e9penses;;;\nAnn\u00e9e 2023;;;\n;;;\n"
    foot = ";;;\nChamp : France enti\u00e8re;;;\nSource : minist\u00e8re;;;\n"
    add("French ministry", head + text_of([("D\u00e9partement", "\u00c2ge", "Montant", "Retard"), *rows], ";") + foot,
        "Retard", {"\u00c2ge": numbers(age), "Montant": numbers(cost)})  # fmt: skip
    # a Polish laboratory's: cp1250, semicolons, "<0,6", months as words
    words_of = (
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrze\u015bnia pa\u017adziernika listopada grudnia"
    )
    months = words_of.split()
    low = [k % 11 == 0 for k in range(N)]
    polish = {"wiek": age, "CRP": ["<0,6" if b else f"{c}".replace(".", ",") for c, b in zip(crp, low, strict=True)],
              "data": [f"{d.day} {months[d.month - 1]} {d.year}" for d in day],
              "zgon": [["nie", "tak"][y] for y in yes]}  # fmt: skip
    add("Polish laboratory", table(polish, ";"), "zgon", {"wiek": numbers(age)}, encoding="cp1250", said=("CRP",))
    # SAS: missing as a point, dates as 01JAN2021, special missing .A
    sas = {"AGE": age, "COST": [".A" if k % 40 == 0 else "." if k % 17 == 0 else c for k, c in enumerate(cost)],
           "ADM": [f"{d:%d%b%Y}".upper() for d in day], "DIED": yes}  # fmt: skip
    gone = [k % 40 == 0 or k % 17 == 0 for k in range(N)]
    add("SAS", table(sas), "DIED", {"AGE": numbers(age), "ADM": seen,
        "COST": numbers([None if b else c for c, b in zip(cost, gone, strict=True)])})  # fmt: skip
    # SPSS: blanks for none, value labels in words, -99 beside them, names with a mark of order
    ses = [[1, 2, 3, 4, 5, -99][k] for k in g.integers(0, 6, N)]
    spss = {"age": age, "ses": ses, "cost": [" " if b else c for c, b in zip(cost, gone, strict=True)], "died": yes}
    add("SPSS", "\ufeff" + table(spss), "died", {"age": numbers(age),
        "ses": numbers([None if v < 0 else v for v in ses]),
        "cost": numbers([None if b else c for c, b in zip(cost, gone, strict=True)])})  # fmt: skip
    # REDCap: several rows of empty instruments, checkboxes, complete flags, record ids
    redcap = {"record_id": list(range(1, N + 1)), "redcap_event_name": ["baseline_arm_1"] * N, "age": age,
              "symptoms___1": yes, "symptoms___2": [int(v) for v in g.integers(0, 2, N)], "crp": crp,
              "baseline_complete": [2] * N, "died": [["0", "1"][v] for v in g.integers(0, 2, N)]}  # fmt: skip
    add("REDCap", table(redcap), "died", {"age": numbers(age), "crp": numbers(crp),
        "symptoms___1": numbers(yes)}, stops=0)  # fmt: skip
    # a bank's: account lines above, amounts with a minus after, S and H, running balance; latin-1
    sign = [1 if v else -1 for v in g.integers(0, 2, N)]
    amount = [s * c for s, c in zip(sign, cost, strict=True)]
    whom = ["Miete", "Lohn", "Caf\u00e9"]
    bank = [(f"{d:%d.%m.%y}", _grouped(abs(a), 2, ",", ".") + ("-" if a < 0 else ""), whom[k % 3],
             ["privat", "Firma"][y]) for k, (d, a, y) in enumerate(zip(day, amount, yes, strict=True))]  # fmt: skip
    above = "Kontonummer:;DE00 0000\nZeitraum:;2021 - 2023\n\n"
    add("bank statement", above + text_of([("Buchung", "Betrag", "Text", "Art"), *bank], ";"), "Art",
        {"Betrag": numbers(amount)}, encoding="cp1252")  # fmt: skip
    # units in a second line, quoted line ends in a note, mixed line ends, an empty column at the end
    notes = ["fine" if k % 5 else "first line\nsecond" for k in range(N)]
    unit = text_of([("age", "crp", "note", "died", ""), ("years", "mg/L", "", "", "")])
    body = [text_of([(a, c, "", "ny"[y], "")]) for a, c, y in zip(age, crp, yes, strict=True)]
    body = [line.replace(",,", f',"{note}",', 1) for line, note in zip(body, notes, strict=True)]
    body = [line[:-1] + "\r\n" if k % 2 else line for k, line in enumerate(body)]
    add("units below and quoted line ends", unit + "".join(body), "died", {"age": numbers(age), "crp": numbers(crp)})
    # the same name twice, and a name that is empty
    twice = text_of([("value", "value", "", "died"), *zip(age, crp, cost, yes, strict=True)])
    add("names twice", twice, "died", {"value (1)": numbers(age), "value (2)": numbers(crp), "column 3": numbers(cost)})
    # an instrument's: tab, many lines of settings above, names with units in them, E notation, "n.d."
    settings = "".join(f"# {name}\t{value}\n" for name, value in (("Instrument", "LC-7"), ("Run", "12"), ("Date", "x")))
    fine = [f"{c * 1e-6:.3E}" for c in cost]
    lc = {"Sample": [f"S{k:04d}" for k in range(N)], "Conc. [mol/L]": ["n.d." if b else f for f, b in
          zip(fine, gone, strict=True)], "Age (y)": age, "Class": [["ctl", "case"][y] for y in yes]}  # fmt: skip
    add("instrument", settings + table(lc, "\t"), "Class", {"Age (y)": numbers(age),
        "Conc. [mol/L]": numbers([None if b else float(f) for f, b in zip(fine, gone, strict=True)])})  # fmt: skip
    # Qualtrics-like with answers as "5 - very good", hours of two digits, and slashes in dates of the US
    scale = ["1 - poor", "2", "3", "4", "5 - very good"]
    said = [scale[k] for k in g.integers(0, 5, N)]
    us = [f"{d.month}/{d.day}/{d.year} {k % 12 + 1}:{k % 60:02d} {'AP'[k % 2]}M" for k, d in enumerate(day)]
    again = [["No", "Yes"][y] for y in yes]
    add("survey of the US", table({"When": us, "Q1": said, "Age": age, "Again": again}), "Again",
        {"When": seen, "Q1": words(said), "Age": numbers(age)})  # fmt: skip
    # accounts: parentheses, dollars, commas between thousands, dash for nothing, total at the end
    paid = [("-" if b else f"({_grouped(c, 2, '.', ',')})" if y else f"${_grouped(c, 2, '.', ',')}") for c, b, y in
            zip(cost, gone, yes, strict=True)]  # fmt: skip
    meant = [None if b else -c if y else c for c, b, y in zip(cost, gone, yes, strict=True)]
    total = "Grand Total,,,\n"
    ledger = {
        "Unit": [f"U{k % 7}" for k in range(N)],
        "Paid": paid,
        "Age": age,
        "Late": [["no", "yes"][v] for v in yes],
    }
    add("accounts", table(ledger) + total, "Late", {"Paid": numbers(meant), "Age": numbers(age)})
    # a census table: ranges of ages, open at the end; thousands with apostrophes
    bands = [["0-17", "18-64", "65+"][k] for k in g.integers(0, 3, N)]
    swiss = [_grouped(c, 2, ".", "\u2019") for c in cost]
    add("Swiss census", table({"Band": bands, "Lohn": swiss, "Alter": age, "arm": ja}, ";"),
        "arm", {"Band": words(bands), "Lohn": numbers(cost), "Alter": numbers(age)})  # fmt: skip
    # percents with a decimal comma beside shares; signs of per cent with a space before
    share = [round(float(s), 3) for s in g.uniform(0.5, 0.99, N)]
    mixed = [
        f"{s * 100:.1f} %".replace(".", ",") if k % 2 else f"{s:.3f}".replace(".", ",") for k, s in enumerate(share)
    ]
    add("shares in two ways", table({"Quote": mixed, "Alter": age, "tot": ja}, ";"), "tot",
        {"Alter": numbers(age), "Quote": numbers(share)}, stops=2)  # fmt: skip
    # times, lengths of stay as 3d 4h, booleans as WAHR and FALSCH, an empty line here and there
    stay = [f"{k % 9}d {k % 23}h" for k in range(N)]
    at = [f"{k % 24:02d}:{k % 60:02d}" for k in range(N)]
    odd = table({"Alter": age, "Um": at, "Dauer": stay, "tot": ["WAHR" if y else "FALSCH" for y in yes]}, ";").split(
        "\n"
    )
    add("lengths of stay", "\n".join(line + "\n" * (k % 50 == 9) for k, line in enumerate(odd)), "tot",
        {"Alter": numbers(age), "Um": Truth("time")}, said=("Dauer",))  # fmt: skip
    # codes with leading zeros, telephone-like numbers, ICD-9 and ICD-10 codes, a flag of X or nothing
    icd = [["250.01", "401.9", "V45.81", "786.50", "E11.9"][k] for k in g.integers(0, 5, N)]
    zips = [["01067", "04109", "80331"][k] for k in g.integers(0, 3, N)]
    flag = ["X" if v else "" for v in g.integers(0, 2, N)]
    codes = {"plz": zips, "diag": icd, "diag2": icd[1:] + icd[:1], "flag": flag, "age": age, "died": yes}
    add("codes", table(codes), "died",
        {"plz": words(zips), "diag": words(icd), "diag2": words(icd[1:] + icd[:1]), "flag": words(flag),
         "age": numbers(age)})  # fmt: skip
    # ICD-9 where one column alone has letters among its codes
    plain = [["250.01", "401.9", "786.50", "428.0"][k] for k in g.integers(0, 4, N)]
    family = {"diag_1": icd, "diag_2": plain, "diag_3": plain[5:] + plain[:5], "age": age, "died": yes}
    means = {name: words(family[name]) for name in ("diag_1", "diag_2", "diag_3")}
    add("ICD-9 in three columns", table(family), "died", {**means, "age": numbers(age)}, stops=0)
    # a file of one record a line in fixed order, whose first record has words in every column of numbers
    first = ["unknown", "none", "n"]
    lines = [first, *([a, c, "ny"[y]] for a, c, y in zip(age[1:], crp[1:], yes[1:], strict=True))]
    add("no names, words first", text_of(lines), "column 3", {"column 1": numbers([None, *age[1:]])}, stops=1)
    # one number and y of n and y, which is a small file of many
    add("two columns", text_of([("x", "y"), *((a, "ny"[v]) for a, v in zip(age, yes, strict=True))]), "y",
        {"x": numbers(age)}, stops=0)  # fmt: skip
    # wide characters in names and a header over two lines within quotes
    wide = text_of([("Alter\nin Jahren", 'Gr\u00f6\u00dfe "cm"', "Tod"), *zip(age, crp, yes, strict=True)])
    add("names over two lines", wide, "Tod", {"Alter in Jahren": numbers(age)})
    # values that are written with a raised or Arabic sign, degrees, and +/- after results
    swab = [["+", "-", "++", "n.a."][k] for k in g.integers(0, 4, N)]
    warm = [f"{36 + v / 10:.1f} \u00b0C" for v in g.integers(0, 40, N)]
    heat = [float(w[:4]) for w in warm]
    add("ward", table({"swab": swab, "temp": warm, "age": age, "died": yes}), "died", {"temp": numbers(heat),
        "age": numbers(age), "swab": words([s if s != "n.a." else "" for s in swab])})  # fmt: skip
    # years, quarters and months as periods; population in thousands with spaces; a total row within
    period = [f"2021-Q{1 + k % 4}" for k in range(N)]
    folk = [int(v) for v in g.integers(1000, 999999, N)]
    spaced = [_grouped(v, 0, ".", " ") for v in folk]
    add("statistical office", table({"period": period, "people": spaced, "age": age, "rural": yes}, ";"), "rural",
        {"period": words(period), "people": numbers(folk), "age": numbers(age)})  # fmt: skip
    return made
