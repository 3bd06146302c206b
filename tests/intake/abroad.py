"""More exports as offices send them, made from seeds, with habits that those of `exports` have not. No real records."""

import datetime
from dataclasses import dataclass

from dpmpc.intake.spelling import Spelling
from tests.intake.exports import (
    WIDE_DIGITS,
    Export,
    Rng,
    Spell,
    balance,
    choice,
    date,
    lakh,
    mixed,
    number,
    numbered,
    often,
    prose,
    turned,
)

THAI_DIGITS = str.maketrans("0123456789", "๐๑๒๓๔๕๖๗๘๙")
INDIAN_DIGITS = str.maketrans("0123456789", "०१२३४५६७८९")
THAI_MONTHS = "ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค.".split()


def whole(form: str, *ends: tuple[int, int]) -> Spell:
    """A form filled with whole numbers, each between two ends, the last one left out."""
    return lambda rng, k: form.format(*(int(rng.integers(*each)) for each in ends))


def later(form: str, years: int) -> Spell:
    """A day whose year is so many more, as of another era; {m} is its Thai month cut short."""

    def spell(rng: Rng, k: int) -> str:
        day = datetime.date(2019, 1, 1) + datetime.timedelta(days=int(rng.integers(2000)))
        return form.format(y=day.year + years, m=THAI_MONTHS[day.month - 1], k=day.month, d=day.day)

    return spell


@dataclass(frozen=True)
class Sheet(Export):
    """With so many empty columns after the last one, and none of their names."""

    trailing: int = 0

    @property
    def kinds(self) -> dict[str, str]:
        after = len(self.columns) + 2  # the target is before them
        named = {name.replace("\n", " "): kind for name, kind in super().kinds.items()}
        return named | {f"column {after + k}": "empty" for k in range(self.trailing)}


THAI = Export(
    "rongphayaban.csv",
    Spelling(".", ",", "dmy", None, ("-",), ("กก.", "บาท"), calendar="buddhist"),
    {
        "HN": ("identifier", numbered("67-{:06d}")),
        "วันที่รับ": ("date", later("{d} {m} {y}", 543)),
        "วันจำหน่าย": ("date", often(later("{d:02d}/{k:02d}/{y}", 543), "-", share=0.05)),
        "เวลา": ("time", whole("{:02d}.{:02d} น.", (0, 24), (0, 60))),
        "น้ำหนัก": ("number", turned(number(40, 120, 1, ".", after=" กก."), THAI_DIGITS)),
        "ค่าใช้จ่าย": ("number", number(500, 90_000, 2, ".", ",", after=" บาท")),
        "สิทธิ": ("category", choice("บัตรทอง", "ประกันสังคม", "ข้าราชการ")),
        "ว่าง": ("empty", choice("")),
    },
    "เสียชีวิต",
    ("ไม่", "ใช่"),
    separator=",",
    encoding="utf-8-sig",
)

KOREAN = Export(
    "byeongwon.csv",
    Spelling(".", ",", "", None, (), ("℃", "원", "일"), "cp949"),
    {
        "등록번호": ("identifier", numbered("{:08d}")),
        "입원일": ("date", date("%Y. %m. %d.")),
        "수술일시": (
            "date",
            lambda rng, k: date("%Y-%m-%d ")(rng, k) + whole("오후 {}:{:02d}", (1, 13), (0, 60))(rng, k),
        ),
        "진료비": ("number", number(10_000, 9e6, 0, ".", ",", after="원")),
        "체온": ("number", number(35, 41, 1, ".", after="℃")),
        "재원일수": ("number", whole("{}일", (0, 40))),
        "요당": ("category", choice("(-)", "(+)", "(++)")),
        "흡연": ("category", choice("예", "아니오", "모름")),
    },
    "사망",
    ("아니오", "예"),
    separator=",",
    encoding="cp949",
)

