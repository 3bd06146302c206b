"""A release, made on this machine: `make release VERSION=0.3.0`.

Refuses a tree that is not clean, a branch that is not main, a version that is not above the last, a changelog without
an entry for it. Then sets the version (in dpmpc/__init__.py, from which all else has it, and in the files that cannot
read it from there), writes the
changelog out of changelog.d/, builds sdist and wheel, checks them, commits and tags. It pushes nothing.

    python .ci/release.py --check-tag v0.3.0    whether a tag and the tree name one version
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = "dpmpc/__init__.py"
COPIES = {  # file -> what stands before the version there
    "CITATION.cff": r"^version: ",
    "Dockerfile": r"dpmpc:",
    "compose.yaml": r"dpmpc:",
    "docs/consortium.md": r"dpmpc:",
    "experiments/pyproject.toml": r"^version = \"",
    "docs/howto/services.md": r"dpmpc(?::|-)",
    "docs/project/install.md": r"dpmpc-",
    "packaging/conda/recipe.yaml": r"^  version: \"",
}
FRAGMENTS = "changelog.d"
KINDS = {"breaking": "Breaking", "security": "Security", "feature": "New", "fix": "Mended"}
_VERSION = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"


class Refused(SystemExit):
    """One line: the rule, the value, the way out."""


def current(root: Path = ROOT) -> str:
    """The version that the tree names."""
    found = re.search(rf'^__version__ = "({_VERSION})"$', (root / HOME).read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def stale(root: Path = ROOT) -> list[str]:
    """The files that name another version than the tree's."""
    version = current(root)
    return [
        name
        for name, before in COPIES.items()
        if set(re.findall(f"{before}({_VERSION})", (root / name).read_text(), re.MULTILINE)) != {version}
    ]


def order(version: str) -> tuple[int, ...]:
    """What versions are compared by; a release stands above its candidates."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?", version)
    if found is None:
        raise Refused(f"error: a version is like 0.3.0 or 0.3.0rc1; got {version!r}; give such a one")
    stage = {None: 3, "rc": 2, "b": 1, "a": 0}[found[4]]
    return (int(found[1]), int(found[2]), int(found[3]), stage, int(found[5] or 0))


def changes(root: Path = ROOT) -> list[Path]:
    """The files of changes that are not released yet, in the order of their kinds. Errors: one of another kind."""
    found = sorted(path for path in (root / FRAGMENTS).glob("*.md") if path.name != "README.md")
    for path in found:
        if path.suffixes[-2:-1] != [f".{kind_of(path)}"] or kind_of(path) not in KINDS:
            raise Refused(
                f"error: a change is SUBJECT.KIND.md, of the kinds {', '.join(KINDS)}; got {path.name}; rename it"
            )
    return sorted(found, key=lambda path: [*KINDS].index(kind_of(path)))


def kind_of(path: Path) -> str:
    """The kind of change that a file's name says."""
    return path.name.split(".")[-2]


def dated(text: str, version: str, today: str, pending: list[Path]) -> str:
    """The changelog with today's date at the version's heading, which may be there without one, and what is pending."""
    head = re.search(rf"^## {re.escape(version)}(?: \(unreleased\))?\n\n(?=[^#\s])", text, re.MULTILINE)
    if head is None and not pending:
        raise Refused(
            f"error: a release says what changed; {version} has nothing in {FRAGMENTS}/ and no "
            "entry; write a file there"
        )
    lines = ""
    for kind, title in KINDS.items():
        found = [" ".join(path.read_text(encoding="utf-8").split()) for path in pending if kind_of(path) == kind]
        lines += f"**{title}**\n\n" + "".join(f"- {each}\n" for each in found) + "\n" if found else ""
    if head is not None:
        end = text.find("\n## ", head.end())
        said = (text[head.end() :] if end < 0 else text[head.end() : end]).strip("\n")
        rest = "" if end < 0 else text[end + 1 :]
        return text[: head.start()] + f"## {version} ({today})\n\n{said}\n\n{lines}" + rest
    first = text.find("## ")
    first = len(text) if first < 0 else first
    return text[:first] + f"## {version} ({today})\n\n{lines}" + text[first:]


def write(version: str, root: Path = ROOT, today: str | None = None) -> None:
    """Sets the version everywhere, and puts what changed into the changelog, with its date."""
    before = current(root)
    if order(version) < order(before):
        raise Refused(f"error: versions rise; got {version} after {before}; give a later one")
    log, pending = root / "CHANGELOG.md", changes(root)
    log.write_text(dated(log.read_text(), version, today or datetime.date.today().isoformat(), pending))
    for path in pending:
        path.unlink()
    for name, lead in {HOME: r'^__version__ = "', **COPIES}.items():
        path = root / name
        path.write_text(re.sub(f"({lead}){_VERSION}", rf"\g<1>{version}", path.read_text(), flags=re.MULTILINE))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def release(version: str) -> None:
    """All of it, up to the tag."""
    order(version)
    if _git("status", "--porcelain"):
        raise Refused("error: a release is made of a clean tree; there are changes; commit them first")
    if _git("branch", "--show-current") != "main":
        raise Refused(f"error: a release is made on main; this is {_git('branch', '--show-current')}; switch to it")
    if f"v{version}" in _git("tag").split():
        raise Refused(f"error: a version is released once; v{version} is there; give a later one")
    evident()
    write(version)
    subprocess.run(["make", "docs"], cwd=ROOT, check=True)
    subprocess.run([".ci/wheel"], cwd=ROOT, check=True)
    _git("commit", "--all", "--message", f"Version {version}")
    _git("tag", "--annotate", f"v{version}", "--message", f"dpmpc {version}")
    print(f"v{version} is tagged; dist/ has its sdist and this platform's wheel; publish: git push --follow-tags")


def evident(root: Path = ROOT) -> None:
    """Returns if everything that README and docs name has run on this commit, with its figures where they are said to
    be. Errors: it has not."""
    found = subprocess.run(
        [sys.executable, "-m", "website.evidence", "--check"], cwd=root, text=True, capture_output=True, check=False
    )
    if found.returncode:
        first = (found.stdout + found.stderr).strip().splitlines()[:1]
        raise Refused(f"error: a release has all of its evidence on its commit; {''.join(first)}; run make evidence")


def main(arguments: list[str]) -> None:
    """The command."""
    if arguments[:1] == ["--check-tag"]:
        if arguments[1:] != [f"v{current()}"] or stale():
            raise Refused(
                f"error: a tag names the tree's version; got {arguments[1:]}, the tree is v{current()} {stale()}"
            )
    elif len(arguments) == 1:
        release(arguments[0])
    else:
        raise Refused("error: a release has a version; got none; say make release VERSION=0.3.0")


if __name__ == "__main__":
    main(sys.argv[1:])
