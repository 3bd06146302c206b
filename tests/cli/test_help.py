"""The help of every command: one screen, and all of it."""

import click
import pytest
from click.testing import CliRunner

from dpmpc.cli.help import LINES, WIDTH, folded
from dpmpc.cli.main import COMMANDS, group


def said(*words: str) -> str:
    result = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(group, list(words), terminal_width=WIDTH)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_one_screen(name: str) -> None:
    lines = said(name, "--help").splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= WIDTH, [line for line in lines if len(line) > WIDTH]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_goes_on_below_in_examples_alone(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    of_group = isinstance(command, click.Group)
    for words in [(name, each) for each in command.commands] if of_group else [(name,)]:
        for line in said(*words, "--help-all").splitlines():
            assert "\\" not in line.rstrip().removesuffix(" \\"), line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_the_whole_help_and_every_section_in_the_short_one(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    if isinstance(command, click.Group):
        return
    whole, short = said(name, "--help-all"), said(name, "--help")
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            assert any(flag in whole for flag in each.opts), each.opts
            assert not each.required or any(flag in short for flag in each.opts), each.opts
    for section in getattr(command, "sections", ()):
        assert f"{section}:" in short
    assert ("more, by --help-all" in short) == (len(whole.splitlines()) > LINES)


def test_a_long_example_goes_on_below() -> None:
    line = f"  dpmpc stats \"a b\" {' '.join(f'--option-{k} {k}' for k in range(12))}"
    lines = folded(line).splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= WIDTH - 2
    assert all(each.endswith(" \\") for each in lines[:-1])
    assert " ".join(each.rstrip(" \\").strip() for each in lines) == line.strip()
    assert folded("\n".join(lines)).splitlines() == lines


def test_prose_that_begins_a_line_with_an_option_is_no_example() -> None:
    prose = "--watch, --html and --serve show all sites of the plan at once: who is here, connected or not, its phase."
    assert folded(prose) == prose
    example = "  dpmpc train --csv hospitals.csv --target readmitted --owners-column site --epsilon 1 --out demo"
    assert len(folded(example).splitlines()) == 2
