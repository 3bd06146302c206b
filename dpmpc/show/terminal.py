"""Lines, tables and a bar of progress for a terminal, or for what takes its place: a pipe or a file gets neither
colours nor a moving bar.

Text comes from records too, such as names of columns, so what would drive a terminal is shown as an escape.
"""

import os
import shutil
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Literal, NamedTuple, Self, TextIO

from dpmpc.lazy import dataclass

Style = Literal["", "bold", "dim", "red", "green", "yellow", "bold red"]
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "bold red": "1;31"}
_NARROWEST = 8  # a column that wraps gets no narrower, for others' sake
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # of the direction of writing
_NAME, _SHORTEST, _BAR = 24, 10, 40  # places of a bar's name, and of the bar: it gives way to figures


class Styled(NamedTuple):
    """A cell, or a part of a line, that has a style where styles are shown."""

    text: str
    style: Style


@dataclass(frozen=True)
class TextColumn:
    """How a column of a table is laid out. `long`: what happens to cells that find no room; `least` and `most` bound
    the width, where they are not 0."""

    title: str = ""
    right: bool = False
    long: Literal["whole", "wrap", "cut"] = "wrap"
    least: int = 0
    most: int = 0
    style: Style = ""


class TextRow(NamedTuple):
    """A row of a table; `style` is that of all its cells without one of their own."""

    cells: Sequence[str | Styled]
    style: Style = ""


class Terminal:
    """A text stream, and what it can show."""

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        """`width`: of tables where the stream is no terminal, in characters; by default COLUMNS, or 80."""
        self.stream, self._width = stream, width
        self.live = stream.isatty()
        self.styled = self.live and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """Characters in a line."""
        if self._width is not None and not self.live:
            return self._width
        return shutil.get_terminal_size((80, 24)).columns

    def line(self, *parts: str | Styled, style: Style = "") -> None:
        """Writes the parts as one line, however long: the terminal breaks it, and what searches a file does not."""
        self._write([part if isinstance(part, Styled) else Styled(part, style) for part in parts])

    def text(self, text: str, style: Style = "") -> None:
        """Writes a line that is broken between words, on a terminal and where a width was given."""
        for part in (text,) if self._width is None and not self.live else _wrapped(text, self.width):
            self.line(part, style=style)

    def table(
        self,
        columns: Sequence[TextColumn],
        rows: Iterable[TextRow],
        *,
        header: bool = True,
        rule: bool = False,
        gap: int = 2,
    ) -> None:
        """Writes a table, as wide as it needs to be and no wider than a line. `rule`: a rule below the header, an
        empty line before and after, all moved in by a place; `gap`: places between columns."""
        rows, edge = list(rows), " " if rule else ""
        widths = _widths(columns, rows, self.width - len(edge) - gap * (len(columns) - 1), header)
        if rule:
            self.line()
        if header:
            titles = [TextColumn(right=c.right, long="cut" if c.long == "cut" else "wrap") for c in columns]
            self._row(titles, widths, TextRow([column.title for column in columns], "bold"), edge, gap)
        if rule:
            self.line(edge + "─" * (sum(widths) + gap * (len(widths) - 1)))
        for row in rows:
            self._row(columns, widths, row, edge, gap)
        if rule:
            self.line()

    def _row(self, columns: Sequence[TextColumn], widths: Sequence[int], row: TextRow, edge: str, gap: int) -> None:
        """`edge`: what stands before each line."""
        cells = [cell if isinstance(cell, Styled) else Styled(cell, row.style) for cell in row.cells]
        laid = [_laid(cell.text, column, width) for cell, column, width in zip(cells, columns, widths, strict=True)]
        for k in range(max(map(len, laid), default=0)):
            parts, blank = [], edge
            for column, cell, lines, width in zip(columns, cells, laid, widths, strict=True):
                text = lines[k] if k < len(lines) else ""
                rest = " " * (width - wide(text))
                parts += [Styled(blank + rest if column.right else blank, ""), Styled(text, cell.style or column.style)]
                blank = " " * gap + ("" if column.right else rest)
            while parts and not parts[-1].text.strip():
                parts.pop()
            self._write(parts)

    def _write(self, parts: Sequence[Styled]) -> None:
        text = "".join(self._shown(part) for part in parts) + "\n"
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(text.encode(encoding, "replace").decode(encoding))
        self.stream.flush()

    def _shown(self, part: Styled) -> str:
        text = harmless(part.text)
        return f"\x1b[{_CODES[part.style]}m{text}\x1b[0m" if self.styled and part.style and text else text


