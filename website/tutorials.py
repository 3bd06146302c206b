"""Pages that run: their blocks, what the blocks print, and the notebooks that are made of them.

    python -m website.tutorials            runs every page, each in an empty folder
    python -m website.tutorials --write    and puts what was printed below each block
    python -m website.tutorials NAME ...   these pages alone, such as start/mean or synth
    python website/tutorials.py --installed NAME ...    these, with the dpmpc of this interpreter and not the tree's
    python -m website.tutorials --notebooks    writes examples/notebooks: those of Start

A block is a fence of `sh` or `python`. A fence `text output` below it shows what it prints; noise is new in each
run, so the figures shown are those of one run. What is shown is held by its shape: lines without their figures. Where
fewer than half of the lines shown have one of today's shapes, the page is out of date, which is said and fails.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
NOTEBOOKS = ROOT / "examples" / "notebooks"
_END = "-- end of block --"
_SKIPPED = ("no-run", "output")
# These need addresses, several folders at once, or names that stand in the words: tests of their own run them.
BY_THE_SUITE = {
    "consortium": "tests/test_consortium_page.py",
    "hospitals": "tests/test_hospitals_page.py",
    "python": "tests/test_api.py",
}
LEAST = 0.5  # of the lines that are shown
_LONG = 40  # lines; of more the middle is left out


@dataclass(frozen=True)
class Block:
    """A block that runs, and where in the page's text the output below it stands, if anywhere."""

    language: str
    text: str
    output: tuple[int, int] | None


def pages() -> list[Path]:
    """The pages that run: those under docs/ of which a block does, and the README; not those that the suite runs."""
    found = (*sorted(DOCS.rglob("*.md")), ROOT / "README.md")
    return [path for path in found if _name(path) not in BY_THE_SUITE and blocks(path.read_text(encoding="utf-8"))]


def blocks(text: str) -> list[Block]:
    """The blocks of a page that run, in order."""
    found: list[Block] = []
    for fence in _FENCE.finditer(text):
        language, mark = fence[1], fence[2].strip()
        if language == "text" and mark == "output" and found:
            found[-1] = Block(found[-1].language, found[-1].text, fence.span(3))
        elif language in ("sh", "python") and mark not in _SKIPPED:
            found.append(Block(language, fence[3], None))
    return found


def run(found: Sequence[Block], folder: Path, timeout: float = 300.0, installed: bool = False) -> list[str]:
    """What each block prints, run in order in a folder. Shell blocks are scripts of their own; Python blocks are one
    program, which shell blocks may stand between. Errors: CalledProcessError with what was printed."""
    env = environment(folder, installed)
    printed: list[str] = []
    program: list[str] = []
    for block in found:
        if block.language == "sh":
            printed.append(_done(["sh", "-eu"], block.text, folder, env, timeout))
            continue
        program.append(block.text)  # all before it is run again, so that blocks between may change files
        text = f"\nprint({_END!r}, flush=True)\n".join(program)
        said = _done([sys.executable, "-W", "ignore", "-"], text, folder, env, timeout)
        printed.append(said.rpartition(_END + "\n")[2])
    return printed


def _done(command: Sequence[str], text: str, folder: Path, environment: dict[str, str], timeout: float) -> str:
    done = subprocess.run(
        command, input=text, cwd=folder, env=environment, text=True, timeout=timeout, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, text, done.stdout)
    return done.stdout


def environment(folder: Path, installed: bool = False) -> dict[str, str]:
    """An environment in which `dpmpc` is this tree's, or what is installed for this interpreter."""
    commands = folder / ".bin"
    commands.mkdir(exist_ok=True)
    (commands / "dpmpc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpmpc "$@"\n')
    (commands / "dpmpc").chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": "" if installed else str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "100",
        "DPMPC_ACCOUNT": str(folder / ".account"),  # a page spends nothing of whoever runs it
    }