JAPANESE_LABORATORY = Export(
    "kensa.csv",
    Spelling(".", ",", "", None, (), ("度", "￥"), "cp932"),
    {
        "患者番号": ("identifier", numbered("K{:06d}")),
        "時刻": ("time", whole("午後{}時{}分", (1, 12), (0, 60))),
        "費用": ("number", number(1_000, 900_000, 0, ".", ",", before="￥")),
        "体温": ("number", turned(number(35, 41, 1, ".", after="度"), WIDE_DIGITS)),
        "血圧": (
            "identifier",
            turned(whole("{}/{}", (90, 190), (50, 110)), str.maketrans("0123456789/", "０１２３４５６７８９／")),
        ),
        "尿蛋白": ("category", choice("－", "＋", "２＋")),
        "喫煙": ("category", choice("○", "×", "△")),
    },
    "転帰",
    ("生存", "死亡"),
    separator=",",
    encoding="cp932",
)

GERMAN_WARD = Export(
    "station.txt",
    Spelling(",", ".", "dmy", None, (), ("J.", "ca.", "€"), "cp1252"),
    {
        "Fallnr": ("identifier", numbered("47{:05d}")),
        "Geschlecht": ("category", choice("m", "w", "d")),
        "Alter": ("number", whole("{} J.", (18, 96))),
        "Aufnahme": ("date", date("%d.%m.%Y %H:%M Uhr")),
        "Ankunft": ("time", mixed(whole("{:02d}{:02d} h", (0, 24), (0, 60)), whole("{}.{:02d} Uhr", (0, 24), (0, 60)))),
        "Privat": ("category", choice("J", "N")),
        "Raucher": ("category", choice("X", "")),
        "Betrag": ("number", number(100, 90_000, 2, ",", ".", after=" €")),
        "Gewicht": ("number", mixed(number(40, 130, 1, ",", before="ca. "), number(40, 130, 1, ","))),
        "Leukos": (
            "identifier",
            mixed(number(1, 30, 3, ",", after="+"), number(1, 30, 3, ",", after="-"), number(1, 30, 3, ",")),
        ),
        "Schmerz": ("category", whole("{} von 10", (0, 11))),
        "Befund": ("free text", prose("Pat.", "klagt;", "über", "Schmerzen", "seit")),
    },
    "verstorben",
    ("N", "J"),
    separator="\t",
    encoding="cp1252",
)

PRINTED = Sheet(
    "printed.csv",
    Spelling(".", ",", "mdy", None, ("###", "#div/0!", "#n/a"), ("$",), "", "", "parentheses", 3),
    {
        "Case ID": ("identifier", numbered("{:06d}")),
        "Age\n(years)": ("number", number(18, 95, 0, ".")),
        "Weight": ("number", number(90, 260, 0, ".", gone=("#N/A", "###"))),
        "Ratio": ("number", number(0, 1, 4, ".", gone=("#DIV/0!",))),
        "Charges": ("number", number(100, 90_000, 2, ".", ",", before="$ ")),
        "Net": ("number", balance("({})", ".", ",")),
        "Seen": ("date", date("%m/%d/%Y")),
        "Insured": ("category", choice("TRUE", "FALSE")),
    },
    "Readmit?",
    ("No", "Yes"),
    separator=",",
    end=",,\r\n",
    first_line=f"Readmissions - printed 3/5/2024{',' * 10}\r\n{',' * 10}\r\n",
    encoding="utf-8-sig",
    trailing=2,
)

NEPALI = Export(
    "aspatal.csv",
    Spelling(".", ",", "", None, (), ("/-", "के.जी.", "रु.", "वर्ष")),
    {
        "दर्ता नं.": ("identifier", turned(numbered("{}"), INDIAN_DIGITS)),
        "उमेर": ("number", turned(whole("{} वर्ष", (18, 96)), INDIAN_DIGITS)),
        "भर्ना मिति": ("date", turned(whole("{}/{:02d}/{:02d}", (2076, 2082), (1, 13), (1, 29)), INDIAN_DIGITS)),
        "खर्च": ("number", turned(lambda rng, k: f"रु. {lakh(rng.uniform(9e3, 3e6))[:-3]}/-", INDIAN_DIGITS)),
        "तौल": ("number", turned(number(40, 90, 1, ".", after=" के.जी."), INDIAN_DIGITS)),
        "धूम्रपान": ("category", choice("छ", "छैन")),
    },
    "मृत्यु",
    ("होइन", "हो"),
    separator=",",
)

ABROAD = (THAI, KOREAN, JAPANESE_LABORATORY, GERMAN_WARD, PRINTED, NEPALI)