class Bar:
    """A bar of progress in the last line of a terminal: what is done, of how many, and for how long it has gone on.
    Elsewhere nothing moves, and one line is left at the end where the bar has a name."""

    def __init__(self, terminal: Terminal, name: str = "", total: int | None = None, done: int = 0) -> None:
        """`total`: None while it is not known."""
        self._terminal, self._begin = terminal, time.monotonic()
        self.name, self.note, self.total, self.done = name, "", total, done
        self._lock, self._over = threading.Lock(), threading.Event()
        self._clock: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._terminal.live:
            self._clock = threading.Thread(target=self._run, daemon=True)
            self._clock.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._clock is not None:
            self._clock.join()
            self._draw("\n")
        elif self.name:
            self._terminal.line(self._counted())

    def print(self, text: str) -> None:
        """Writes a line above the bar."""
        with self._lock:
            if self._terminal.live:
                self._terminal.stream.write("\r\x1b[K")
            self._terminal.line(text)
        if self._terminal.live:
            self._draw()

    def _run(self) -> None:
        self._draw()
        while not self._over.wait(0.125):
            self._draw()

    def _draw(self, end: str = "") -> None:
        counted, note = self._counted(named=False), f"  {self.note}" if self.note else ""
        room = self._terminal.width - 1 - _NAME - len(counted) - len(note) - 2
        text = f"{self.name:>{_NAME}} {self._drawn(min(max(room, _SHORTEST), _BAR))} {counted}{note}"
        cut = next(_cut(harmless(text), self._terminal.width - 1))
        with self._lock:
            self._terminal.stream.write(f"\r{cut}\x1b[K{end}")
            self._terminal.stream.flush()

    def _drawn(self, long: int) -> str:
        full = long * self.done // self.total if self.total else 0
        return "━" * full + "─" * (long - full)

    def _counted(self, named: bool = True) -> str:
        spent = time.monotonic() - self._begin
        parts = [self.name] if named and self.name else []
        parts += [f"{self.done}/{'?' if self.total is None else self.total}", _clock(spent)]
        if named is False and self.total and 0 < self.done < self.total:
            parts.append(f"{_clock(spent * (self.total - self.done) / self.done)} left")
        return " ".join(parts)


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


def harmless(text: str) -> str:
    """The text with characters that would drive a terminal, or turn the direction of what follows, spelt as escapes;
    ends of lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    odd = [c not in "\n\t" and (unicodedata.category(c) in ("Cc", "Cs") or c in _TURNS) for c in text]
    return "".join(repr(c)[1:-1] if away else c for c, away in zip(text, odd, strict=True))


def wide(text: str) -> int:
    """The places of a terminal's line that the text takes."""
    return len(text) if text.isascii() else sum(map(_wide, text))


def _wide(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _widths(columns: Sequence[TextColumn], rows: Sequence[TextRow], room: int, header: bool) -> list[int]:
    """Of each column; the widest that may give way does so until all find room. `room`: less gaps."""
    found = []
    for j, column in enumerate(columns):
        texts = [cell.text if isinstance(cell, Styled) else cell for cell in (row.cells[j] for row in rows)]
        texts += [column.title] if header else []
        most = max((wide(line) for text in texts for line in harmless(text).split("\n")), default=0)
        found.append(max(column.least, min(most, column.most or most)))
    over = sum(found) - room
    while over > 0:
        able = [j for j, c in enumerate(columns) if c.long != "whole" and found[j] > (c.least or _NARROWEST)]
        if not able:
            break
        found[max(able, key=found.__getitem__)] -= 1
        over -= 1
    return found


def _laid(text: str, column: TextColumn, width: int) -> list[str]:
    lines = [line.expandtabs() for line in harmless(text).split("\n")]
    if column.long == "whole":
        return lines
    lay = _cut if column.long == "cut" else _wrapped
    return [part for line in lines for part in lay(line, width)]


def _cut(text: str, width: int) -> Iterator[str]:
    if wide(text) <= width:
        yield text
        return
    kept = ""
    for c in text:
        if wide(kept) + _wide(c) >= width:
            break
        kept += c
    yield kept + "…"


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Broken between words, and within one that is longer than a line."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if wide(longer) <= width:
            line = longer
            continue
        if line:
            yield line
        line = word
        while wide(line) > width > 1:
            whole = 0
            while wide(line[: whole + 1]) <= width:
                whole += 1
            yield line[:whole]
            line = line[whole:]
    yield line