# -- what was printed --------------------------------------------------------------------------------------------------
def shown(text: str, folder: Path) -> str:
    """The output as a page shows it: no progress lines, no local paths, the middle of much left out."""
    lines = [line.rstrip() for line in text.replace(str(folder), "…").splitlines()]
    lines = [line for line in lines if not re.match(r"iteration \d+/\d+ ", line)]
    if len(lines) > _LONG:
        lines = [*lines[: _LONG // 2], "...", *lines[-_LONG // 2 :]]
    return "\n".join(lines) + "\n"


def filled(text: str, found: Sequence[Block], printed: Sequence[str], folder: Path) -> str:
    """The page with today's outputs."""
    for block, said in reversed(list(zip(found, printed, strict=True))):
        if block.output is not None:
            text = text[: block.output[0]] + shown(said, folder) + text[block.output[1] :]
    return text


def shape(line: str) -> str:
    """A line without its figures, digests and widths."""
    return re.sub(r"[-─ ]+", " ", re.sub(r"[0-9a-f]{12,}|\d[\d,.e]*", "#", line)).strip()


def stale(text: str, found: Sequence[Block], printed: Sequence[str], folder: Path) -> list[str]:
    """The outputs of a page of which most lines have no shape of today's."""
    old = []
    for block, said in zip(found, printed, strict=True):
        if block.output is not None:
            today = {shape(line) for line in shown(said, folder).splitlines()} | {shape(x) for x in said.splitlines()}
            lines = [shape(line) for line in text[slice(*block.output)].splitlines() if shape(line)]
            if sum(line in today for line in lines) < LEAST * len(lines):
                old.append(block.text)
    return old


# -- notebooks ---------------------------------------------------------------------------------------------------------
def notebook(text: str) -> dict[str, Any]:
    """The page as a notebook of format 4.5: words and blocks in order, outputs left out. Shell blocks are `%%sh`
    cells."""
    cells: list[dict[str, Any]] = []
    at = 0

    def add(kind: str, source: str) -> None:
        if source.strip():
            cell = {
                "id": f"cell{len(cells)}",
                "cell_type": kind,
                "metadata": {},
                "source": source.strip("\n").splitlines(True),
            }
            cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))

    for fence in _FENCE.finditer(text):
        language, mark = fence[1], fence[2].strip()
        runs = language in ("sh", "python") and mark not in _SKIPPED
        if runs or mark == "output":
            add("markdown", text[at : fence.start()])
            at = fence.end()
        if runs:
            add("code", f"%%sh\n{fence[3]}" if language == "sh" else fence[3])
    add("markdown", text[at:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def written(text: str) -> str:
    """The notebook as a file."""
    return json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n"


def of_start() -> dict[Path, str]:
    """The notebooks of the pages of Start, as files in examples/notebooks, whose links lead to the pages."""
    found = {}
    for path in sorted((DOCS / "start").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if blocks(text):
            found[NOTEBOOKS / f"{path.stem}.ipynb"] = written(_LINK.sub(partial(_led, path), text))
    return found


def _led(page: Path, link: re.Match[str]) -> str:
    """A link of the page, from the folder of the notebooks; of a page that only the site has, its words."""
    words, to = link.groups()
    if "://" in to or to.startswith("#"):
        return link[0]
    target, mark, anchor = to.partition("#")
    if not (page.parent / target).exists():
        return words
    return f"[{words}]({os.path.relpath(page.parent / target, NOTEBOOKS)}{mark}{anchor})"


def _name(path: Path) -> str:
    return path.relative_to(DOCS if DOCS in path.parents else ROOT).with_suffix("").as_posix()


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> int:
    """The command."""
    if "--notebooks" in arguments:
        NOTEBOOKS.mkdir(exist_ok=True)
        for path, text in of_start().items():
            path.write_text(text, encoding="utf-8")
            say(str(path.relative_to(ROOT)))
        return 0
    names = [name for name in arguments if not name.startswith("--")]
    for path in pages():
        if names and _name(path) not in names:
            continue
        text = path.read_text(encoding="utf-8")
        found = blocks(text)
        with tempfile.TemporaryDirectory() as name:
            try:
                printed = run(found, Path(name), installed="--installed" in arguments)
            except subprocess.CalledProcessError as error:
                say(f"{path.name}: exit code {error.returncode} of\n{error.cmd}\n{error.output}")
                return 1
            if "--write" in arguments:
                path.write_text(filled(text, found, printed, Path(name)), encoding="utf-8")
            elif old := stale(text, found, printed, Path(name)):
                say(f"{path.name}: what is shown is not what is printed any more below\n{old[0]}")
                return 1
        say(f"{_name(path)}: {len(found)} blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
