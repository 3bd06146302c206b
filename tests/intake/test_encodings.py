"""Encodings are proposed by what bytes look like: short texts of offices in each."""

from pathlib import Path

import pytest

from dpmpc.intake.encodings import likely

TEXTS = {
    "cp1252": (
        "Größe;Station;verstorben\nMüller;Geburtshilfe;nein\n",
        "prontuário;óbito;município\n1;Não;São Paulo\n",
        "café;déjà;25 °C\n",
        "Betrag\n1 €\n",
        "Ä;B\n1;2\n",
        "nacimiento;edad;niño\n1;años;corazón\n",
        "plain;all ASCII\n1;2\n",
        "Reykjavík;sjúkrahús\nþað;eða;já;Örn\n",
        "Zürich;Genève\nMüller;Hélène;à la maison;Größe;français\n",
    ),
    "cp1250": (
        "Wrocław;Łódź;śmierć\nnie;tak;Poznań\n",
        "Příjmení;Úmrtí;Věk;Oddělení\nčeský;žena;muž;těžký;kůže\n",
        "Életkor;Nő;Sürgősségi\nszülészet;fájdalom;műtét\n",
    ),
    "iso8859-2": (
        "pacjent|płeć|ciśnienie|uwagi\nP1|K|120|tak\nP2|M|ł|ś\n",
        "Płeć;Oddział;Ciśnienie;świąd\nŻółtaczka;źle;ból głowy;Śródmieście\n",
    ),
    "cp1254": ("Yaş;Şehir;Ölüm\n5;İstanbul;hayır\n6;Muğla;evet\n",),
    "cp1251": ("Возраст;пол;умер\n5;мужской;нет\n", "Вік;стать;помер\nні;так;жінка\n"),
    "cp1253": ("Ηλικία;θάνατος\n5;όχι\n",),
    "gb18030": ("住院号,年龄,死亡\n1,5岁,是\n2,¥6,否\n内科,外科,儿科\n",),
    "big5": ("病歷號,年齡,死亡\n內科,外科,兒科,否\n",),
    "cp932": ("患者番号,年齢,死亡\n1,5,はい\n内科,外科,いいえ\n", "病院,性別\n大学,男性\n"),
    "iso8859-15": ("Montante;Situação\n65,41 €;não\n",),
    "mac_roman": ("Ålder;Kön;Rökare\nVästra Götaland;Skåne;Örebro\n", "Décès;Entrée;Coût\nélevé;à l'hôpital;Unité\n"),
    "cp850": ("Größe;Übelkeit;Ärztin\nMüller;läuft;für\n", "Año;Médico;Niñez\nCirugía;dirección;más\n"),
    "cp852": ("Příjmení;Věk;Oddělení\nčeský;žena;těžký;kůže\n",),
    "koi8_r": ("Возраст;пол;умер\n5;мужской;нет\n",),
    "cp866": ("Возраст;пол;умер\n5;мужской;нет\n",),
    "euc_jp": ("患者番号,年齢,死亡\n内科,外科,いいえ,カルテ\n",),
    "cp949": ("환자번호,나이,사망\n1,5,예\n내과,외과,아니오\n",),
}


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_the_encoding_that_a_text_seems_to_be_in(encoding: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    assert likely(path) == encoding
