"""Figures in prose, from result files.

    python -m website.figures            says which are out of date
    python -m website.figures --write    writes them

A figure stands between two comments, which readers do not see. The first says where it comes from:

    <!--= docs/one-copy.csv noise=one owners=1000 : error .1f -->16.7<!--=-->

A CSV file, the row by the values of its columns, the column; or a JSON file and the keys that lead to a number. The
last word is how it is written, as Python formats numbers; `s` is a text as it stands.

A table, or a line on a machine, is a part of `website.measured`, from result files of `dpmpc bench`:

    <!--# targets benchmarks/results/full.json -->
    ...
    <!--#-->
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PART = re.compile(r"(<!--# (\S+) (\S+(?: \S+)*) -->\n).*?(<!--#-->)", re.DOTALL)
_FIGURE = re.compile(r"<!--= (\S+) ([^:>]*): (\S+) (\S+) -->(.*?)<!--=-->", re.DOTALL)


def value(root: Path, name: str, where: str, column: str, form: str) -> str:
    """The figure as it is written. Errors: KeyError where the file has no such row, or several."""
    path = root / name
    if path.suffix == ".json":
        found = json.loads(path.read_text(encoding="utf-8"))
        for key in [*where.split(), column]:
            found = found[int(key)] if isinstance(found, list) else found[key]
        return format(found, form)
    wanted = dict(part.split("=", 1) for part in where.split())
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[key] == wanted[key] for key in wanted)]
    if len(rows) != 1:
        raise KeyError(f"{name}: {len(rows)} rows with {where}")
    return rows[0][column] if form == "s" else format(float(rows[0][column]), form)


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
