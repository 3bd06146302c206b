"""What a terminal is shown, and a pipe: tables within a line's width, no colours in a file, nothing that drives a
terminal out of records."""

import io
import os
import pty
import random
from threading import Thread

import pytest

from dpmpc.show.terminal import Bar, Styled, Terminal, TextColumn, TextRow, harmless, wide

COLUMNS = [TextColumn("name"), TextColumn("count", right=True, long="whole"), TextColumn("note")]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def shown(width: int, columns: list[TextColumn], rows: list[TextRow], **how: bool) -> list[str]:
    stream = io.StringIO()
    Terminal(stream, width).table(columns, rows, **how)
    return stream.getvalue().split("\n")[:-1]


def test_a_table_is_laid_out_by_its_widest_cells():
    rows = [TextRow(["wards", "7", "of all"]), TextRow([Styled("x", "red"), "1,000", ""])]
    assert shown(80, COLUMNS, rows) == ["name   count  note", "wards      7  of all", "x      1,000"]
    assert shown(80, COLUMNS, rows, header=False) == ["wards      7  of all", "x      1,000"]
    ruled = shown(80, COLUMNS, rows, rule=True)
    assert ruled == ["", " name   count  note", " " + "─" * 20, " wards      7  of all", " x      1,000", ""]


def test_words_wrap_in_their_column_and_a_long_one_is_broken():
    lines = shown(30, COLUMNS, [TextRow(["a", "5", "the quick brown fox"]), TextRow(["b", "6", "Z" * 20])])
    head = ["name  count  note", "a         5  the quick brown", "             fox"]
    assert lines == [*head, "b         6  " + "Z" * 17, "             ZZZ"]


def test_a_cell_is_cut_where_its_column_says_so():
    assert shown(80, [TextColumn("c", long="cut", most=6)], [TextRow(["abcdefgh"]), TextRow(["abcdef"])]) == [
        "c",
        "abcde…",
        "abcdef",
    ]


def test_no_line_is_wider_than_the_terminal_and_no_text_is_lost():
    rng = random.Random(7)
    letters = ["a", "W", "é", "漢", "字", "e\u0301", "ß", " ", "-"]
    for _ in range(300):
        width = rng.randrange(30, 120)
        cells = [["".join(rng.choices(letters, k=rng.randrange(40))) for _ in range(3)] for _ in range(4)]
        lines = shown(width, [TextColumn() for _ in range(3)], [TextRow(row) for row in cells], header=False)
        assert max(map(wide, lines)) <= width
        held = sorted("".join(lines).replace(" ", ""))
        assert held == sorted("".join("".join(row) for row in cells).replace(" ", ""))


def test_what_would_drive_a_terminal_is_spelt_out():
    stream = Screen()
    Terminal(stream).table([TextColumn("\x1b[2Jc")], [TextRow(["\x1b]0;x\x07\r"])])
    assert "\\x1b[2Jc" in stream.getvalue() and "\\x1b]0;x\\x07\\r" in stream.getvalue()
    assert harmless("a\tb\u009bc\x7f") == "a\tb\\x9bc\\x7f"


def test_styles_are_for_terminals_that_have_them(monkeypatch: pytest.MonkeyPatch):
    for name, value, styled in (("NO_COLOR", "", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)):
        with monkeypatch.context() as set_up:
            set_up.setenv("TERM", "xterm")
            set_up.delenv("NO_COLOR", raising=False)
            set_up.setenv(name, value)
            stream = Screen()
            Terminal(stream).line(Styled("FAILS", "bold red"), " it")
            assert stream.getvalue() == ("\x1b[1;31mFAILS\x1b[0m it\n" if styled else "FAILS it\n")
    stream = io.StringIO()
    Terminal(stream).line("FAILS", style="red")
    assert stream.getvalue() == "FAILS\n"


def test_a_long_line_is_broken_between_words_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "12")
    for stream, text in ((Screen(), "some words\nof a line\n"), (io.StringIO(), "some words of a line\n")):
        Terminal(stream).text("some words of a line")
        assert stream.getvalue() == text


def test_what_an_encoding_does_not_have_ends_nothing():
    held = io.BytesIO()
    stream = io.TextIOWrapper(held, "ascii", write_through=True)
    Terminal(stream).table([TextColumn("ä")], [TextRow(["█"])], rule=True)
    assert held.getvalue() == b"\n ?\n ?\n ?\n\n"


def test_a_bar_leaves_one_line_in_a_file():
    stream = io.StringIO()
    with Bar(Terminal(stream), "skew", total=4, done=1) as bar:
        bar.done += 2
        bar.print("beside")
    assert stream.getvalue() == "beside\nskew 3/4 0:00:00\n"
    with Bar(Terminal(stream)):
        pass
    assert stream.getvalue().count("\n") == 2  # without a name, none


def test_a_bar_moves_in_the_last_line_of_a_terminal():
    """By a pseudo-terminal: lines above stay, the bar's line is drawn anew, and no line is longer than the width."""
    parent, child = pty.openpty()
    found: list[bytes] = []

    def read() -> None:
        while b"\x04" not in (part := os.read(parent, 4096)):
            found.append(part)
        found.append(part)

    reader = Thread(target=read)
    reader.start()
    with os.fdopen(child, "w", encoding="utf-8") as stream:
        with Bar(Terminal(stream), "training", total=50) as bar:
            bar.print("making noise")
            bar.done, bar.note = 50, "loss 0.4332, " * 20
        stream.write("\x04")
        stream.flush()
        reader.join()
    os.close(parent)
    text = b"".join(found).decode()
    assert "\r\x1b[Kmaking noise\r\n" in text
    last = text.rstrip("\x04").rstrip("\r\n").split("\r")[-1].removesuffix("\x1b[K")
    assert last.strip().startswith("training ━━━") and "50/50 0:00:0" in last and last.endswith("…")
    assert wide(last) < 80


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_bar_gives_way_to_the_time_left_and_the_figures(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the usual width of a terminal the time left is whole, and the loss is there."""
    monkeypatch.setenv("COLUMNS", str(width))

    stream = Screen()
    bar = Bar(Terminal(stream), "releasing", total=50, done=28)
    bar.note = "loss 0.3384, AUC 0.9736, 18.6 ms"
    bar._draw()
    line = stream.getvalue().strip("\r").removesuffix("\x1b[K")
    assert len(line) <= width - 1 and " left" in line and "loss 0.33" in line and "━" in line
