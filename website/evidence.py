"""Evidence as it is written: every command that README and docs name, run at the size that they name.

    python -m website.evidence                what there is to run, and what came of it on this commit
    python -m website.evidence --run [TEXT]   runs what has no good result on this commit; only parts that contain TEXT
                         --minutes 5           ends a part that takes longer, which leaves no result; quick ones first
    python -m website.evidence --check        fails where a part has none, or a figure is out of its range
    python -m website.evidence --publish      the table of docs/evidence/run.md

A part is a page whose blocks run (`tutorials`), or a command line in the words or in a block that is not run with the
page. Parts are found in the pages, so that a new sentence is a new part; a command that is no evidence has a reason in
`NO_EVIDENCE`, and one that is neither ends this program. Each result is a file of its own, stamped with commit, machine
and time, so a run of hours can be stopped and gone on with. Results are of one commit: another one begins anew. The
table shows what a part did last on an earlier commit beside it, which counts for nothing in a check.

Parts that have Flower in them need the extra `flower`: `pip install '.[flower]'`.

A figure that a page states of a command's output has its range beside it, in a comment that readers do not see:

    <!-- range: dpmpc verify --fresh | statistics +holds +(\\d+) of | 100..200 -->

which is the command as it is named, an expression whose group is the figure, and where the figure may lie.

A figure is a number with a unit of time, size or speed, a ratio, or a number in a row of a table that has two. Every
one has somebody to answer for it (`unfounded`): a result file that a command writes it from (`figures`), or in its
section a date, a commit, a file of results or a command; or, where it is computed, the files that hold or compute it:

    <!-- figures: tests/mpc/test_counted_pages.py -->
"""

import argparse
import contextlib
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from website.tutorials import BY_THE_SUITE, DOCS, ROOT, blocks, pages, run

RESULTS = ROOT / "build" / "evidence"
PAGE = DOCS / "evidence" / "run.md"
STAMP = "stamp.json"  # in the folder of a part, whose own name may end as any file's does
_HOURS = 12.0  # a part may take
_DECLARED = ("docs/settings.md",)  # pages that a command writes whole, from declarations
# Programs whose output is evidence, as they are named in words.
EVIDENCE = (
    "dpmpc verify --fresh", "dpmpc bench", "dpmpc experiment", "python -m tests.", "python -m dpmpc.benchmarks",
    "python benchmarks/", "python studies/", "python tests/", "python examples/", "make demo",
)  # fmt: skip
# What is named and is no evidence, by how it begins or what it holds, and why.
NO_EVIDENCE = {
    "pip install": "installs",
    "git push": "publishes",
    "make ": "builds, checks or runs the suite; a release does these by themselves",
    ".ci/wheel": "a release does this by itself",
    "python -m website.": "writes pages of results that are there",
    "python -m dpmpc.cli.surfaces": "writes sources",
    "python -m compileall": "is Python's own",
    "python -m dpmpc": "is named as a way to start",
    "python -c": "is named as a measure of another program",
    "dpmpc bench compare": "compares files of a reader's own",
    "dpmpc bench plot": "draws a file that another part writes",
    "dpmpc experiment NAME": "stands for any of them",
    "dpmpc ": "is a command of a run, which the pages that run have in their blocks",
}
_NEEDS = {  # in a command: what only a reader has
    "COMMIT": "a commit to compare with",
    "CHECKOUT": "a second checkout",
    "FILE": "a file of records",
    "--spu": "environments with other libraries",
    "tcp://": "a cluster that is running",
}
_BARE = ("dpmpc bench", "dpmpc experiment")
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RANGE = re.compile(r"<!-- range: (.+?) \| (.+) \| (\S+)\.\.(\S+) -->")
_WRITTEN = re.compile(r"<!--# .*?<!--#-->|<!--= .*?<!--=-->", re.DOTALL)
_HELD = re.compile(r"<!-- figures: (\S+(?: \S+)*) -->")
_MEASURED = re.compile(
    r"(?<![\w.,:-])(?:\d[\d,]*(?:\.\d+)?|\.\d+) ?"
    r"(?:ns|µs|ms|s|minutes|hours|kB|MB|GB|TB|MB/s|Mb/s|times (?:as|the))(?![\w/])"
)
_CELL = re.compile(r"[-+~*]*(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?: ?(?:%|[a-zµA-Z/]+))?\**")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_FOUNDED = re.compile(
    rf"\b\d{{4}}-\d\d-\d\d\b|\b(?:{_MONTHS}) 20\d\d\b"  # a date
    r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,12}\b"  # a commit
    r"|[\w/-]+\.(?:csv|json)\b"  # a file of results
    r"|`(?:dpmpc (?:bench|experiment|verify|example)|python (?:-m|tests/|benchmarks/|examples/)|make )[^`]*`"
    r"|^```(?:sh|python)",  # what it prints
    re.MULTILINE,
)


