"""Digits, signs, months and eras as other languages write them, in terms of ASCII: for Python and, as text, for SQL."""

import re

from dpmpc.lazy import regex

ZEROS = "\uff10\u0660\u06f0\u0966\u09e6\u0e50"  # full-width, Arabic, Persian, Devanagari, Bengali, Thai
WIDE_MINUS = "\u2212\u2013\u2010\u2011\ufe63\uff0d"  # as spreadsheets and word processors write it
_SIGNS = {"\uff0e": ".", "\uff0c": ",", "\uff0f": "/", "\uff1a": ":", "\uff0b": "+", "\uff05": "%", "\uff08": "(",
          "\uff09": ")", "\u066a": "%", "\u3000": " ", "\u00b7": "\u066b", "\u2219": "\u066b"}  # fmt: skip
# They have no width: directions of writing, byte order marks between files.
MARKS = "\u200b\u200e\u200f\u061c\ufeff\u2060\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
BLANKS = "\u00a0\u2007\u2009\u202f\u3000"  # spaces that are not ASCII
ARABIC_POINT, ARABIC_COMMA = "\u066b", "\u066c"  # of decimals, as a raised point (36·7) is, and between thousands
_DIGITS = {chr(ord(zero) + k): str(k) for zero in ZEROS for k in range(10)}
_PLAIN = {**_DIGITS, **dict.fromkeys(WIDE_MINUS, "-"), **_SIGNS}
FROM, TO = "".join(_PLAIN) + MARKS, "".join(_PLAIN.values())  # SQL's translate takes out what TO has nothing for
_TABLE = str.maketrans(FROM[: len(TO)], TO, MARKS)

# Letters and the marks on them, digits and numerals, for classes of RE2: it takes 4 ms to compile its own class of
# letters each time that one stands in a pattern, and .2 for these. Rare signs among letters are taken for letters.
LETTERS = (
    r"A-Za-z\x{aa}\x{b5}\x{ba}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{5ff}\x{610}-\x{65f}\x{66e}-\x{6d3}\x{6d5}-\x{6ef}"
    r"\x{6fa}-\x{963}\x{971}-\x{9e5}\x{9f0}-\x{e3e}\x{e40}-\x{e4f}\x{e80}-\x{1fff}\x{2126}\x{212a}-\x{212b}"
    r"\x{2c00}-\x{2dff}\x{3005}-\x{3007}\x{3040}-\x{fdff}\x{fe70}-\x{fefe}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}"
    r"\x{ff66}-\x{ffdf}"
)
_DIGIT = "0-9" + "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in ZEROS)
_NUMERAL = (
    _DIGIT
    + r"\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{2070}\x{2074}-\x{2079}\x{2080}-\x{2089}\x{2150}-\x{2189}\x{2460}-\x{249b}"
)

ERAS = {"\u660e\u6cbb": 1867, "\u5927\u6b63": 1911, "\u662d\u548c": 1925, "\u5e73\u6210": 1988, "\u4ee4\u548c": 2018}
FIRST = "\u5143"  # the year 1 of an era

# How dates and times that are not ASCII are written otherwise, for RE2 and Python alike. Spaces before AM and PM; words
# for these before a time (Korean, Japanese, Chinese, Turkish), or after it (Greek, Persian, Arabic); hours, minutes and
# seconds with a word after each; Thai months cut short (ม.ค.).
_TURNED = (
    ("[\u00a0\u2009\u202f]", " "),
    (r"(?:오전|午前|上午|ÖÖ) ?(\d.*)", r"\1 AM"),
    (r"(?:오후|午後|午后|下午|ÖS) ?(\d.*)", r"\1 PM"),
    (r"(:\d\d) ?(?:π\.?μ|ق\.?ظ|ص)\.?$", r"\1 AM"),
    (r"(:\d\d) ?(?:μ\.?μ|ب\.?ظ|م)\.?$", r"\1 PM"),
    (r" ?giờ ?(\d\d)(?: ?phút)?", r":\1"),
    (r"[時时시點点] ?(\d)[分분]", r":0\1"),
    (r"[時时시點点] ?(\d\d)[分분]", r":\1"),
    (r"(:\d\d) ?(\d\d)[秒초]", r"\1:\2"),
    (r"([日일])(\d)", r"\1 \2"),
    (r"([ก-๎]{1,2})\.([ก-๎])\.", r"\1\2"),
)
TURNED = tuple((regex(text, re.ASCII), other) for text, other in _TURNED)
TURNS = (  # one is in each
    "[\u00a0\u2009\u202f\u5348\u00d6\uc624\u03bc\u0638\u0635\u0645\u6642\u65f6\uc2dc\u9ede\u70b9\u65e5\uc77c\u0e04\u0e1e\u0e22\u1edd]"
)


