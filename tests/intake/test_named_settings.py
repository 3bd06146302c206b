"""Errors about records name settings and the way out as the surface that prints them spells them."""

import re
from pathlib import Path

import numpy as np
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
from dpmpc.consortium.joining import kit_spelling
from dpmpc.errors import RecordError, number_of, owner_text, spelt
from dpmpc.intake.spelling import Spelling, stating
from dpmpc.records.derive import TableSettings, looked
from dpmpc.records.loading import CsvFile, opened

ROOMS = [Path(__file__).parents[2] / "dpmpc" / name for name in ("intake", "records")]
COMMANDS = (check, describe, example, join, predict, stats, train)


def flags() -> set[str]:
    return {
        flag for command in COMMANDS for option in command.params for flag in (*option.opts, *option.secondary_opts)
    }


def test_each_setting_that_an_error_about_records_names_is_an_option() -> None:
    files = [path for room in ROOMS for path in room.glob("*.py")]
    named = {name for path in files for name in re.findall(r"<<([a-z_]+)[=>]", path.read_text("utf-8"))}
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


def _odd_file(folder: Path) -> Path:
    """Records about which every kind of note has something to say."""
    rows = ["id;ward;again;country;code;d;grouped;three;n;person_id;t;y"]
    for k in range(120):
        country = ("NA", "NL", "DE", "FR", "IT", "ES", "PT")[k % 7]
        code = 999 if k % 20 == 0 else k % 9
        row = [k, f"{k % 9:03d}", f"{k % 9:03d}", country, code, 20240101 + k % 28, f"{1 + k % 7}.{100 + k}", "-"]
        rows.append(";".join(map(str, [*row, "n.a." if k % 9 == 0 else k, k // 3, f"2{k % 9}/1", "ab"[k % 2]])))
    rows.append(";".join(["total", "1", "1", "", *["1"] * 7, "a"]))
    rows.append(rows[0])
    path = folder / "odd.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("command", [check, describe])
def test_a_note_offers_what_its_readers_command_has(command: object, tmp_path: Path) -> None:
    """Of a look's notes `describe` says what a run is told; those of `check` and `join` are of a plan's columns."""
    from dpmpc.intake.profile import look
    from dpmpc.local.named_records import with_spelling
    from dpmpc.records import CsvFile
    from dpmpc.records.loading import opened
    from dpmpc.records.schema import Categorical, Labels, Schema

    path = _odd_file(tmp_path)
    with opened(CsvFile(path)) as (table, _):
        intake = look(table, target="y")[0]
        schema = Schema((Categorical("ward", ("1",)),), Labels("y", ("b",), ("a",)))
        from dpmpc.records.check import check as held_against

        said = [each.text for each in with_spelling(held_against(schema, table), table).found]
    written = "\n".join(spelt(text, spelling) for text in (said if command is check else intake.findings))
    named = set(re.findall(r"--[a-z][a-z-]+", written))
    theirs = (check, join) if command is check else (train,)
    for each in theirs:
        known = {flag for option in each.params for flag in option.opts}
        assert named - known == set(), named - known
    assert "--missing-word" in named and "--kept-word" in named and ("--drop" in named) == (command is describe)
    assert len(intake.notes) >= 6 and ("a line of the plan" in written) == (command is check)


def test_only_files_are_told_of_the_command_that_shows_all(tmp_path: Path) -> None:
    """No command of a shell can look at a frame."""
    values = [f"{k},5" for k in range(200)]
    frame = {"size": np.array(values), "sold": np.array(["yes", "no"] * 100)}
    (tmp_path / "mine.csv").write_text("size;sold\n" + "".join(f"{v};yes\n{v};no\n" for v in values))
    for source, told in ((frame, False), (CsvFile(tmp_path / "mine.csv"), True)):
        with opened(source) as (table, _), pytest.raises(RecordError) as caught:
            looked(table, TableSettings(target="sold"))
        assert "state spelling=Spelling(decimal=',')" in owner_text(caught.value)
        assert ("`dpmpc describe` shows all" in owner_text(caught.value)) is told