@dataclass(frozen=True)
class Part:
    """Something to run: a page (its path) or a command line; the pages that name it."""

    name: str
    named: tuple[str, ...]
    page: str = ""

    @property
    def file(self) -> str:
        """The name of its result's file."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-")[:120]


@dataclass(frozen=True)
class Range:
    """A figure of a command's output, and where it may lie."""

    command: str
    pattern: str
    low: float
    high: float
    page: str


@dataclass(frozen=True)
class Result:
    """What came of a part: its code (0 is good), the problems with stated figures, and where and when it ran."""

    part: str
    commit: str
    code: int
    problems: tuple[str, ...]
    seconds: float
    began: str
    machine: str
    load: str

    @property
    def good(self) -> bool:
        """Whether it ran, and its figures are where they are said to be."""
        return self.code == 0 and not self.problems


def texts() -> Iterator[tuple[str, str]]:
    """(name, text) of README and every page."""
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        if path != PAGE:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def named(text: str) -> Iterator[str]:
    """The command lines that a page names outside of the blocks that run with it."""
    for fence in _FENCE.finditer(text):
        if fence[1] == "sh" and fence[2].strip() == "no-run":
            for line in re.sub(r"\\\n\s*", " ", fence[3]).splitlines():
                if (command := line.split("  #")[0].strip()) and not command.startswith("#"):
                    yield command
    for code in re.findall(r"`([^`\n]+)`", _FENCE.sub("", text)):
        if re.match(r"(dpmpc [a-z]|python -m |python [a-z]+/|python -c |make [a-z])", code.strip()):
            yield code.strip()


def reason(command: str) -> str | None:
    """Why this command is no evidence; None where it is. Errors: SystemExit for one that is neither."""
    needs = next((f"needs {why}" for mark, why in _NEEDS.items() if mark in command), None)
    if command.startswith(EVIDENCE) and not command.startswith(("dpmpc bench compare", "dpmpc bench plot")):
        bare = "is named without what it is to do" if command in _BARE or command.endswith(" NAME") else None
        return needs or bare
    for start, why in NO_EVIDENCE.items():
        if command.startswith(start):
            return why
    raise SystemExit(f"a command is evidence or has a reason; {command!r} is neither; add it to website/evidence.py")


def parts() -> list[Part]:
    """Everything there is to run, in the order of the pages."""
    found: dict[str, list[str]] = {}
    for name, text in texts():
        for command in named(text):
            if reason(command) is None:
                found.setdefault(command, []).append(name)
    made = [Part(f"page {_page(path)}", (_page(path),), _page(path)) for path in pages()]
    made += [Part(f"python -m pytest -q {test}", (f"docs/{page}.md",)) for page, test in sorted(BY_THE_SUITE.items())]
    return [*made, *(Part(command, tuple(dict.fromkeys(names))) for command, names in found.items())]


def ranges() -> list[Range]:
    """The figures with a range. Errors: SystemExit for one of a command that no page names."""
    known = {part.name for part in parts()}
    found = [Range(m[1], m[2], float(m[3]), float(m[4]), name) for name, text in texts() for m in _RANGE.finditer(text)]
    for each in found:
        if each.command not in known:
            raise SystemExit(f"a range is of a command that is run; {each.page} has one of {each.command!r}; mend it")
    return found


