"""Tables of effects as papers print them: a row an effect, what is of all records of a group beside it, the rest in
words below. Nothing that was told is lost."""

from dpmpc.outcome import Answer, Line, Number
from dpmpc.show.numbers import shown
from dpmpc.show.papers import effects, p_value

RATIO = Number(0.745, None, 0.679, 0.814)
OWNERS = ("north", "south", "west")


def count(value: float) -> Number:
    return Number(value, 5.0, value - 10, value + 10)


def answer(headers: tuple[str, ...], lines: list[Line]) -> Answer:
    return Answer("a question", headers, tuple(lines), grouped=len(headers) > 2)


def single(*group: str, levels: tuple[str, ...] = ("treated",), p: float = 0.0312) -> list[Line]:
    """Of one group, all that is told of a model with one factor."""
    found = [
        Line((*group, name, ""), "count", count(value))
        for name, value in (("records", 1291.6), ("incomplete records", -3.8), ("events", 358.3))
    ]
    for kind in ("crude odds ratio", "odds ratio") if len(levels) > 1 else ("odds ratio",):
        found += [Line((*group, "arm", level), kind, RATIO) for level in levels]
    tests = ("p", "p (Holm)") if len(levels) > 1 else ("p",)
    return [*found, *(Line((*group, "arm", ""), kind, Number(p, None, None, None)) for kind in tests)]


def test_an_owner_is_a_row_with_its_counts_and_what_is_between_them_stands_below() -> None:
    lines = [line for owner in OWNERS for line in single(owner)]
    lines += [Line(("all owners", "arm", "treated"), "odds ratio", Number(0.76, None, 0.7, 0.8))]
    lines += [
        Line(("between owners", "arm", "treated"), name, Number(value, None, None, None))
        for name, value in (("Q", 3.09), ("tau2", 0.02), ("p", 0.8))
    ]
    made = effects(answer(("owner", "term", "level"), lines), ("the promise",))
    assert made.head == ("owner", "records", "incomplete records", "events", "odds ratio [interval]", "p")
    assert [row[0] for row in made.rows] == [*OWNERS, "all owners"] and made.labels == 1
    assert made.rows[0] == ("north", "1,292", "0", "358", shown(RATIO), p_value(Number(0.0312, None, None, None)))
    assert made.rows[-1][1:4] == ("", "", "") and not made.rows[-1][-1]
    assert made.notes[0] == "In every row: arm treated." and "standard deviation 5" in made.notes[1]
    assert (
        made.notes[2] == "between owners, arm, treated: Q 3.09, tau2 0.02, p 0.80" and made.notes[-1] == "the promise"
    )
    assert max(map(len, made.text(80).splitlines())) <= 80


def test_of_one_model_counts_stand_below_and_crude_beside_adjusted() -> None:
    """A factor of two levels: its joint test is a row of its own, and stays one."""
    made = effects(answer(("term", "level"), single(levels=("low", "high"))))
    assert made.head == (
        "term", "level", "crude odds ratio [interval]", "adjusted odds ratio [interval]", "p", "p (Holm)",
    )  # fmt: skip
    assert [row[:2] for row in made.rows] == [("arm", "low"), ("arm", "high"), ("arm", "")]
    assert made.rows[-1][2:] == ("", "", "0.031", "0.031")
    wanted = {"records": 1291.6, "incomplete records": -3.8, "events": 358.3}
    assert made.notes[0] == ", ".join(f"{name} {shown(count(value))}" for name, value in wanted.items())


def test_nothing_that_was_told_is_lost() -> None:
    for headers, lines in (
        (("term", "level"), single(levels=("low", "high"))),
        (("sex", "term", "level"), [line for sex in "fm" for line in single(sex, levels=("low", "high"))]),
        (("owner", "term", "level"), [line for owner in OWNERS for line in single(owner)]),
    ):
        made = effects(answer(headers, lines))
        text = " ".join(" ".join(row) for row in (made.head, *made.rows, made.notes))
        for line in lines:
            number = line.number
            value = p_value(number) if line.statistic.startswith("p") else shown(number)
            assert value in text or f"{max(0, round(number.estimate or 0)):,}" in text, line
            assert all(word in text for word in line.labels) and line.statistic.replace("count", "") in text, line
