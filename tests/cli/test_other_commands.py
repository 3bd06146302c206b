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
