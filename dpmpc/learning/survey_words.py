"""Names of categories: which word a bucket holds, told from a code that a survey carries beside its counts.

A text of column c in bucket b adds WEIGHT at four more cells of its own bucket, (b, t, letter t), t = 0 .. 3: four
letters of 5 bits of the same digest that gives the bucket. Nobody can read a word off these cells, but of a public word
anybody can work out where it would have added, and look there: of N records with the word the four cells have
4 WEIGHT N, and their noise has deviation 2 s, s that of a cell. So N is estimated by

    S / (4 WEIGHT)   with deviation   s / (2 WEIGHT) = 2.83 s,

and a word is a bucket's name where that is larger than noise makes it for any of the candidates (`ALARMS` in all), and
at least `COVERS` of the bucket's own count: a word that shares three of four letters with the one that is there comes
to 3/4 of it at most. All is post-processing of what was opened: lists of words may be tried later, longer ones too.

Guarantees: a text's cells have squared norm 1 + 4 WEIGHT^2 <= 9/8, which is what a number's have with its moments, so
that two records of a survey lie no further apart than without the code; in L1 they may (1 + 4 WEIGHT each). Candidates
must be public: from a code table or a standard, and never read off records; a list that was would say what its words
were read off.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.hashing import bucket
from dpmpc.intake.spelling import is_number
from dpmpc.intake.written import text_of
from dpmpc.lazy import dataclass
from dpmpc.learning.quantile_of_noise import upper_quantile
from dpmpc.records.columns import is_name

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LETTERS, SIZE = 4, 32  # of a code; how many each is one of
CODE = LETTERS * SIZE  # cells of a bucket
CODES = SIZE**LETTERS  # different codes: places of a text are bucket + buckets * code
WEIGHT = 181 / 1024  # exact in binary; 4 WEIGHT^2 = 0.12497 <= 1/8
ALARMS = 0.01  # that a word is found by noise alone, over all buckets and words that are tried
COVERS = 0.8  # of a bucket's count that its name's must be
MOST_WORDS = 100_000  # of a list; ICD-10 has some 70,000
_BITS = 5


@dataclass(frozen=True)
class Name:
    """A bucket's word; about how many of its records have it, and the deviation of that."""

    word: str
    about: float
    noise: float


def cells_of(place: Ints, buckets: int) -> Ints:
    """(n, LETTERS) the cells of the codes of texts at these places: bucket + buckets * code."""
    at, code = place % buckets, place // buckets
    letters = np.arange(LETTERS)
    found: Ints = at[:, None] * CODE + letters * SIZE + ((code[:, None] >> (_BITS * letters)) & (SIZE - 1))
    return found


def add_codes(total: Floats, place: Ints, group: Ints, buckets: int) -> None:
    """Adds the codes of texts at these places to total (groups, buckets * CODE); group: of each text."""
    length = buckets * CODE
    at = (cells_of(place, buckets) + group[:, None] * length).reshape(-1)
    total += WEIGHT * np.bincount(at, minlength=len(total) * length).reshape(len(total), length)


def names_of(
    column: str, counts: Floats, codes: Floats, noise: float, words: Iterable[str], known: Iterable[str] = ()
) -> dict[int, Name]:
    """Bucket -> its name, of those that have one. counts (buckets,), codes (buckets * CODE,): opened, whose cells have
    noise of this deviation; words: public candidates; known: words that are known to be there, by a release of their
    own (`learning.naming`), and are names whatever the code says. Errors: none; what can be no name is passed over."""
    buckets = len(counts)
    sure = frozenset(known)
    keys = [word for word in dict.fromkeys((*sorted(sure), *words)) if is_name(word) and not is_number(word)]
    if not keys:
        return {}
    place = np.array([bucket(column, word, buckets * CODES) for word in keys], dtype=np.int64)
    tried = counts[place % buckets] > 0
    first, second, third, fourth = codes[cells_of(place, buckets)].T
    about = (((first + second) + third) + fourth) / (LETTERS * WEIGHT)  # in an order of its own: the same everywhere
    off = noise / (2 * WEIGHT)
    least = upper_quantile(ALARMS / len(keys)) * off
    found: dict[int, Name] = {}
    fits = tried & (about > least) & (about >= COVERS * counts[place % buckets])
    fits |= np.array([key in sure for key in keys])
    for k in np.flatnonzero(fits):
        at = int(place[k] % buckets)
        if at not in found or (found[at].word in sure, found[at].about) < (keys[k] in sure, about[k]):
            found[at] = Name(keys[k], float(about[k]), off)
    return found


