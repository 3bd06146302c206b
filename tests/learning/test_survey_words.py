"""Names of categories: a code beside a survey's counts costs nothing in L2, and public words are found by it."""

import itertools
import math

import numpy as np
import pytest

from dpmpc.intake.hashing import bucket
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_words import (
    CODE,
    CODES,
    COVERS,
    LETTERS,
    WEIGHT,
    cells_of,
    known_words,
    names_of,
    read_words,
)
from dpmpc.records.columns import is_name
from dpmpc.records.loading import opened
from tests.refusals import refuses

PLAIN = Survey(("dose",), ("ward", "sex"), buckets=16)
CODED = Survey(("dose",), ("ward", "sex"), buckets=16, words=("sex",))


def sums(survey: Survey, table: dict[str, list[str]]) -> np.ndarray:
    n = len(table["sex"])
    with opened(table) as (found, _):
        (mean,) = survey.means(found, np.zeros(n, dtype=np.int64), (n,))
    return mean[0] * n


TABLE = {"dose": ["1", "2.5", ""], "ward": ["a", "b", "4"], "sex": ["female", "male", "female"]}


def test_counts_are_as_without_words_and_the_code_is_where_anybody_can_work_it_out() -> None:
    plain, coded = sums(PLAIN, TABLE), sums(CODED, TABLE)
    assert np.array_equal(coded[: CODED.counted], plain) and len(coded) == PLAIN.coordinates + 16 * CODE
    expected = np.zeros(16 * CODE)
    for word, many in (("female", 2), ("male", 1)):
        place = np.array([bucket("sex", word, 16 * CODES)])
        assert int(place[0]) % 16 == bucket("sex", word, 16)
        expected[cells_of(place, 16)[0]] += many * WEIGHT
    assert np.allclose(CODED.coded(coded, "sex"), expected, rtol=1e-12, atol=0)


def test_no_pair_of_records_lies_further_apart_than_without_words() -> None:
    """All pairs of some odd records; in L1 a bound of its own holds, and words attain it."""
    values = ["female", "male", "1e300", "-3", "", "inf", "z" * 99, "fe\u0301male"]
    rows = [sums(CODED, {"dose": ["1"], "ward": ["a"], "sex": [value]}) for value in values]
    one = replace_only_sex()
    most = [0.0, 0.0, 0.0]
    for a, b in itertools.combinations(rows, 2):
        apart = np.abs(a - b)
        most = np.maximum(most, [apart.sum(), math.sqrt((apart**2).sum()), apart.max()]).tolist()
    assert most[1] <= one.spread == Survey((), ("sex",), buckets=16).spread
    assert most[1] > 0.99 * math.sqrt(2 * (1 + LETTERS * WEIGHT**2))
    assert most[0] <= one.sensitivity.l1 and most[0] == pytest.approx(2 * (1 + LETTERS * WEIGHT))
    assert most[2] <= one.sensitivity.linf == 1.0
    assert LETTERS * WEIGHT**2 <= 1 / 8


def replace_only_sex() -> Survey:
    return Survey((), ("sex",), buckets=16, words=("sex",))


def test_a_plan_without_words_is_as_it_was_and_one_with_them_comes_back() -> None:
    assert "words" not in PLAIN.to_json() and Survey.from_json(PLAIN.to_json()) == PLAIN
    assert Survey.from_json(CODED.to_json()) == CODED
    for words in (("dose",), ("sex", "sex"), ("height",)):
        with refuses("type"):
            Survey(("dose",), ("sex",), words=words)


def drawn(held: dict[str, int], noise: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts and codes of 256 buckets of a column that holds these words so often, with noise."""
    counts, codes = np.zeros(256), np.zeros(256 * CODE)
    for word, many in held.items():
        place = bucket("stage", word, 256 * CODES)
        counts[place % 256] += many
        codes[cells_of(np.array([place]), 256)[0]] += WEIGHT * many
    return counts + random.normal(0, noise, 256), codes + random.normal(0, noise, 256 * CODE)


def test_words_of_enough_records_are_named_and_others_are_not() -> None:
    """Of 60 draws: 'II', with 24 deviations of the noise, is named in 54 or more, each having a probability of .97 to
    be (fewer than 54 happen once in 10^5; the seed is fixed); 'III', with 4, in none; a word of no list in none, and
    nothing in its place but in 3: of 7,000 words some share three letters of four with it."""
    random, named = np.random.default_rng(2), dict.fromkeys(("II", "III", "others"), 0)
    for _ in range(60):
        counts, codes = drawn({"II": 240, "III": 40, "a secret": 500}, 10.0, random)
        found = {name.word for name in names_of("stage", counts, codes, 10.0, known_words()).values()}
        for word in ("II", "III"):
            named[word] += word in found
        named["others"] += bool(found - {"II", "III"})
    assert named["II"] >= 54 and named["III"] <= 2 and named["others"] <= 3


def test_noise_alone_names_nothing() -> None:
    """Of 100 columns of noise: each has a name with probability of at most 1 %; more than 8 happen once in 10^5."""
    random = np.random.default_rng(4)
    named = sum(bool(names_of("stage", *drawn({}, 10.0, random), 10.0, known_words())) for _ in range(100))
    assert named <= 8


def test_a_bucket_of_two_words_has_the_name_of_neither_unless_one_covers_it() -> None:
    random = np.random.default_rng(1)
    at = bucket("stage", "II", 256)
    twin = next(w for w in (f"w{k}" for k in range(10_000)) if bucket("stage", w, 256) == at)
    for share, expected in ((0.5, None), (0.93, "II")):
        counts, codes = drawn({"II": round(5000 * share), twin: round(5000 * (1 - share))}, 1.0, random)
        found = names_of("stage", counts, codes, 1.0, known_words())
        assert (found[at].word if at in found else None) == expected
    assert found[at].about == pytest.approx(4650, abs=20) and 0.5 < COVERS < 1


@pytest.mark.parametrize(
    "word",
    ["", " x", "a\nb", "a\x1b[31mb", "\u202eabc", "a\u200bb", "\ue000", "bucket 3", "missing", "x" * 65, "\ud800"],
)
def test_what_would_drive_a_page_or_a_terminal_is_no_name(word: str) -> None:
    assert not is_name(word)


def test_lists_are_public_words_each_once(tmp_path: object) -> None:
    words = known_words()
    assert len(set(words)) == len(words) > 4000 and all(map(is_name, words))
    assert {"female", "Male", "yes", "IIIb", "C34", "ab", "never", "HS-grad"} <= set(words)


def test_a_file_of_words_is_one_a_line(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "w.txt").write_text("stage one\n\n <script> \n", encoding="utf-8")
    assert read_words(tmp_path / "w.txt") == ("stage one", "<script>")
    (tmp_path / "w.txt").write_bytes(b"\xff\xfe\xff")
    for path, broken in ((tmp_path / "w.txt", "type"), (tmp_path / "none.txt", "path")):
        with refuses(broken, path):
            read_words(path)
