"""Exports as offices send them, made from seeds: a hospital's and those of other countries' habits. No real records.

Each says what its columns are, so that a test can hold every one of them against what was found.
"""

import csv
import datetime
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.intake.spelling import Spelling

Rng = np.random.Generator
Spell = Callable[[Rng, int], str]  # one field


@dataclass(frozen=True)
class Export:
    """A file's habits. `columns`: name -> (kind that is to be found, what makes a field); `target`: the last column,
    `rate` of whose records are `positive`. `spelling`: what must be proposed."""

    name: str
    spelling: Spelling
    columns: dict[str, tuple[str, Spell]]
    target: str
    classes: tuple[str, str]
    rate: float = 0.057
    separator: str = ";"
    encoding: str = "utf-8"
    end: str = "\r\n"
    first_line: str = ""
    asks: tuple[str, ...] = ()
    drop: tuple[str, ...] = field(default=())

    @property
    def kinds(self) -> dict[str, str]:
        """What is to be found, by the names that columns get."""
        places = {name: k for k, name in enumerate(self.columns, 1)}
        return {name or f"column {places[name]}": kind for name, (kind, _) in self.columns.items()}

    def write(self, folder: Path, rows: int, seed: int = 1) -> Path:
        """The file."""
        rng = np.random.default_rng(seed)
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self.separator, lineterminator=self.end)
        writer.writerow([*self.columns, self.target])
        sick = rng.permutation(np.arange(rows) < round(self.rate * rows))
        for k in range(rows):
            cells = [spell(rng, k) for _, spell in self.columns.values()]
            writer.writerow([*cells, self.classes[int(sick[k])]])
        path = folder / self.name
        path.write_bytes((self.first_line + out.getvalue()).encode(self.encoding))
        return path


def grouped(value: float, digits: int, decimal: str, thousands: str) -> str:
    return f"{value:,.{digits}f}".replace(",", "\0").replace(".", decimal).replace("\0", thousands)


def number(
    low: float,
    high: float,
    digits: int,
    decimal: str,
    thousands: str = "",
    *,
    before: str = "",
    after: str = "",
    gone: tuple[str, ...] = (),
    share: float = 0.05,
) -> Spell:
    """A number between two ends; a share of the fields is a word for "missing"."""

    def spell(rng: Rng, k: int) -> str:
        value = rng.uniform(low, high)
        if gone and rng.random() < share:
            return str(rng.choice(gone))
        return before + grouped(value, digits, decimal, thousands) + after

    return spell


def date(form: str, first: int = 2018, last: int = 2024, gone: tuple[str, ...] = ()) -> Spell:
    def spell(rng: Rng, k: int) -> str:
        start = datetime.datetime(first, 1, 1)
        day = start + datetime.timedelta(minutes=int(rng.integers((last - first + 1) * 365 * 1440)))
        return str(rng.choice(gone)) if gone and rng.random() < 0.03 else day.strftime(form)

    return spell


def choice(*values: str) -> Spell:
    return lambda rng, k: str(rng.choice(values))


def numbered(form: str) -> Spell:
    return lambda rng, k: form.format(k)


def prose(*words: str, line: str = " ") -> Spell:
    return lambda rng, k: line.join(rng.choice(words, 7)) + f" {rng.integers(10**9)}"


def _laboratory() -> dict[str, tuple[str, Spell]]:
    tests = (
        ("Natrium", 130, 150, 1), ("Kalium", 3, 6, 2), ("Kreatinin", 0.4, 9, 2), ("CRP", 0, 300, 1), ("Hb", 6, 18, 1),
        ("Leukozyten", 1, 40, 2), ("Thrombozyten", 20, 800, 0), ("INR", 0.8, 5, 2), ("Bilirubin", 0.1, 20, 2),
        ("Laktat", 0.3, 15, 1), ("Glukose", 40, 600, 0),
    )  # fmt: skip
    gone = (("",), ("-", "", "n/a"))
    return {
        name: ("number", number(low, high, digits, ",", gone=gone[k % 2]))
        for k, (name, low, high, digits) in enumerate(tests)
    }


