"""MkDocs events: pages that are generated, pages from outside of docs/, and links that leave docs/.

A link that leaves docs/ works in the tree and on the site: texts of the project become pages, examples become pages
that show them, anything else is copied beside the pages. One that names nothing fails the build.
"""

import ast
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import reference, tutorials

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
}
GENERATED: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": reference.commands,
    "reference/python.md": reference.python,
    "reference/consortium.md": reference.consortium,
    "reference/limits.md": reference.limits,
    "reference/schema.md": reference.schema,
    "reference/exit-codes.md": reference.exit_codes,
    "reference/errors.md": reference.errors,
}
# How much a hit on a page weighs in the search: what a stranger is to read comes before lists and records of work.
WEIGHTS: Mapping[str, float] = {
    "reference/words": 4, "answer": 3, "start": 3, "howto": 3, "reference/glossary": 4, "project/install": 3,
    "reference/errors": 0.5, "examples": 0.5, "files": 0.3, "experiments": 0.5, "papers": 0.5, "project/changelog": 0.2,
}  # fmt: skip
_LINK = re.compile(r"(\]\(|(?:src|href)=\")([^)\s\"#:]+)(#[^)\s\"]*)?")


def programs() -> dict[str, Path]:
    """The site's page of every example -> its file."""
    return {f"examples/{path.stem}.md": path for path in sorted((ROOT / "examples").glob("*.py"))}


def example(path: Path) -> str:
    """An example as a page: what it is, and the program."""
    text = path.read_text(encoding="utf-8")
    first = (ast.get_docstring(ast.parse(text)) or path.stem).splitlines()[0]
    return f"# {path.name}\n\n{first}\n\n```python\n{text}```\n"


def examples() -> str:
    """The list of all examples."""
    lines = [
        "# Examples",
        "",
        "`make examples` runs all of them. What a package or a server is missing for is named.",
        "",
    ]
    for place, path in programs().items():
        first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
        lines.append(f"- [{path.name}]({Path(place).name}): {first}")
    return "\n".join(lines) + "\n"


def place_of(path: Path) -> str:
    """Where a file of the project stands on the site. Errors: FileNotFoundError."""
    if not path.exists():
        raise FileNotFoundError(path)
    inside = path.resolve().relative_to(ROOT).as_posix()
    if inside in TEXTS:
        return TEXTS[inside]
    if inside == "README.md":
        return "index.md"
    if inside == "examples":
        return "examples/index.md"
    for page, program in programs().items():
        if path.resolve() == program:
            return page
    return inside.removeprefix("docs/") if inside.startswith("docs/") else f"files/{inside}"


def relinked(text: str, source: Path, place: str, copies: dict[str, Path] | None = None) -> str:
    """A text of the project with its relative links as the site has them; what has to be copied goes to `copies`."""

    def moved(found: re.Match[str]) -> str:
        before, target, anchor = found[1], found[2], found[3] or ""
        path = source.parent / target
        if target.startswith("/") or not path.exists():
            return found[0]  # MkDocs reports it
        new = place_of(path)
        if new.startswith("files/"):
            if path.is_dir():
                return found[0]
            (copies if copies is not None else {})[new] = path
        return f"{before}{os.path.relpath(new, Path(place).parent)}{anchor}"

    return _LINK.sub(moved, text)


def outside() -> dict[str, Path]:
    """The files that pages link to and that lie outside of docs/, by their place on the site."""
    copies: dict[str, Path] = {}
    for path in (*ROOT.glob("docs/**/*.md"), *(ROOT / name for name in TEXTS)):
        relinked(path.read_text(encoding="utf-8"), path, place_of(path), copies)
    return copies


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    version = reference.version()
    config.site_name = f"dpmpc {version}"
    config.copyright = f"dpmpc {version}. Apache License 2.0."
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # pages do not depend on the clock
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made: dict[str, Any] = {name: make() for name, make in GENERATED.items()}
    made |= {place: relinked((ROOT / name).read_text(), ROOT / name, place) for name, place in TEXTS.items()}
    made |= {place: example(path) for place, path in programs().items()} | {"examples/index.md": examples()}
    made |= {f"assets/{name}": (ROOT / "website" / name).read_text() for name in ("iframe-worker.js", "extra.css")}
    for path in tutorials.pages():
        if path.parent.name == "start":
            made[f"start/{path.stem}.ipynb"] = tutorials.written(path.read_text(encoding="utf-8"))
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    for place, path in outside().items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def weight(place: str) -> float:
    """How much a hit on the page at this place weighs in the search."""
    return next((value for start, value in WEIGHTS.items() if place.startswith((f"{start}/", f"{start}."))), 1.0)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    markdown = re.sub(r"^```(\w+) [\w -]+$", r"```\1", markdown, flags=re.MULTILINE)  # marks for tests
    source = ROOT / "docs" / page.file.src_uri
    page.meta.setdefault("search", {"boost": weight(page.file.src_uri)})
    if source in tutorials.pages() and source.parent.name == "start":
        markdown += f"\n---\n\n[This page as a notebook]({source.stem}.ipynb)\n"
    return relinked(markdown, source, page.file.src_uri) if source.exists() else markdown
