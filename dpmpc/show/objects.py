"""Objects that show themselves: in a terminal, in a notebook, as tables, as a data frame, as pictures.

An object says what there is to see of it as a value, a `Sheet`; how it is seen is said here, once. In a terminal an
object is a screen, in a notebook a part of a page with its tables and pictures. What a sheet has is public: an object
that holds something else leaves it out of its sheet.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpc.errors import DpmpcError, UsageError, public_text
from dpmpc.lazy import dataclass

if TYPE_CHECKING:  # a party imports plans, and shows nothing
    from dpmpc.outcome import Shape
    from dpmpc.show.tables import ShownTable

Fact = tuple[str, str]  # what, value
_FIGURES = (".pdf", ".png", ".svg", ".eps", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Sheet:
    """What there is to see of an object. `facts`: of the whole; `tables`: the first is its own; `shapes`: pictures, as
    values; `columns`: of its data frame, each of one length, where that is not its first table; `notes`: what is to be
    known with all of it; `way`: where the rest of a long one is."""

    title: str
    facts: tuple[Fact, ...] = ()
    tables: "tuple[ShownTable, ...]" = ()
    shapes: "Callable[[], Sequence[Shape]]" = tuple
    columns: Callable[[], Mapping[str, Any]] | None = None
    notes: tuple[str, ...] = ()
    way: str = "print(.table()) has all"
    parts: tuple[str, ...] = ()  # HTML that stands between tables and pictures

    def own(self) -> "tuple[ShownTable, ...]":
        """Its tables; where it has none, its facts as one."""
        from dpmpc.show.tables import ShownTable

        return self.tables or (ShownTable(("", self.title), self.facts, labels=2),)


class Shown:
    """What an object with a `sheet` shows of itself."""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]  # a data class would get one of all fields

    def sheet(self) -> Sheet:
        """What there is to see."""
        raise NotImplementedError

    def table(self, which: int = 0) -> "ShownTable":
        """One of its tables, which prints itself and has `markdown()`, `html()`, `latex()`, `frame()` and
        `write(PATH)`. Errors: UsageError for one that it does not have."""
        tables = self.sheet().own()
        if not 0 <= which < len(tables):
            raise UsageError(f"tables are numbered from 0; there are {len(tables)}; got {which}; choose one of them")
        return tables[which]

    def frame(self) -> Any:
        """A pandas data frame of its numbers. Errors: UsageError where pandas is not installed."""
        from dpmpc.show.tables import pandas

        sheet = self.sheet()
        if sheet.columns is None:
            return sheet.own()[0].frame()
        return pandas().DataFrame(dict(sheet.columns()))

    def plot(self, path: Path | str | None = None, *, ax: Any = None) -> Any:
        """Matplotlib's axes with its picture (an array of them for several), to be restyled and saved; `ax`: the axes
        to draw the only picture on. With a path: writes a page with the pictures, or, where the path ends in .pdf,
        .png or .svg, Matplotlib's; the path. Errors: UsageError where there is no picture, or no Matplotlib."""
        from dpmpc.show.axes import drawn, saved

        if path is None:
            return drawn(self._shapes(), ax)
        if Path(path).suffix.lower() in _FIGURES:
            return saved(self._shapes(), Path(path))
        return self._page(Path(path))

    def _shapes(self) -> "Sequence[Shape]":
        sheet = self.sheet()
        shapes = [shape for shape in sheet.shapes() if shape.lines]
        if not shapes:
            raise UsageError(f"a picture needs numbers; {sheet.title} has none to draw; use its table", code="missing")
        return shapes

    def _page(self, path: Path) -> Path:
        from dpmpc.folders import write_file
        from dpmpc.show import html
        from dpmpc.show.svg import picture

        title = self.sheet().title
        pictures = "".join(html.scrolling(picture(shape)) for shape in self._shapes())
        write_file(path, html.page(title, pictures))
        return path

    def __repr__(self) -> str:
        """As much as fills a screen. Of an object that cannot be shown: why."""
        from dpmpc.show.tables import screen

        try:
            sheet = self.sheet()
            return screen(as_text(sheet), sheet.way)
        except DpmpcError as error:
            return f"<{type(self).__name__}: {public_text(error)}>"

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None, by which it shows the text, of an object that cannot be shown."""
        try:
            return as_html(self.sheet())
        except DpmpcError:
            return None


def as_text(sheet: Sheet, width: int | None = None) -> str:
    """All of a sheet for a terminal but its pictures."""
    from dpmpc.show.tables import ShownTable

    parts = [sheet.title]
    if sheet.facts:
        parts.append(ShownTable(("", ""), sheet.facts, labels=2).text(width).rstrip("\n"))
    parts += [table.text(width).rstrip("\n") for table in sheet.tables]
    return "\n".join([*parts, *sheet.notes])


def as_html(sheet: Sheet) -> str:
    """All of a sheet for a notebook."""
    from dpmpc.show import html
    from dpmpc.show.svg import picture

    parts = [html.lines([sheet.title], "name")]
    if sheet.facts:
        parts.append(html.facts("", sheet.facts))
    parts += [table.short().html() for table in sheet.tables]
    parts += sheet.parts
    parts += [html.scrolling(picture(shape)) for shape in sheet.shapes() if shape.lines]
    return html.part("".join([*parts, html.lines(sheet.notes, "dim")]))


class Report(dict[str, Any], Shown):
    """A report: JSON values by name, as `report.json` has them, which show themselves by section."""

    def sheet(self) -> Sheet:
        """Its plain values, and a table a section."""
        from dpmpc.show.tables import ShownTable

        plain = tuple((name, _said(value)) for name, value in self.items() if not isinstance(value, dict) or not value)
        sections = tuple(
            ShownTable((name, ""), tuple((key, _said(each)) for key, each in value.items()), labels=2)
            for name, value in self.items()
            if isinstance(value, dict) and value
        )
        title = "Report" + (f" of run {self['run']}" if "run" in self else "")
        return Sheet(title, plain, sections, columns=self._columns, way="it is a dictionary; json.dumps() has all")

    def _columns(self) -> Mapping[str, Any]:
        found = dict(_leaves(self))
        return {"name": list(found), "value": list(found.values())}


def _leaves(value: Any, name: str = "") -> Any:
    """(dotted name, value) of everything in nested dictionaries that is none."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, each in value.items():
        yield from _leaves(each, f"{name}.{key}" if name else str(key))


def _said(value: Any) -> str:
    """A JSON value in a line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_said(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value))
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
