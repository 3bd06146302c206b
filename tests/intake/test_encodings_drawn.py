"""Files of words of many languages, in every encoding in use for these: the proposal reads them back as they were.

Russian without any capital in KOI8-R is the same bytes as capitals alone in Windows-1251, which is the commoner one.
"""

import random
from pathlib import Path

import pytest

from dpmpc.intake.encodings import likely

WORDS = {
    "männlich weiblich größe straße müller für über schön österreich": "cp1252 iso8859-1 cp850 mac_roman",
    "né décédé hôpital français sévère été garçon février": "cp1252 iso8859-15 cp850 mac_roman",
    "niño corazón presión años señora médico alergia según": "cp1252 iso8859-1 cp850 mac_roman",
    "mężczyzna kobieta zgon łódź żółtaczka śmierć źle płuca": "cp1250 iso8859-2 cp852 mac_latin2",
    "muž žena příjem krevní tlak žádný průměr šest čtvrtek": "cp1250 iso8859-2 cp852 mac_latin2",
    "férfi nő győr szívműtét kórház született öt húsz": "cp1250 iso8859-2 cp852",
    "erkek kadın hasta öğrenci şeker çalışan ağrı yaşında ünlü": "cp1254 iso8859-9",
    "Мужской Женский больница диагноз возраст давление Москва": "cp1251 koi8_r cp866 iso8859-5 mac_cyrillic",
    "άνδρας γυναίκα νοσοκομείο ηλικία διάγνωση καρδιά": "cp1253 iso8859-7",
    "גבר אישה בית חולים אבחנה גיל לחץ דם": "cp1255",
    "ذكر أنثى مستشفى تشخيص عمر ضغط قلب": "cp1256",
    "ชาย หญิง โรงพยาบาล อายุ ความดัน หัวใจ": "cp874",
    "男性 女性 病院 診断 年齢 血圧 心臓 なし あり": "cp932 euc_jp",
    "男性 女性 医院 诊断 年龄 血压 心脏 没有": "gb18030",
    "男性 女性 醫院 診斷 年齡 血壓 心臟 沒有": "big5",
    "남성 여성 병원 진단 나이 혈압 심장 없음": "cp949",
    "vyras moteris ligoninė širdis ąžuolas šeši ūkis": "cp1257",
    "ward\u2019s \u2013 none caf\u00e9 na\u00efve": "cp1252",
}


@pytest.mark.parametrize("rows", [8, 200])
@pytest.mark.parametrize(("words", "encoding"), [(text, name) for text, all_ in WORDS.items() for name in all_.split()])
def test_what_is_proposed_reads_the_file(words: str, encoding: str, rows: int, tmp_path: Path) -> None:
    draw, some = random.Random(3), words.split()
    lines = [f"{k};{draw.choice(some)} {draw.choice(some)};{draw.randint(1, 90)}\n" for k in range(rows)]
    text = "".join(["id;name;age\n", *lines])
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    assert text.encode(encoding).decode(likely(path)) == text
