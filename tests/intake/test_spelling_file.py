"""How records are spelled, in a file: `describe` writes it, every command reads it, and nobody else does."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpmpc.cli.describe import command as describe_command
from dpmpc.cli.main import program  # noqa: F401  the commands' options are as users have them
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.spelling_file import read_spelling, write_spelling
from tests.refusals import refuses
from tests.runs import dpmpc
from tests.tables import write

SPELLED = Spelling(
    decimal=",", thousands=".", dates="dmy", century=1930, missing=("k.a.", "age=999", 'a "b"\\'), units=("kg", "<"),
    header=3, below=1, footer=2, encoding="cp1252", words=("plz\x7f",), months=("listopada=11",), negative="trailing",
)  # fmt: skip


@pytest.mark.parametrize("name", ["s.toml", "s.json"])
@pytest.mark.parametrize("spelling", [SPELLED, Spelling(), Spelling(no_header=True, names=("a", "b"))])
def test_what_is_written_is_read(name: str, spelling: Spelling, tmp_path: Path) -> None:
    path = tmp_path / name
    write_spelling(path, spelling)
    assert read_spelling(path) == spelling and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, 'decimal = ","\nthousand = "."\n', "s.toml")
    with refuses("file", "s.toml"):
        read_spelling(path)


def test_describe_writes_what_it_then_needs_no_more(tmp_path: Path) -> None:
    rows = "".join(f"{20 + k};{k / 7:.2f} kg;{'yes' if k % 3 else 'no'}\n".replace(".", ",") for k in range(60))
    path, file = write(tmp_path, "Export\nage;weight;y\n" + rows), tmp_path / "mine.toml"

    def shown() -> str:
        asked = [str(path), "--target", "y", "--spelling", str(file)]
        done = CliRunner().invoke(describe_command, asked, prog_name="describe")
        assert done.exit_code == 0, done.output
        return done.output

    assert "--header 2" in shown()
    assert read_spelling(file) == Spelling(decimal=",", units=("kg",), header=2)
    before = file.read_text()
    assert "needs too" not in shown() and file.read_text() == before


@pytest.mark.slow
def test_a_model_reads_new_records_as_its_own_were_spelled(tmp_path: Path) -> None:
    rows = [f"{20 + k % 60},{k % 10};{'yes' if k % 60 > 25 else 'no'}\n" for k in range(600)]
    path, file = write(tmp_path, "age;y\n" + "".join(rows)), tmp_path / "mine.toml"
    write_spelling(file, Spelling(decimal=","))
    run = ("train", "--csv", path, "--target", "y", "--owners", "3", "--epsilon", "3", "--delta", "1e-5")
    dpmpc(*run, "--spelling", file, "--out", tmp_path / "run")
    new = write(tmp_path, "age;ward\n21,5;x\n79,9;z\n", "new.csv")
    own, plain = (
        dpmpc("predict", tmp_path / "run", "--csv", new),
        write(tmp_path, "age;ward\n21.5;x\n79.9;z\n", "plain.csv"),
    )
    assert own.returncode == 0, own.stderr
    assert "read as this run's own records were: --decimal ," in own.stderr
    assert (
        own.stdout == dpmpc("predict", tmp_path / "run", "--csv", plain, "--decimal", ".", "--century", "1930").stdout
    )