def turned(text: str) -> str:
    """A date or a time with what is written otherwise elsewhere as it is in English."""
    if not text.isascii() and re.search(TURNS, text):
        for pattern, other in TURNED:
            text = pattern.sub(other, text)
    return text


ENGLISH = (
    "jan", "january", "feb", "february", "mar", "march", "apr", "april", "may", "jun", "june", "jul", "july", "aug",
    "august", "sep", "sept", "september", "oct", "october", "nov", "november", "dec", "december",
)  # fmt: skip
ENGLISH_LIST = ", ".join(word for word in ENGLISH if len(word) == 3)
# English, German, French, Spanish, Catalan, Galician, Italian, Portuguese, Romanian, Dutch, Scandinavian and Icelandic,
# Finnish, Estonian, Latvian, Lithuanian, Hungarian, Turkish, Albanian, Indonesian, Greek, Russian, Ukrainian,
# Belarusian, Bulgarian, Macedonian, Serbian, Croatian, Slovenian, Czech, Slovak, Polish, Thai, Arabic and Hindi words,
# in the forms that stand in dates and those that stand alone; tests hold them against the locales of CLDR.
# Of words that name different months in two languages, IN_TWO, none is read without a word on it (`Spelling.months`).
_MONTHS = (
    "jan january januar jänner janvier janv enero ene gennaio gen janeiro januari ocak oca января ianuarie január "
    "tammikuuta janúar jaanuar ιανουαρίου січня януари ledna januára januarja stycznia styczeń sty siječnja siječanj "
    "leden led januara јануар јануара јануари студзеня янв январь ιανουάριος ιαν sausio janvāris janvārī gener janar "
    "xaneiro ian jaan saus sausis sij tammi tammikuu xan сту студзень січ січень яну јан",
    "feb february februar febr février févr fév fevrier febrero febbraio fevereiro fev februari şubat şub февраля "
    "februarie február helmikuuta febrúar veebruar φεβρουαρίου лютого февруари února februára februarja lutego luty "
    "lut veljače veljača únor úno februara фебруар фебруара фебруари лютага фев февраль φεβρουάριος φεβ vasario "
    "februāris februārī febrer shkurt febreiro helmi helmikuu shk vas vasaris veebr velj лют лютий люты феб февр "
    "फ़रवरी",
    "mar march märz maerz mär mrz mars marzo março marco maart mrt marts mart марта martie maret március márc "
    "maaliskuuta märts μαρτίου березня март března marca marzec ožujka ožujak březen bře marta сакавіка мар μάρτιος "
    "μαρ kovo martā març kov kovas maalis maaliskuu marec ožu μάρ бер березень сак сакавік",
    "apr april avril avr abril abr aprile nisan nis апреля aprilie április ápr huhtikuuta apríl aprill απριλίου "
    "квітня април dubna apríla aprila kwietnia kwiecień kwi travnja travanj duben dub априла красавіка апр апрель "
    "απρίλιος απρ balandžio aprīlis aprīlī prill bal balandis d’abr d’abril huhti huhtikuu pri tra квіт квітень кра "
    "красавік",
    "may mai mayo maggio mag maio mei maj mayıs mayis мая május máj toukokuuta maí μαΐου травня май května mája maja "
    "svibnja svibanj květen kvě мај маја μάιος gegužės maijs maijā maig geg gegužė svi touko toukokuu μάι μαΐ трав "
    "травень",
    "jun june juni juin junio giugno giu junho haziran haz июня iunie június jún kesäkuuta júní juuni ιουνίου червня "
    "юни června júna junija czerwca czerwiec cze lipnja lipanj červen čvn juna јун јуна јуни чэрвеня июн июнь ιούνιος "
    "ιουν birželio jūnijs jūnijā juny qershor xuño iun birž birželis junij jūn kesä kesäkuu qer ιούν черв червень чэр "
    "чэрвень",
    "jul july juli juillet juil julio luglio lug julho temmuz tem июля iulie július júl heinäkuuta júlí juuli ιουλίου "
    "липня юли července júla julija lipca lipiec srpnja srpanj červenec čvc jula јул јула јули ліпеня июл июль "
    "ιούλιος ιουλ liepos jūlijs jūlijā juliol korrik xullo iul heinä heinäkuu julij jūl korr liep liepa xul ιούλ лип "
    "липень ліп ліпень",
    "aug august août aout agosto ago augustus augusti ağustos ağu августа agustus augusztus elokuuta ágúst αυγούστου "
    "серпня август srpna augusta avgusta sierpnia sierpień sie kolovoza kolovoz srpen avg avgust жніўня авг αύγουστος "
    "αυγ rugpjūčio augusts augustā agost gusht ag agu d’ag d’agost elo elokuu gush kol rugp rugpjūtis ágú αύγ жні "
    "жнівень серп серпень",
    "sep sept september septembre septiembre setiembre settembre set setembro eylül eyl сентября septembrie "
    "szeptember szept syyskuuta σεπτεμβρίου вересня септември září septembra września wrzesień wrz rujna rujan zář "
    "septembar септембар септембра верасня сен сентябрь σεπτέμβριος σεπ rugsėjo septembris septembrī shtator rugs "
    "rugsėjis ruj setembre sht syys syyskuu вер верасень вересень сент сеп",
    "oct october okt oktober octobre octubre ottobre ott outubro out ekim eki октября octombrie október lokakuuta "
    "oktoober οκτωβρίου жовтня октомври října októbra oktobra października październik paź paz říjen říj oktobar "
    "октобар октобра кастрычніка окт октябрь οκτώβριος οκτ spalio oktobris oktobrī tetor d’oct d’octubre loka lokakuu "
    "spal spalis tet жовт жовтень кас кастрычнік",
    "nov november novembre noviembre novembro kasım kasim kas ноября noiembrie marraskuuta nóvember νοεμβρίου "
    "листопада ноември listopadu novembra studenoga studenog studeni novembar новембар новембра лістапада ноя ноябрь "
    "νοέμβριος νοε lapkričio novembris novembrī nëntor lapkr lapkritis marras marraskuu nën nóv stu νοέ лист листопад "
    "ліс лістапад нов ное нояб",
    "dec december dez dezember décembre déc decembre diciembre dic dicembre dezembro desember des aralık aralik ara "
    "декабря decembrie joulukuuta detsember δεκεμβρίου грудня декември prosince prosinca decembra grudnia grudzień "
    "gru prosinac decembar децембар децембра снежня дек декабрь δεκέμβριος δεκ gruodžio decembris decembrī desembre "
    "dhjetor decembro dets dhj gruod gruodis joulu joulukuu pro prosinec груд грудень дец сне снежань",
)
IN_TWO = {
    "listopada": "11 in Polish, 10 in Croatian",
    "listopad": "11 in Polish and Czech, 10 in Croatian",
    "lis": "11 in Polish and Czech, 10 in Croatian",
    "lip": "7 in Polish, 6 in Croatian",
    "srp": "8 in Czech, 7 in Croatian",
}
_THAI = (
    "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม",
    "มค กพ มีค เมย พค มิย กค สค กย ตค พย ธค",
)
_ARABIC = (
    "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    "جانفي فيفري مارس أفريل ماي جوان جويلية أوت سبتمبر أكتوبر نوفمبر ديسمبر",
)
_HINDI = ("जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",)
MONTHS = {word: k for k, words in enumerate(_MONTHS, 1) for word in words.split()}
MONTHS |= {word: k for words in (*_THAI, *_ARABIC, *_HINDI) for k, word in enumerate(words.split(), 1)}
MONTHS |= {word.replace("ς", "σ"): k for word, k in MONTHS.items()}  # in capitals, ΜΆΙΟΣ
PERSIAN = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند"  # of the Persian calendar, not of ours
MONTHS_OF = dict.fromkeys(("", "buddhist", "minguo"), MONTHS)
MONTHS_OF |= {"persian": {word: k for k, word in enumerate(PERSIAN.split(), 1)}}


