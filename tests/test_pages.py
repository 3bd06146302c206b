"""Commands and programs of all pages: each block runs, or is listed here with the reason; each command in a sentence
has the options that the parser knows."""

import re
import shlex
from pathlib import Path

import click
import pytest

from tests.commands import parsed
from website import tutorials

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
NOT_RUN = {  # page: of which block, why
    "CONTRIBUTING.md": ("make check", "is what continuous integration runs"),
    "docs/consortium.md": ("a.example:11365", "other places and times of what tests/test_consortium_page.py runs"),
    "docs/cost.md": ("dpmpc bench all --full", "takes 40 minutes"),
    "docs/experiments.md": ("dpmpc experiment all", "takes hours, and data sets that are fetched once"),
    "docs/flower.md": ("pip install", "installs; the programs are parts of examples/flower"),
    "docs/index.md": ("pip install", "installs; the README's and the first tutorial's commands run"),
    "docs/many-parties.md": ("partyI.crt", "one of several machines; tests/test_consortium_page.py runs such sites"),
    "docs/mpyc-programs.md": ("dpmpc.mpyc.gaussian", "stands in tests/mpc/test_mpyc_program.py"),
    "docs/python.md": ("index=0", "one of several machines; tests/test_api.py runs such owners and parties"),
    "docs/howto/cluster.md": ("our_cluster", "a cluster's; tests/consortium/test_executed_owner.py runs such an owner"),
    "docs/howto/pytorch.md": ("per_record_gradients", "a part of an example that needs torch"),
    "docs/howto/extend.md": ("TableSampler(scale", "a part; tests/test_extensions.py runs the whole package"),
    "docs/howto/tasks.md": ("pip install", "installs; tests/test_extensions.py runs the same on every surface"),
    "docs/project/install.md": ("pip install numpy", "installs; tests/consortium/test_light_party.py runs one"),
    "docs/project/releases.md": ("make release", "makes a release"),
    "docs/statistics.md": ("--of runs/table2", "tests/statistics/test_effects.py asks such models of such tables"),
    "docs/verify.md": ("verify --fresh", "takes a minute each; tests/verify/test_verify_faults.py runs both"),
}
COMMAND = re.compile(r"^(?:\$ )?(?:dpmpc|pip|make|python -m) ", re.MULTILINE)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def fences(path: Path) -> list[tuple[str, str]]:
    """Info string and text of each fence."""
    text = path.read_text(encoding="utf-8")
    return [(m[1], m[2]) for m in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_every_block_runs_or_says_why_not(path: Path) -> None:
    if named(path) != "README.md":  # tests/test_readme.py runs its commands
        assert not [text for info, text in fences(path) if not info and COMMAND.search(text)], "a block of no language"
        assert not re.search(r"^    (dpmpc|make|pip) ", path.read_text(encoding="utf-8"), re.MULTILINE), "indented"
    kept = [text for info, text in fences(path) if info.split()[1:] == ["no-run"]]
    assert bool(kept) == (named(path) in NOT_RUN)
    if kept:
        assert any(NOT_RUN[named(path)][0] in text for text in kept)


def test_the_pages_that_run_are_these() -> None:
    """Pages of which a block runs: by `python -m website.tutorials`, or by the test that is named."""
    names = {named(path) for path in tutorials.pages()}
    assert {"README.md", "docs/active.md", "docs/mpyc.md", "docs/statistics.md", "docs/synth.md"} <= names
    for page, test in tutorials.BY_THE_SUITE.items():
        assert f"docs/{page}.md" not in names and f"{page}.md" in (ROOT / test).read_text(encoding="utf-8")


def test_every_command_in_a_sentence_is_one() -> None:
    found = 0
    for path in PAGES:
        for match in re.finditer(r"`(dpmpc [^`\n]+)`", path.read_text(encoding="utf-8")):
            words = shlex.split(match[1].replace("...", ""))[1:]
            if len(words) == 1 or words[1].isupper():
                continue  # a group of commands, or a word for any of them
            found += 1
            try:
                parsed(words)
            except (click.exceptions.Exit, click.MissingParameter):
                pass
            except click.BadOptionUsage as error:  # an option that is named without its value
                assert "requires an argument" in str(error), f"{path.name}: {match[0]}: {error}"
            except click.UsageError as error:
                raise AssertionError(f"{path.name}: {match[0]}: {error.format_message()}") from error
    assert found > 50


def test_it_finds_a_command_that_is_none() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parsed(["train", "--epsilom", "1"])