GERMAN = Export(
    "klinik.csv",
    Spelling(",", ".", "dmy", None, ("-",), ("kg",), words=("PLZ",)),
    {
        "Fallnummer": ("identifier", numbered("{:d}")),
        "Patienten-ID": ("identifier", numbered("P-{:06d}")),
        "Name": ("identifier", numbered("Muster{:05d}")),
        "Alter": ("number", number(18, 99, 0, ",")),
        "Geschlecht": ("category", choice("m", "w", "d")),
        "Aufnahme": ("date", date("%d.%m.%Y")),
        "Entlassung": ("date", date("%d.%m.%Y", gone=("",))),
        "Station": ("category", choice("Innere", "Chirurgie", "Geburtshilfe", "Urologie", "Intensiv")),
        "Gewicht": ("number", number(40, 140, 1, ",", after=" kg", gone=("-", "n/a"))),
        "Groesse_m": ("number", number(1.4, 2.05, 2, ",")),
        "Raucher": ("category", choice("ja", "nein", "nein", "")),
        "Kosten": ("number", number(300, 90_000, 2, ",", ".")),
        "Diagnose": ("category", choice("I10.9", "E11.9", "J18.9", "K35.8", "S72.0")),
        "Befund": ("free text", prose("Patient", "klagt", "über", "Schmerzen", "im", "Bauch", "seit")),
        "Haus": ("constant", choice("Nord")),
        "Leer": ("empty", choice("")),
        "PLZ": ("category", choice("01067", "01099", "04109", "04229", "09111")),
        "Aufenthalt": ("number", number(0, 60, 0, ",")),
        **_laboratory(),
    },
    "verstorben",
    ("nein", "ja"),
)

US = Export(
    "clinic_us.csv",
    Spelling(".", ",", "mdy", None, (), ("$",)),
    {
        "Record Number": ("identifier", numbered("{:d}")),
        "SSN": ("identifier", numbered("900-{:06d}")),
        "Admit Date": ("date", date("%m/%d/%Y")),
        "Discharge": ("date", date("%m/%d/%Y %I:%M %p")),
        "Charges": ("number", number(100, 250_000, 2, ".", ",", before="$")),
        "Steps": ("number", number(0, 30_000, 0, ".", ",")),
        "BMI": ("number", number(16, 50, 1, ".", gone=("N/A",))),
        "Payer": ("category", choice("Medicare", "Medicaid", "Private, PPO", "Self-Pay")),
        "Notes": ("free text", prose("pt", "reports", 'the "usual"', "pain,", "worse", "at night", line="\n")),
        "Smoker": ("category", choice("Yes", "No")),
    },
    "Readmitted",
    ("No", "Yes"),
    separator=",",
    encoding="utf-8-sig",
)

UK = Export(
    "trust.csv",
    Spelling(),
    {
        "nhs_number": ("identifier", numbered("{:010d}")),
        "arrived": ("date", date("%Y-%m-%dT%H:%M:%S")),
        "born": ("date", date("%Y-%m-%d", 1930, 2005)),
        "pulse": ("number", number(40, 160, 0, ".")),
        "creatinine": ("number", number(30, 400, 1, ".", gone=("NULL", ""))),
        "triage": ("category", choice("red", "amber", "green")),
        "imd": ("number", lambda rng, k: str(rng.integers(1, 11))),
        "smoker": ("category", choice("Y", "N")),
        "comment": ("free text", prose("seen", "by", "consultant,", "follow", "up", "clinic")),
    },
    "died",
    ("N", "Y"),
    separator=",",
    end="\n",
)

SWISS = Export(
    "hopital.csv",
    Spelling(".", "'", "dmy", None, (), ("CHF",), "cp1252"),
    {
        "N° dossier": ("identifier", numbered("{:d}")),
        "Entrée": ("date", date("%d/%m/%Y")),
        "Coût": ("number", number(500, 90_000, 2, ".", "\u2019", before="CHF ")),
        "Prestations": ("number", number(1_000, 90_000, 0, ".", "'")),
        "Âge": ("number", number(18, 99, 0, ".")),
        "Unité": ("category", choice("Chirurgie", "Maternité", "Gériatrie")),
        "Température": ("number", number(35, 41, 1, ".")),
        "Fumeur": ("category", choice("oui", "non")),
        "Remarque": ("free text", prose("sortie", "prévue", "à", "l’hôpital", "après", "l'opération")),
    },
    "Décès",
    ("non", "oui"),
    encoding="cp1252",
)

FRENCH = Export(
    "chu.csv",
    Spelling(",", " ", "dmy", None, (), ("€",), "utf-8"),
    {
        "identifiant": ("identifier", numbered("FR{:05d}")),
        "séjour": ("date", date("%d/%m/%Y")),
        "montant": ("number", number(100, 90_000, 2, ",", "\u202f", after="\u00a0€")),
        "poids": ("number", number(40, 120, 1, ",")),
        "service": ("category", choice("Pédiatrie", "Urgences")),
    },
    "décès",
    ("non", "oui"),
    encoding="utf-16",
    first_line="sep=;\r\n",
)