def small(text: str) -> str:
    """The text in small letters as DuckDB's `lower` writes them, whatever stands beside a letter: Python ends a Greek
    word with another sigma, and a Turkish İ becomes two characters."""
    return text.replace("Σ", "σ").replace("İ", "i").lower()


def both_small(word: str) -> tuple[str, ...]:
    """The word in small letters, with either sigma at the end of a Greek one: it stands in capitals elsewhere."""
    even = small(word).replace("ς", "σ")
    return tuple(dict.fromkeys((even, re.sub(r"σ\b", "ς", even))))


def month_list(months: dict[str, int]) -> str:
    """A text in which SQL finds a word's number."""
    return "".join(f",{word}={k:02d}" for word, k in months.items()) + ","


# What may stand before a date: days of the week (but "mar", a month), and words such as "le". Each ends with a space.
_BEFORE = (
    "mon monday tue tues tuesday wed wednesday thu thur thurs thursday fri friday sat saturday sun sunday",
    "mo montag di dienstag mi mittwoch do donnerstag fr freitag sa samstag sonnabend so sonntag den am",
    "lun lundi mardi mer mercredi jeu jeudi ven vendredi sam samedi dim dimanche le",
    "lunes martes mié mie miércoles miercoles jue jueves vie viernes sáb sab sábado sabado dom domingo el",
    "lunedì lunedi martedì martedi mercoledì mercoledi gio giovedì giovedi venerdì venerdi sabato domenica",
    "seg segunda ter terça terca qua quarta qui quinta sex sexta segunda-feira terça-feira quarta-feira quinta-feira "
    "sexta-feira",
    "ma maandag dinsdag wo woensdag donderdag vr vrijdag za zaterdag zo zondag",
    "mandag tirsdag onsdag torsdag fredag lørdag søndag måndag tisdag lördag söndag man tir ons tor fre lør søn mån "
    "tis lör sön",
    "ti ke to pe la su maanantaina tiistaina keskiviikkona torstaina perjantaina lauantaina sunnuntaina",
    "po út st čt pá so ne pondělí úterý středa čtvrtek pátek sobota neděle dne",
    "pn wt śr czw pt sob ndz poniedziałek wtorek środa czwartek piątek niedziela dnia",
    "пн вт ср чт пт сб вс понедельник вторник среда четверг пятница суббота воскресенье",
    "ngày",
)
WORDS_BEFORE = tuple(sorted({word for words in _BEFORE for word in words.split()}, key=lambda word: (-len(word), word)))