def figures(section: str) -> list[str]:
    """The figures of a section that no command writes, as they stand."""
    plain = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", _WRITTEN.sub("", section)))
    found = [each.group() for each in _MEASURED.finditer(plain)]
    for row in re.findall(r"^\|(.*)\|$", plain, re.MULTILINE):
        numbers = [cell.strip() for cell in row.split("|") if _CELL.fullmatch(cell.strip())]
        found += numbers if len(numbers) > 1 else []
    return found


def unfounded(text: str, root: Path = ROOT) -> Iterator[str]:
    """The sections of a page that have figures for which nobody answers, a line each; and the files that should answer
    and are not there."""
    for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        held = [name for names in _HELD.findall(section) for name in names.split()]
        name, found = section.partition("\n")[0].strip("# "), figures(section)
        if lost := [each for each in held if not (root / each).is_file()]:
            yield f"{name}: no file {', '.join(lost)}"
        elif found and not held and not _FOUNDED.search(_WRITTEN.sub("", section)):
            yield f"{name}: {len(found)} figures of nobody's: {', '.join(found[:6])}"


def nobodys() -> list[str]:
    """As `unfounded`, of all pages."""
    return [f"{page}, {line}" for page, text in texts() if page not in _DECLARED for line in unfounded(text)]


def problems(part: Part, output: str, stated: Sequence[Range]) -> tuple[str, ...]:
    """The figures of this output that are not where the pages say."""
    found = []
    for each in stated:
        if each.command == part.name:
            match = re.search(each.pattern, output)
            if match is None:
                found.append(f"{each.page}: nothing matches {each.pattern!r}")
            elif not each.low <= float(match[1].replace(",", "")) <= each.high:
                found.append(f"{each.page}: {match[1]} is not in {each.low:g}..{each.high:g} ({each.pattern})")
    return tuple(found)


def done(part: Part, stated: Sequence[Range], commit: str, hours: float = _HOURS) -> Result:
    """Runs a part in a folder of its own below RESULTS, and writes its output and its result there.

    Errors: subprocess.TimeoutExpired, with no result written, where it takes longer; its processes are ended."""
    folder = RESULTS / commit / part.file
    folder.mkdir(parents=True, exist_ok=True)
    began, load, clock = datetime.now(UTC), os.getloadavg()[0], time.monotonic()
    try:
        if part.page:
            found = blocks((ROOT / part.page).read_text(encoding="utf-8"))
            code, output = 0, "\n".join(run(found, folder, timeout=3600 * hours))
        else:
            code, output = _ran(_line(part.name, folder), _environment(folder), 3600 * hours)
    except subprocess.CalledProcessError as error:
        code, output = error.returncode, str(error.output)
    (folder / "output.txt").write_text(output, encoding="utf-8")
    result = Result(
        part.name, commit, code, problems(part, output, stated) if code == 0 else (), time.monotonic() - clock,
        began.isoformat(timespec="seconds"), machine(), f"{load:.1f}",
    )  # fmt: skip
    (folder / STAMP).write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    return result


def _ran(line: Sequence[str], environment: Mapping[str, str], seconds: float) -> tuple[int, str]:
    """(code, output) of a command, which has a session of its own: all of its processes end where it takes too long, or
    this program is ended."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with subprocess.Popen(
            line, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as program:  # fmt: skip
            try:
                output, _ = program.communicate(timeout=seconds)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
                raise
        return program.returncode, output
    finally:
        signal.signal(signal.SIGTERM, before)


def _line(command: str, folder: Path) -> list[str]:
    """The command as it is run here: with this Python, the data that are here, and what it writes in its folder."""
    words = shlex.split(command)
    own = {"--data-dir": os.environ.get("DPMPC_DATA", ""), "--out": "results", "--json": "results.json"}
    for option, value in ((k, v if k == "--data-dir" else str(folder / v)) for k, v in own.items()):
        if option in words:
            words[words.index(option) + 1] = value
    if words[0] == "python":
        return [sys.executable, *words[1:]]
    return [sys.executable, "-m", *words] if words[0] == "dpmpc" else words


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", "DPMPC_ACCOUNT": str(folder / "account")}


def results(commit: str = "*") -> dict[str, Result]:
    """part -> what came of it on this commit; of any, without one: the last that began."""
    values = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob(f"{commit}/*/{STAMP}")]
    values.sort(key=lambda value: value["began"])
    return {value["part"]: Result(**{**value, "problems": tuple(value["problems"])}) for value in values}


def commit_of() -> str:
    """The commit of the tree. Errors: SystemExit where it has changes of its own."""
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, text=True, capture_output=True, check=True).stdout:
        raise SystemExit("evidence is of a commit; the tree has changes beside it; commit them")
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, text=True, capture_output=True, check=True).stdout.strip()


def machine() -> str:
    """The processor, how many of it, the system and the Python."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        name = next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"{name}, {os.cpu_count()} cores, {system}"


