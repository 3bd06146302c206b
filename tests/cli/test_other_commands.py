"""Commands of other packages: entry points of the group dpmpc.commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import click


@click.command("greet", short_help="greets whoever runs it")
@click.option("--out", type=click.Path(), default="x")
def command(out):
    click.echo("hello from another package")
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package that brings `greet`, and one whose command is none."""
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    points = "[dpmpc.commands]\ngreet = greeting:command\ntrain = greeting:command\nodd = os:sep\n"
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "greeting.py").write_text(MODULE)
    return tmp_path


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "dpmpc", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_of_another_package_is_listed_and_run_and_takes_the_place_of_none(installed: Path) -> None:
    listed = run(installed, "--help").stdout
    assert "greets whoever runs it" in listed and "train a private model" in listed
    assert run(installed, "greet").stdout == "hello from another package\n"
    assert "hello" not in run(installed, "train", "--help").stdout
    refused = run(installed, "greet", "--out", "")
    assert refused.returncode == 2 and "it is empty" in refused.stderr
    odd = run(installed, "odd")
    assert odd.returncode == 2 and "os:sep" in odd.stderr and "Traceback" not in odd.stderr


def test_a_mistyped_command_is_answered_with_the_nearest(tmp_path: Path) -> None:
    said = run(tmp_path, "trian")
    assert said.returncode == 2 and "did you mean train?" in said.stderr and said.stderr.count("\n") == 1
    said = run(tmp_path, "qqqqqq")
    assert said.returncode == 2 and "did you mean" not in said.stderr and "--help" in said.stderr


def test_the_first_examples_of_the_help_need_nothing_but_the_package() -> None:
    """No set of scikit-learn, which is an extra."""
    for words in ((), ("train",)):
        lines = run(Path(), *words, "--help").stdout.splitlines()
        examples = [line for line in lines if line.lstrip().startswith("dpmpc ")]
        assert "dpmpc example hospitals" in examples[0] and "--csv hospitals.csv" in examples[1], examples