def western(text: str, decimal: str) -> str:
    """A text with ASCII digits and signs in place of others; `decimal`: the sign that an Arabic decimal point becomes.
    An Arabic comma, which stands between thousands alone, is taken out before three digits."""
    plain = text.translate(_TABLE).replace(ARABIC_POINT, decimal)
    for k in range(len(plain) - 4, -1, -1) if ARABIC_COMMA in plain else ():
        if plain[k] == ARABIC_COMMA and plain[k + 1 : k + 4].isdigit() and plain[k + 1 : k + 4].isascii():
            plain = plain[:k] + plain[k + 1 :]
    return plain


def quick(pattern: str) -> str:
    """A pattern for RE2 with these letters, digits and numerals in place of \\pL, \\pM, \\pN and \\P{Nd}."""

    def other(found: re.Match[str]) -> str:
        part = found[0].replace("\\pL\\pM", "\\pL")
        if part == "\\P{Nd}":
            return f"[^{_DIGIT}]"
        inner = part.replace("\\pL", LETTERS).replace("\\pN", _NUMERAL)
        return inner if part.startswith("[") else f"[{inner}]"

    return re.sub(r"\[(?:\\.|[^\]\\])+\]|\\pL|\\pN|\\P\{Nd\}", other, pattern)


# Words that seem to say that there is no value, in small letters: they are proposed, never taken.
LIKELY_MISSING = (
    "-", "--", "---", *WIDE_MINUS, "\\n", ".", "..", "...", "nan", "nil", "#n/a", "#na", "#n/v", "#nv", "#n/d", "n.a.",
    "n. a.", "k.a.", "k. a.", "<na>", "(null)", "not available", "missing", "n/d", "n.d.", "s.o.", "\u2014",
    "no data", "s/d", "sin datos", "b.d.", "b. d.", "neuvedeno", "nincs adat", "ei tietoa", "ingen data", "fehlt",
    "b/d", "n.c.", "n/c", "bez danych", "nema podataka", "nav datu", "n\u0117ra duomen\u0173", "ei mitattu",
    "nicht verf\u00fcgbar", "non renseign\u00e9", "non disponible", "non disponibile", "no disponible",
    "n\u00e3o dispon\u00edvel", "niet beschikbaar", "\u03b4/\u03c5", "\u30fc",
    "keine angabe", "uppgift saknas", "ikke oplyst", "brak danych", "n\u00e3o informado", "veri yok", "\u043d/\u0434",
    "\u043d.\u0434.", "\u043d\u0435\u0442 \u0434\u0430\u043d\u043d\u044b\u0445",
)  # fmt: skip