def lacking(commit: str) -> list[str]:
    """What is missing for all evidence to be there on this commit, a line each."""
    there, found = results(commit), []
    for part in parts():
        result = there.get(part.name)
        if result is None:
            found.append(f"{part.name}: not run")
        elif not result.good:
            found.append(f"{part.name}: {'; '.join(result.problems) or f'ended with code {result.code}'}")
    return found


def published(commit: str) -> str:
    """The page of what was run, on this commit or before it, and what was not."""
    there, last, all_parts = results(commit), results(), parts()
    rows = [last[part.name] for part in all_parts if part.name in last]
    good = sum(there[part.name].good for part in all_parts if part.name in there)
    older = [row for row in rows if row.commit != commit]
    lines = [
        "# Evidence, run as written",
        "",
        "`make evidence` runs every command that README and docs name, at the size that they name, and holds stated "
        "figures against their ranges. It goes on where it was stopped. A release needs all of it on its own commit.",
        "",
        f"Of {len(all_parts)} parts {good} ran on commit {commit} and are good, {len(rows) - len(older) - good} are "
        f"not. {sum(row.good for row in older)} were good on an earlier commit and have not run since, "
        f"{sum(not row.good for row in older)} were not. {len(all_parts) - len(rows)} have not run.",
        "",
    ]
    for text in sorted({row.machine for row in rows}):
        lines += [f"Machine: {text}.", ""]
    lines += ["| part | result | commit | seconds | began (UTC), load |", "| --- | --- | --- | ---: | --- |"]
    for row in rows:
        said = "good" if row.good else "; ".join(row.problems) or f"**fails, code {row.code}**"
        lines.append(f"| `{row.part}` | {said} | {row.commit[:8]} | {row.seconds:.0f} | {row.began[:16]}, {row.load} |")
    if len(all_parts) > len(rows):
        lines += ["", "Not run:", "", *(f"- `{part.name}`" for part in all_parts if part.name not in last)]
    return "\n".join(lines) + "\n"


def _page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main(arguments: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m website.evidence")
    parser.add_argument("only", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=60 * _HOURS)
    for name in ("run", "check", "publish"):
        parser.add_argument(f"--{name}", action="store_true")
    asked = parser.parse_args(arguments)
    commit = commit_of()
    if asked.publish:
        PAGE.write_text(published(commit), encoding="utf-8")
        return 0
    if asked.run:
        stated, there, last = ranges(), results(commit), results()
        quick = sorted(parts(), key=lambda part: last[part.name].seconds if part.name in last else 0.0)
        for part in quick if asked.minutes < 60 * _HOURS else parts():
            if asked.only in part.name and not ((before := there.get(part.name)) and before.good):
                print(f"{part.name} ...", flush=True)
                try:
                    result = done(part, stated, commit, asked.minutes / 60)
                except subprocess.TimeoutExpired:
                    print(f"  takes more than {asked.minutes:g} minutes; left", flush=True)
                    continue
                said = "good" if result.good else f"FAILS: {result.problems or result.code}"
                print(f"  {said}, {result.seconds:.0f} s", flush=True)
    missing = [line for line in lacking(commit) if asked.only in line]
    missing += [line for line in nobodys() if asked.only in line]
    for line in missing:
        print(line)
    print(f"{commit}: {len(parts()) - len(lacking(commit))} of {len(parts())} parts are good")
    return 1 if missing and (asked.check or asked.run) else 0


if __name__ == "__main__":
    raise SystemExit(main())
