"""Figures in prose, from result files.

    python -m website.figures            says which are out of date
    python -m website.figures --write    writes them

A figure stands between two comments, which readers do not see. The first says where it comes from:

    <!--= docs/one-copy.csv noise=one owners=1000 : error .1f -->16.7<!--=-->

A CSV file, the row by the values of its columns, the column; or a JSON file and the keys that lead to a number. The
last word is how it is written, as Python formats numbers; `s` is a text as it stands, and `.3f-` writes .375 for 0.375.

Of several rows there is `mean(error)`, `min(error)`, `max(error)` or `count(error)`; `given/releases` divides two
columns. A value with spaces is quoted, `set=iris|wine` takes both, and what follows `less` is taken off:

    method=ours seed=1 less method="one copy" : mean(error) .1f

After `over` it is what is divided by, and `below` says by how many percent it is less. With `by=seed`
the rows of one seed are one, their mean; of two methods only seeds that both have are compared. A file whose lines are
a name and its numbers has a row for each number, of columns `line` and `number`; of a name with `|` in it, a part
between `*` does: `line=*survey*`.

A table, or a line on a machine, is a part of `website.measured`, from result files of `dpmpc bench`:

    <!--# targets benchmarks/results/full.json -->
    ...
    <!--#-->
"""

import csv
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[1]
_PART = re.compile(r"(<!--# (\S+) (\S+(?: \S+)*) -->\n).*?(<!--#-->)", re.DOTALL)
_FIGURE = re.compile(r"<!--= (\S+) ([^>]*?): (\S+) (\S+) -->(.*?)<!--=-->", re.DOTALL)


_SIDES: Mapping[str, Callable[[float, float], float]] = {
    "less": lambda one, other: one - other,
    "over": lambda one, other: one / other,
    "below": lambda one, other: 100 * (1 - one / other),
}
_OF: Mapping[str, Callable[[list[float]], float]] = {"mean": fmean, "min": min, "max": max, "count": len}
_Row = dict[str, str]


@lru_cache(maxsize=2)  # the next figure is most often of the same file
def _table(path: Path, changed: int, lines: bool = False) -> list[_Row]:
    """`lines`: of a file without a header, whose lines are a name and its numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        if lines:
            return [{"line": line[0], "number": each} for line in csv.reader(file) for each in line[1:]]
        return list(csv.DictReader(file))


def _chosen(rows: list[_Row], wanted: _Row) -> list[_Row]:
    return [row for row in rows if all(_meant(row[key], values) for key, values in wanted.items())]


def _meant(value: str, wanted: str) -> bool:
    if len(wanted) > 2 and wanted[0] == wanted[-1] == "*":
        return all(part in value for part in wanted.strip("*").split("*"))
    return value == wanted or value in wanted.split("|")


def _number(row: _Row, column: str) -> float:
    above, _, below = column.partition("/")
    return float(row[above]) / (float(row[below]) if below else 1.0)


def _groups(rows: list[_Row], by: list[str], column: str) -> dict[tuple[str, ...], float]:
    """The mean of the column by what these columns say; without them a row each."""
    found: dict[tuple[str, ...], list[float]] = {}
    for at, row in enumerate(rows):
        found.setdefault(tuple(row[key] for key in by) if by else (str(at),), []).append(_number(row, column))
    return {key: fmean(numbers) for key, numbers in found.items()}


def _found(rows: list[_Row], where: str, column: str) -> float:
    """One number of these rows.

    Errors: KeyError where there is no such row, or several and nothing says what of them is meant."""
    one, how, other = ([*re.split(r" (less|over|below) ", where, maxsplit=1), "less", ""])[:3]
    first = dict(part.split("=", 1) for part in shlex.split(one))
    by = [key for key in first.pop("by", "").split(",") if key]
    sides = [first] + ([{**first, **dict(part.split("=", 1) for part in shlex.split(other))}] if other else [])
    named = re.fullmatch(r"(\w+)\((.+)\)", column)
    of = _OF[named[1]] if named else None
    found = [_groups(_chosen(rows, side), by, named[2] if named else column) for side in sides]
    if by and other:
        both = found[0].keys() & found[1].keys()
        found = [{key: _SIDES[how](found[0][key], found[1][key]) for key in both}]
    for numbers in found:
        if not numbers or (of is None and len(numbers) != 1):
            raise KeyError(f"{len(numbers)} rows with {where}")
    said = [(of or min)(list(each.values())) for each in found]
    return _SIDES[how](*said) if len(said) > 1 else said[0]


def value(root: Path, name: str, where: str, column: str, form: str) -> str:
    """The figure as it is written. Errors: KeyError where the file has no such row, or several."""
    path = root / name
    bare, form = form.endswith("-"), form.removesuffix("-")
    number: float | str
    if path.suffix == ".json":
        found = json.loads(path.read_text(encoding="utf-8"))
        for key in [*shlex.split(where), column]:
            found = found[int(key)] if isinstance(found, list) else found[key]
        number = found
    else:
        rows = _table(path, path.stat().st_mtime_ns, "line=" in where)
        try:
            if form == "s":
                (row,) = _chosen(rows, dict(part.split("=", 1) for part in shlex.split(where)))
                return row[column]
            number = _found(rows, where, column)
        except (KeyError, ValueError) as e:
            raise KeyError(f"{name}: {e.args[0]}") from e
    said = format(number, form)
    return re.sub(r"^([+-]?)0\.", r"\1.", said) if bare else said


def renewed(text: str, root: Path = ROOT) -> str:
    """The text with today's figures."""

    def new(found: re.Match[str]) -> str:
        return found[0][: found.start(5) - found.start()] + value(root, *found.group(1, 2, 3, 4)) + "<!--=-->"

    def part(found: re.Match[str]) -> str:
        from website import measured  # which imports the library

        said = measured.part(found[2], [root / name for name in found[3].split()])
        return f"{found[1]}\n{said}\n\n{found[4]}"

    return _FIGURE.sub(new, _PART.sub(part, text))


def texts(root: Path = ROOT) -> list[Path]:
    """The texts that may have figures."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def stale(write: bool = False, root: Path = ROOT) -> Iterator[str]:
    """The texts whose figures are out of date; with `write`, they are written."""
    for path in texts(root):
        text = path.read_text(encoding="utf-8")
        new = renewed(text, root)
        if new != text:
            yield path.relative_to(root).as_posix()
            if write:
                path.write_text(new, encoding="utf-8")


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> int:
    """The command. Returns 1 where something was out of date and was not written."""
    write = "--write" in arguments
    found = list(stale(write))
    for name in found:
        say(f"{name}: {'written' if write else 'out of date'}")
    return int(bool(found) and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
