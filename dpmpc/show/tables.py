"""A table as a value, and its forms: text within a width, Markdown, HTML, LaTeX, CSV, Word, a data frame.

What a table says is decided where it is made; here nothing is rounded, dropped or put in another order, so all forms
say the same. A cell is a text of a caller and is escaped by each form.
"""

import csv
import importlib
import io
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.folders import replaced, write_file
from dpmpc.lazy import dataclass
from dpmpc.show import html, markdown
from dpmpc.show.terminal import Terminal, TextColumn, TextRow, harmless

SCREEN = 24  # lines
_INNER = "\u00a0\u00a0"  # before what is moved in, where lines are broken at spaces
_FILES = (".txt", ".md", ".html", ".tex", ".csv", ".docx")
_ROWS = 60  # of a table in a notebook
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$",
}  # fmt: skip


@dataclass(frozen=True, eq=True)
class ShownTable:
    """A head, rows of as many cells, and notes below. `labels`: how many of the first columns are words; the others
    hold numbers and stand right. `inner`: the rows that belong to the one above them, which are moved in."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    labels: int = 1
    notes: tuple[str, ...] = ()
    inner: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        odd = next((row for row in self.rows if len(row) != len(self.head)), None)
        if odd is not None:
            raise ValueError(f"a table's rows have {len(self.head)} cells; one has {len(odd)}")

    def text(self, width: int | None = None) -> str:
        """Aligned columns within so many characters a line, by default the terminal's."""
        into = io.StringIO()
        shown = Terminal(into, terminal_width() if width is None else width)
        columns = [TextColumn(name, right=k >= self.labels) for k, name in enumerate(self.head)]
        if self.caption:
            shown.text(self.caption)
        rows = [TextRow((_INNER + row[0], *row[1:]) if k in self.inner else row) for k, row in enumerate(self.rows)]
        shown.table(columns, rows, header=any(self.head), rule=any(self.head))
        for note in self.notes:
            shown.text(note)
        lines = into.getvalue().replace(_INNER, "  ").split("\n")
        return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"

    def markdown(self) -> str:
        """A table, its caption before and its notes after."""
        rows = ([_one_line(cell) for cell in row] for row in self.rows)
        parts = [self.caption] if self.caption else []
        parts.append(markdown.table(self.head, rows, self.inner).rstrip("\n"))
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def html(self) -> str:
        """A part of a page, which has a style of its own."""
        rows = [
            (f"&nbsp;&nbsp;&nbsp;{escape(row[0])}" if k in self.inner else escape(row[0]), *row[1:])
            for k, row in enumerate(self.rows)
        ]
        made = html.table(self.caption, self.head, rows, labels=self.labels, raw=(0,))
        return made + html.lines(self.notes, "dim")

    def csv(self) -> str:
        """The head and the rows; notes are left out."""
        into = io.StringIO()
        csv.writer(into, lineterminator="\n").writerows([self.head, *self.rows])
        return into.getvalue()

    def latex(self) -> str:
        """A `table` with rules of the package booktabs, and its notes below."""
        align = "l" * self.labels + "r" * (len(self.head) - self.labels)
        lines = [
            ("\\quad " if k in self.inner else "") + " & ".join(map(_latex, row)) + r" \\"
            for k, row in enumerate(self.rows)
        ]
        notes = [rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {_latex(note)}}}" for note in self.notes]
        return "\n".join([
            r"\begin{table}", r"\centering", *([rf"\caption{{{_latex(self.caption)}}}"] if self.caption else []),
            rf"\begin{{tabular}}{{{align}}}", r"\toprule", " & ".join(map(_latex, self.head)) + r" \\", r"\midrule",
            *lines, r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}", "",
        ])  # fmt: skip

    def docx(self, path: Path | str) -> Path:
        """Writes a document of Word with the table; its path. Errors: UsageError where python-docx is not installed."""
        docx, align = _word()
        made: Any = docx.Document()
        if self.caption:
            made.add_paragraph(_xml(self.caption)).runs[0].bold = True
        grid = made.add_table(1 + len(self.rows), len(self.head))
        grid.style = "Light List"
        for k, row in enumerate([self.head, *self.rows]):
            for j, text in enumerate(row):
                paragraph = grid.cell(k, j).paragraphs[0]
                paragraph.add_run(("\u2003" if j == 0 and k - 1 in self.inner else "") + _xml(text)).bold = k == 0
                if j >= self.labels:
                    paragraph.alignment = align.WD_ALIGN_PARAGRAPH.RIGHT
        for note in self.notes:
            made.add_paragraph(_xml(note))
        with replaced(Path(path)) as beside, beside.open("wb") as file:
            made.save(file)
        return Path(path)

    def frame(self) -> Any:
        """A pandas data frame of the cells, as texts. Errors: pandas is not installed."""
        return pandas().DataFrame([list(row) for row in self.rows], columns=list(self.head))

    def write(self, path: Path | str) -> Path:
        """Writes the table in the form that the file's name ends in; its path. Errors: UsageError for another."""
        path = Path(path)
        check_file(path)
        if path.suffix == ".docx":
            return self.docx(path)
        forms: dict[str, Callable[[], str]] = {
            ".txt": lambda: self.text(120), ".md": self.markdown, ".tex": self.latex, ".csv": self.csv,
            ".html": lambda: html.page(self.caption or "Table", self.html()),
        }  # fmt: skip
        write_file(path, forms[path.suffix]())
        return path

    def __str__(self) -> str:
        return self.text().rstrip("\n")

    def __repr__(self) -> str:
        return screen(self.text(), "print() it for all")

    def _repr_html_(self) -> str:
        return html.part(self.short().html())

    def short(self, rows: int = _ROWS) -> "ShownTable":
        """The first rows, and a note how many there are."""
        if len(self.rows) <= rows:
            return self
        more = f"{len(self.rows) - rows:,} more rows"
        return ShownTable(self.head, self.rows[:rows], self.caption, self.labels, (more, *self.notes), self.inner)