def check_words(words: Sequence[str]) -> None:
    """Errors: UsageError for more than a plan carries."""
    if len(words) > MOST_WORDS:
        raise UsageError(f"a list has at most {MOST_WORDS} words; got {len(words)}; leave out those that are rare")


def read_words(path: Path) -> tuple[str, ...]:
    """The words of a file, one a line. Errors: UsageError where it cannot be read, or has too many."""
    try:
        text = text_of(path, "a list of words", "utf-8")
        found = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
        check_words(found)
        return found
    except OSError as error:
        raise UsageError(
            f"words are in a file, one a line; {path}: {error.strerror}; check the path", code="path"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"words are UTF-8 text; {path}: {error.reason}; save it so", code="type") from None


_SAID = """
female male f m w d x other unknown unspecified none not_known na woman man girl boy weiblich maennlich männlich divers
homme femme hombre mujer masculino femenino feminino vrouw kvinna kvinde kvinne mies nainen
yes no y n true false t positive negative pos neg present absent abnormal normal ja nein oui non si sí sim não nao nee
never former current ever smoker non-smoker ex-smoker occasional daily nie frueher früher aktuell
low medium middle high very_low very_high small large mild moderate severe critical stable good fair poor bad excellent
left right both bilateral upper lower central peripheral acute chronic primary secondary tertiary
alive dead died deceased survived discharged transferred readmitted recovered relapse remission progression
single married divorced separated widowed partner cohabiting Single Married Divorced Separated Widowed
Never-married Married-civ-spouse Married-spouse-absent Married-AF-spouse
white black asian hispanic latino White Black Asian Hispanic Latino Other Amer-Indian-Eskimo Asian-Pac-Islander
Female Male Unknown Yes No Never Former Current Low Medium High None Other Mild Moderate Severe
Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked
Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th Doctorate
5th-6th Preschool Husband Wife Own-child Not-in-family Other-relative Unmarried
Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners Machine-op-inspct
Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces
primary_school secondary_school university basic school college student employed unemployed retired self-employed
inpatient outpatient emergency elective urgent routine ward north south east west clinic hospital
surgery medicine oncology cardiology neurology paediatrics pediatrics psychiatry radiology gynaecology orthopaedics
monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep oct nov dec spring summer autumn winter
red green blue yellow brown grey gray orange purple pink
placebo treatment control intervention standard arm_a arm_b drug
A+ A- B+ B- AB+ AB- O+ O- 0+ 0- A B AB O
I II III IV V VI VII VIII IX X Ia Ib IIa IIb IIIa IIIb IIIc IVa IVb IA IB IIA IIB IIIA IIIB IIIC IVA IVB
T0 T1 T2 T3 T4 N0 N1 N2 N3 M0 M1 G1 G2 G3 G4 Tis Tx Nx Mx
""".split()
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def known_words() -> tuple[str, ...]:
    """Words that everybody knows: answers, sexes, grades, stages, days and the like in several spellings; one and two
    letters; letters with two digits, as ICD-10 has them. Part of this program, and the same for all records."""
    said = [word.replace("_", " ") for word in _SAID]
    spelled = [form for word in said for form in (word, word.lower(), word.capitalize(), word.upper())]
    letters = [*_UPPER, *map("".join, product(_UPPER, repeat=2))]
    codes = [f"{letter}{number:02d}" for letter in _UPPER for number in range(100)]
    return tuple(dict.fromkeys([*said, *spelled, *letters, *map(str.lower, letters), *codes]))


def stated_names(names: Mapping[int, Name]) -> tuple[tuple[int, str], ...]:
    """(bucket, word) in order, for a schema."""
    return tuple((at, names[at].word) for at in sorted(names))
