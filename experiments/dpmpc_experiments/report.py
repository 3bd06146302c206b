"""report.md: our number beside the printed one, the figures, and where the numbers come from."""

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from dpmpc_experiments.plan import Plan, Section


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def markdown(section: Section, folder: str = "") -> list[str]:
    """The lines of a section; figures are looked for in `folder`, relative to the report."""
    lines = [f"## {section.title}", "", *section.text, ""]
    if section.checks:
        rows = [[check.what, check.printed, check.ours, check.verdict] for check in section.checks]
        lines += [*table(["what", "paper", "ours", "verdict"], rows), ""]
    for file, caption in section.figures:
        lines += [f"![{caption}]({folder}{file})", "", f"*{caption}*", ""]
    return lines + ([*section.notes, ""] if section.notes else [])


def provenance(plan: Plan, computed: Sequence[str], repeats: int) -> list[str]:
    """One paragraph: what was `computed` at which commits, seeds, versions and host."""
    names = ("numpy", "scipy", *(["scikit-learn"] if find_spec("sklearn") else []))
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    return [
        f"Computed: {'; '.join(computed)}. Noise seeds {plan.seed} to {plan.seed + repeats - 1}"
        f"{', --quick' if plan.quick else ''}. Python {platform.python_version()}, {packages}; {platform.machine()}, "
        f"{os.cpu_count()} cores.",
        "",
    ]


def record(path: Path, entry: str) -> list[str]:
    """All entries of the log at `path`, after adding this one unless it is empty."""
    if entry:
        with path.open("a", encoding="utf-8") as file:
            file.write(entry + "\n")
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def commit() -> str:
    """The commit of the source tree, `+` if this package had changes; "unknown" outside of a tree."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    head = git("rev-parse", "--short=12", "HEAD")
    if not head:
        return "unknown"
    return head + ("+" if git("status", "--porcelain", "--untracked-files=no", "--", ".") else "")
