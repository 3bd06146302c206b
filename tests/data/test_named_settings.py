"""Errors about records name settings and the way out as the surface that prints them spells them."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpmpc.cli.check import command as check
from dpmpc.cli.describe import command as describe
from dpmpc.cli.example import command as example
from dpmpc.cli.join import command as join
from dpmpc.cli.predict import command as predict
from dpmpc.cli.settings import spelling
from dpmpc.cli.sources import spelling_of
from dpmpc.cli.stats import command as stats
from dpmpc.cli.train import command as train
from dpmpc.data.spelling import Spelling, stating
from dpmpc.errors import number_of, spelt
from dpmpc.runs.joining import kit_spelling

DATA = Path(__file__).parents[2] / "dpmpc" / "data"
COMMANDS = (check, describe, example, join, predict, stats, train)


def flags() -> set[str]:
    return {
        flag for command in COMMANDS for option in command.params for flag in (*option.opts, *option.secondary_opts)
    }


def test_each_setting_that_an_error_about_records_names_is_an_option() -> None:
    named = {name for path in DATA.glob("*.py") for name in re.findall(r"<<([a-z_]+)[=>]", path.read_text("utf-8"))}
    assert len(named) > 15 and {"encoding", "units", "owners_column"} - named == {"owners_column"}
    known = flags()
    assert {name for name in named - {"spelling"} if spelling(name, None) not in known} == set()
    assert spelling("unitz", None) not in known


@pytest.mark.parametrize(
    "stated",
    [
        Spelling(encoding="cp1252"),
        Spelling(decimal=",", thousands=".", dates="dmy", units=("kg", "$")),
        Spelling(decimal=",", thousands=" ", century=1930, missing=("o'clock", "n. d.")),
        Spelling(thousands="'", misfits="zero", units=(">", "<")),
    ],
)
def test_what_an_error_says_to_state_is_what_one_pastes(stated: Spelling) -> None:
    import shlex

    text = f"state {stating(**stated.options())}; or not"
    assert eval(spelt(text)[len("state spelling=") : -len("; or not")], {"Spelling": Spelling}) == stated
    for twice in (text, spelt(text, kit_spelling)):  # a site of a consortium states it as an option too
        words = shlex.split(spelt(twice, spelling)[len("state ") : -len("; or not")])
        context = check.make_context("check", ["--schema", "a.toml", *words])
        assert spelling_of(dict(context.params)) == stated


def test_one_of_a_thing_is_singular(tmp_path: Path) -> None:
    assert [number_of(n, "record") for n in (0, 1, 2)] == ["0 records", "1 record", "2 records"]
    assert number_of(1, "field is", "fields are") == "1 field is"
    (tmp_path / "a.csv").write_text("x\n1\n")
    said = CliRunner().invoke(describe, [str(tmp_path / "a.csv")]).output
    assert "a.csv: 1 record, 1 column; " in said
    (tmp_path / "b.csv").write_text("x\n" + "4\n" * 10 + "old\n5\n")
    assert "1 field is no number, such as 'old'" in CliRunner().invoke(describe, [str(tmp_path / "b.csv")]).output