def lakh(value: float) -> str:
    """A number in India's groups: 12,34,567.80."""
    whole, _, rest = f"{value:.2f}".partition(".")
    groups = [whole[-3:]]
    while whole := whole[:-3] if len(groups) == 1 else whole[:-2]:
        groups.append(whole[-2:])
    return ",".join(reversed(groups)) + "." + rest


def mixed(*spells: Spell) -> Spell:
    """Each field as one of these, as files are that several people typed."""
    return lambda rng, k: spells[int(rng.integers(len(spells)))](rng, k)


def often(spell: Spell, *words: str, share: float = 0.1) -> Spell:
    """A share of the fields is a remark."""
    return lambda rng, k: str(rng.choice(words)) if rng.random() < share else spell(rng, k)


INDIAN = Export(
    "hospital_in.csv",
    Spelling(".", ",", "dmy", None, ("-",), ("/-", "Rs.", "yrs", "₹")),
    {
        "Patient ID": ("identifier", numbered("OPD/{:05d}")),
        "Admitted": ("date", date("%d-%m-%Y")),
        "Discharged": ("date", date("%d-%b-%Y")),
        "Bill": ("number", lambda rng, k: f"₹ {lakh(rng.uniform(900, 3e6))}"),
        "Deposit": ("number", lambda rng, k: f"Rs. {lakh(rng.uniform(900, 9e5))}/-"),
        "Age": ("number", number(1, 95, 0, ".", after=" yrs")),
        "Sugar": ("number", number(70, 400, 0, ".", gone=("NA", "-", ""), share=0.6)),
        "Ward": ("category", choice("General", "ICU", "Private")),
    },
    "Died",
    ("No", "Yes"),
    separator=",",
)

BRAZILIAN = Export(
    "hospital_br.csv",
    Spelling(",", ".", "dmy", None, (), ("R$",), "cp1252"),
    {
        "prontuário": ("identifier", numbered("{:d}")),
        "internação": ("date", date("%d/%m/%Y %H:%M")),
        "custo": ("number", number(100, 90_000, 2, ",", ".", before="R$ ")),
        "peso": ("number", number(40, 120, 1, ",")),
        "PCR": ("number", often(number(1, 90, 1, ","), "< 0,5", "hemolisada", share=0.2)),
        "sexo": ("category", choice("M", "F", "Ignorado")),
        "município": ("category", choice("São Paulo", "Belém", "Goiânia")),
    },
    "óbito",
    ("Não", "Sim"),
    encoding="cp1252",
)

CHINESE = Export(
    "yiyuan.csv",
    Spelling(".", ",", "", None, (), ("¥", "岁"), "gb18030"),
    {
        "住院号": ("identifier", numbered("ZY{:06d}")),
        "入院日期": ("date", mixed(date("%Y年%m月%d日"), date("%Y-%m-%d"))),
        "年龄": ("number", number(18, 90, 0, ".", after="岁")),
        "费用": ("number", number(100, 90_000, 2, ".", ",", before="¥")),
        "科室": ("category", choice("内科", "外科", "儿科")),
    },
    "死亡",
    ("否", "是"),
    separator=",",
    encoding="gb18030",
)

EXCEL = Export(
    "sheet.csv",
    Spelling(".", ",", "mdy", None, ("#div/0!", "#n/a"), ("$", "%")),
    {
        "Case #": ("identifier", numbered("{:d}")),
        "MRN": ("identifier", numbered('="{:06d}"')),
        "Titre": ("number", lambda rng, k: f"{rng.uniform(1e5, 9e9):.2E}"),
        "Share": ("number", number(0, 100, 1, ".", after="%", gone=("#N/A", "#DIV/0!"))),
        "Charges": ("number", number(1, 2500, 2, ".", ",", before="$")),
        "Flag": ("category", choice("TRUE", "FALSE")),
        "When": ("date", mixed(date("%m/%d/%Y"), date("%Y-%m-%d"), date("%b %d, %Y"), date("%d-%b-%Y"))),
        "Notes": ("free text", prose("seen;", "said", '"fine"', "left,", "again", line="\n")),
        "": ("empty", choice("")),
    },
    "Outcome",
    ("0", "1"),
    encoding="utf-8-sig",
    first_line="sep=;\r\n",
)