def check_file(path: Path) -> None:
    """Errors: UsageError for a file that no table can be written to, to be had before anything is spent."""
    if path.suffix not in _FILES:
        raise UsageError(
            f"a table's file ends in one of {', '.join(_FILES)}; got {path.name!r}; name such a one", code="choice"
        )
    if path.suffix == ".docx":
        _word()


def _word() -> tuple[Any, Any]:
    """python-docx. Errors: UsageError where it is not installed."""
    try:
        return importlib.import_module("docx"), importlib.import_module("docx.enum.text")
    except ImportError:
        raise UsageError("a file of Word needs python-docx; it is not installed; pip install python-docx") from None


def of_columns(columns: Mapping[str, Any], most: int, **more: Any) -> ShownTable:
    """A table of the first `most` values of each column."""
    n = len(next(iter(columns.values()), ()))
    rows = tuple(tuple(_cell(values[k]) for values in columns.values()) for k in range(min(n, most)))
    notes = (f"{n - most:,} more rows",) if n > most else ()
    return ShownTable(tuple(columns), rows, labels=0, notes=notes, **more)


def _cell(value: Any) -> str:
    return "" if value is None or value != value else f"{value:.6g}" if isinstance(value, float) else str(value)


def screen(text: str, way: str) -> str:
    """The text, or as much as fills a screen and the way to the rest."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= SCREEN:
        return "\n".join(lines)
    return "\n".join([*lines[: SCREEN - 1], f"... {len(lines) - SCREEN + 1} more lines; {way}"])


def terminal_width() -> int:
    """Characters in a line of the terminal: what COLUMNS says, or 80."""
    import shutil

    return max(40, shutil.get_terminal_size((80, 24)).columns)


def pandas() -> Any:
    """The package. Errors: UsageError where it is not installed."""
    try:
        import pandas
    except ImportError:
        raise UsageError("a data frame needs pandas; it is not installed; pip install pandas") from None
    return pandas


def _one_line(text: str) -> str:
    return " ".join(text.split("\n"))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in harmless(_one_line(text)))


def _xml(text: str) -> str:
    """The text without characters that XML has none of."""
    return re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", harmless(text))