TURKISH = Export(
    "hastane.csv",
    Spelling(",", ".", "dmy", None, (), (), "cp1254"),
    {
        "Dosya No": ("identifier", numbered("H{:06d}")),
        "Yatış": ("date", date("%d.%m.%Y %H:%M")),
        "Ücret": ("number", number(200, 90_000, 2, ",", ".")),
        "Ağırlık": ("number", number(40, 130, 1, ",", gone=("",))),
        "Yaş": ("number", number(18, 95, 0, ",")),
        "Servis": ("category", choice("Dahiliye", "Göğüs", "Çocuk")),
        "Sigara": ("category", choice("evet", "hayır")),
        "Not": ("free text", prose("hasta", "şikâyeti", "ağrı,", "ateş;", "öksürük", "uyku")),
    },
    "Ölüm",
    ("hayır", "evet"),
    encoding="cp1254",
)

JAPANESE = Export(
    "byouin.csv",
    Spelling(".", ",", "", None, ("-",), ("円", "歳"), "cp932"),
    {
        "患者番号": ("identifier", numbered("K{:06d}")),
        "入院日": ("date", date("%Y年%m月%d日")),
        "退院日": ("date", date("%Y/%m/%d")),
        "費用": ("number", number(1_000, 900_000, 0, ".", ",", after="円")),
        "年齢": ("number", number(18, 95, 0, ".", after="歳")),
        "体温": ("number", number(35, 41, 1, ".", gone=("-",))),
        "病棟": ("category", choice("内科", "外科", "小児科")),
        "喫煙": ("category", choice("はい", "いいえ")),
    },
    "死亡",
    ("いいえ", "はい"),
    separator=",",
    encoding="cp932",
)

PERSIAN_DIGITS = str.maketrans("0123456789.,", "۰۱۲۳۴۵۶۷۸۹٫٬")
WIDE_DIGITS = str.maketrans("0123456789.,", "０１２３４５６７８９．，")


def turned(spell: Spell, digits: dict[int, int]) -> Spell:
    """In other digits."""
    return lambda rng, k: spell(rng, k).translate(digits)


def era(rng: Rng, k: int) -> str:
    """A day of a Japanese era."""
    year, month, day = rng.integers(1, 7), rng.integers(5, 13), rng.integers(1, 29)
    first = "元" if year == 1 else year
    return f"令和{first}年{month}月{day}日"


def balance(mark: str, decimal: str, thousands: str) -> Spell:
    """Amounts of which some are below zero, as accounts mark them."""

    def spell(rng: Rng, k: int) -> str:
        value = rng.normal(0, 4000)
        return (mark if value < 0 else "{}").format(grouped(abs(value), 2, decimal, thousands))

    return spell


PERSIAN = Export(
    "bimarestan.csv",
    Spelling(),
    {
        "پرونده id": ("identifier", numbered("P{:05d}")),
        "سن": ("number", turned(number(18, 95, 0, "."), PERSIAN_DIGITS)),
        "هزینه": ("number", turned(number(1_000, 9e6, 1, ".", ","), PERSIAN_DIGITS)),
        "پذیرش": ("date", turned(date("%Y-%m-%d"), PERSIAN_DIGITS)),
        "بخش": ("category", choice("داخلی", "جراحی")),
    },
    "فوت",
    ("خیر", "بله"),
    separator=",",
)

LEDGER = Export(
    "buchungen.csv",
    Spelling(",", ".", "dmy", None, (), ("EUR",), "", "", "trailing", 3),
    {
        "Beleg-Nr": ("identifier", numbered("{:08d}")),
        "Datum": ("date", date("%d.%m.%Y")),
        "Gebucht": ("date", mixed(lambda rng, k: f"{rng.integers(1, 29)}. März 2023", date("%d. Mai %Y"))),
        "Uhrzeit": ("time", date("%H:%M")),
        "Saldo": ("number", balance("{}-", ",", ".")),
        "Betrag": ("number", number(1_000, 90_000, 2, ",", ".", after=" EUR")),
        "Werk": ("category", choice("Nord", "Süd")),
    },
    "storniert",
    ("nein", "ja"),
    first_line="Auszug der Buchungen\r\nStand: heute\r\n",
)

WARD = Export(
    "byoutou.csv",
    Spelling(".", ",", "", None, (), (), "cp932", "", "parentheses"),
    {
        "患者番号": ("identifier", numbered("W{:06d}")),
        "入院": ("date", era),
        "費用": ("number", turned(number(1_000, 900_000, 0, ".", ","), WIDE_DIGITS)),
        "年齢": ("number", turned(number(18, 95, 0, "."), WIDE_DIGITS)),
        "残高": ("number", balance("({})", ".", ",")),
        "時刻": ("time", date("%H:%M:%S")),
        "病棟": ("category", choice("内科", "外科")),
    },
    "死亡",
    ("いいえ", "はい"),
    separator=",",
    encoding="cp932",
)

DANISH = Export(
    "sygehus.txt",
    Spelling(",", ".", "dmy", None, (), ("%", "kr.")),
    {
        "CPR": ("identifier", numbered("010170-{:04d}")),
        "Indlagt": ("date", date("%d-%m-%Y")),
        "Beløb": ("number", number(10, 90_000, 2, ",", ".", after=" kr.")),
        "Andel": ("number", number(0, 100, 1, ",", after=" %")),
        "Tid": ("time", date("%H:%M")),
        "Afsnit": ("category", choice("A1", "B2", "C3")),
        "Note": ("free text", prose("patienten", "klager", "over", "smerter;", "i", "brystet", line="\n")),
    },
    "Død",
    ("nej", "ja"),
    separator="\t",
)

RUSSIAN = Export(
    "bolnitsa.csv",
    Spelling(",", " ", "dmy", None, ("—",), ("лет", "руб."), "cp1251"),
    {
        "ИБ №": ("identifier", numbered("{:d}/23")),
        "Поступил": ("date", date("%d.%m.%Y г.")),
        "Выписан": ("date", date("%d.%m.%Y %H:%M")),
        "Сумма": ("number", number(100, 90_000, 2, ",", " ", after=" руб.")),
        "Возраст": ("number", number(18, 95, 0, ",", after=" лет")),
        "Лейкоциты": ("number", number(1, 30, 1, ",", gone=("—", ""), share=0.2)),
        "Отделение": ("category", choice("Терапия", "Хирургия")),
    },
    "Умер",
    ("нет", "да"),
    encoding="cp1251",
)

HEBREW = Export(
    "beit_holim.csv",
    Spelling(".", ",", "dmy", None, (), ("₪",), "cp1255"),
    {
        "ת.ז.": ("identifier", numbered("3{:08d}")),
        "קבלה": ("date", date("%d/%m/%Y")),
        "עלות": ("number", number(100, 90_000, 2, ".", ",", before="₪")),
        "גיל": ("number", number(18, 95, 0, ".")),
        "מחלקה": ("category", choice("פנימית", "כירורגית")),
    },
    "נפטר",
    ("לא", "כן"),
    separator=",",
    encoding="cp1255",
)

DEVICES = Export(  # columns of devices with points among those of a German office
    "geraete.csv",
    Spelling(",", ".", "", None, (), ("$",), other_decimal=("Preis", "Sonde")),
    {
        "Lauf-Nr": ("identifier", numbered("{:d}")),
        "Gewicht": ("number", number(40, 120, 1, ",")),
        "Dosis": ("number", number(0, 9, 2, ",")),
        "Menge": ("number", number(1_000, 2e6, 0, ",", ".")),
        "Sonde": ("number", number(0.5, 9, 3, ".")),
        "Preis": ("number", number(100, 9_000, 2, ".", ",", before="$")),
        "Gruppe": ("category", choice("a", "b")),
    },
    "defekt",
    ("nein", "ja"),
)

EXPORTS = (
    GERMAN, US, UK, SWISS, FRENCH, INDIAN, BRAZILIAN, CHINESE, EXCEL, TURKISH, JAPANESE, PERSIAN, LEDGER, WARD, DANISH,
    RUSSIAN, HEBREW, DEVICES,
)  # fmt: skip


def random_export(seed: int) -> Export:
    """One of the many mixes of habits that files have."""
    rng = np.random.default_rng(seed)

    def pick(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    decimal = pick(".", ",")
    thousands = pick("", " ", "'", "." if decimal == "," else ",")
    order, sign = pick("dmy", "mdy"), pick("/", "-", ".")
    unit = pick("", "kg", "%", "€", "mmol/l", "µg")
    word = pick("-", "--", "#N/A", "k.A.", "n.d.")
    clock = pick("", " %H:%M", " %I:%M %p", " %H:%M:%S")
    form = sign.join("%d %m %Y".split() if order == "dmy" else "%m %d %Y".split()) + clock
    gap = pick("", " ", " ")
    columns = {
        "case_id": ("identifier", numbered(pick("{:d}", "C{:05d}"))),
        "dose": ("number", number(1, 99, 2, decimal, after=gap + unit if unit else "", gone=(word,), share=0.2)),
        "cost": ("number", number(1_000, 9e6, 2, decimal, thousands)),
        "day": ("date", date(form)),
        "iso": ("date", date(pick("%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%dT%H:%M"))),
        "group": ("category", choice("a", "b", "c and d")),
    }
    spelling = Spelling(decimal, thousands, order, None, (word,), (unit,) if unit else ())
    return Export(f"random{seed}.csv", spelling, columns, "y", ("no", "yes"), 0.3, pick(";", "\t", "|"))
