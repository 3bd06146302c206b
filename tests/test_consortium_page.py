"""docs/consortium.md runs as it stands: three parties and four owners in seven folders, from one file, with TLS. What
is for containers is parsed, for there may be no engine."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmpc as package
from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.kit_texts import ACCOUNT
from dpmpc.consortium.status import read_status
from dpmpc.consortium.toml import read_consortium
from dpmpc.dossier.facts import facts_of
from dpmpc.verify.verification import verify_structure
from tests import forked_commands
from tests.commands import parsed
from tests.refusals import refuses
from tests.runs import HANG, own_addresses

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "consortium.md"
VERSION = package.__version__


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def shell(folder: Path) -> dict[str, str]:
    """An environment in which `dpmpc` is this one."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "dpmpc"
    forked_commands.here().program(command)
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": paths}


@pytest.mark.slow
def test_three_parties_and_four_owners_start_by_the_page(tmp_path: Path) -> None:
    text = "".join(blocks("sh"))
    addresses = own_addresses(3)[1::2]
    for i, address in enumerate(addresses):
        assert text.count(f"127.0.0.{i + 2}:11365") == 1
        text = text.replace(f"127.0.0.{i + 2}:11365", address)
    environment = shell(tmp_path)
    done = subprocess.run(
        ["sh", "-eu"], input=text, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANG
    )
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert done.returncode == 0, (done.stderr, logs)
    folders = sorted(path for path in (tmp_path / "kits").iterdir() if path.is_dir())
    assert len(folders) == 7
    models = [np.load(folder / "run" / "model.npz") for folder in folders]
    assert np.any(models[0]["theta"])
    assert all(np.array_equal(model["theta"], models[0]["theta"]) for model in models)
    for folder in folders:
        found = read_status(folder)
        (state,) = found.processes
        assert (state.phase, state.release, found.model) == ("finished", 20, True), state
        assert found.spent is not None  # a survey of what bounds restrict, and 20
        assert found.spent.releases == found.planned == 21
        assert not [path for path in folder.rglob("*.key") if path.stem != folder.name]
    assert not re.findall(r".*8 bytes.*", done.stdout)
    assert "spent: 21 releases (survey among them), epsilon 1 at delta 0.0001" in done.stdout
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 101
    assert "10 of 10" in done.stdout and "8 of 8" in done.stdout
    assert "the files of parties 1, 2 are elsewhere, and what they say was not compared" in done.stdout
    whole = json.loads((tmp_path / "kits" / "verify.json").read_text())["structure"]
    assert whole["holds"] and "elsewhere" not in whole["note"]
    (row,) = json.loads((tmp_path / "budget.json").read_text())["data"]  # three parties' ledgers and four owners'
    assert (row["releases"], row["attempts"], row["epsilon"]) == (21, 1, pytest.approx(1.0))
    assert (tmp_path / "kits" / "owner0" / "run" / "report.html").is_file()
    for folder in (folders[0], folders[0] / "run"):
        with refuses("path"):
            verify_structure(folder)
    with refuses("path", "s folder; name an owner"):
        facts_of(folders[-1] / "run")


def test_every_command_of_the_page_is_one(tmp_path: Path) -> None:
    text = "\n".join(blocks("")) + "\n".join(blocks("sh"))
    lines = text.replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.startswith("dpmpc ")]
    inline = re.findall(r"`(dpmpc [^`]*)`", PAGE.read_text())
    assert len(found) >= 10 and len(inline) >= 5
    for words in [*found, *inline]:
        arguments = shlex.split(re.sub(r" 2?>.*", "", words))[1:]
        if len(arguments) > 1:
            parsed(arguments)


# -- containers --------------------------------------------------------------------------------------------------------
def instructions() -> list[tuple[str, str]]:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines if line and not line.startswith("#")]


def test_the_dockerfile_installs_the_command_that_it_starts() -> None:
    found = instructions()
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in found} == known and found[0][0] == "FROM"
    stages = [rest.split(" AS ")[1] for name, rest in found if name == "FROM" and " AS " in rest]
    for name, rest in found:
        if name == "COPY":
            *options, source, target = rest.split()
            assert target.startswith("/")
            if options:
                assert options == [f"--from={stages[0]}"] and any(source in r for n, r in found if n == "RUN")
            else:
                assert (ROOT / source / "pyproject.toml").is_file()
    last = dict(found)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (entry,) = yaml.safe_load(last["ENTRYPOINT"])
    assert entry in scripts and last["USER"] in last["RUN"] and last["USER"] != "root"
    assert last["ENV"].startswith("PATH=/opt/dpmpc/bin:")
    assert f"dpmpc:{VERSION}" in (ROOT / "Dockerfile").read_text() and package.__name__ == "dpmpc"


def test_the_conda_recipe_requires_what_the_wheel_does() -> None:
    """Its syntax, version, entry point and requirements; no builder was at hand, and it says so."""
    text = (ROOT / "packaging/conda/recipe.yaml").read_text()
    recipe = yaml.safe_load(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "never run" in text and recipe["context"]["version"] == VERSION and recipe["schema_version"] == 1

    def bare(each: str) -> tuple[str, str]:
        name, version = re.fullmatch(r"([\w-]+) ?([=><]+.*)", each).groups()  # type: ignore[union-attr]
        return name.removeprefix("python-"), version

    run = recipe["requirements"]["run"]
    assert {bare(each) for each in run} == {*map(bare, project["dependencies"]), ("python", project["requires-python"])}
    entry = recipe["build"]["python"]["entry_points"]
    assert entry == [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert recipe["about"]["license"] == project["license"]


def test_no_key_kit_or_record_gets_into_an_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"**/*.key", "**/*.csv", "authority", "kits", "runs", ".git"} <= set(ignored)


def test_the_compose_file_starts_three_parties_from_the_kits_that_its_own_commands_make(tmp_path: Path) -> None:
    text = (ROOT / "compose.yaml").read_text()
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    parties = {name: service for name, service in services.items() if "profiles" not in service}
    assert sorted(parties) == ["party0", "party1", "party2"]
    words = [shlex.split(line) for line in re.findall(r"^#   (?:\S+=\S+ )?(dpmpc .*)$", text, re.MULTILINE)]
    assert [line[1] for line in words] == ["init", "kit", "keys", "keys"]
    for line in words:
        parsed(line[1:])
    from click.testing import CliRunner

    from dpmpc.cli import main as cli

    done = CliRunner().invoke(cli.group, [*words[0][1:], "--out", str(tmp_path / "consortium.toml")])
    assert done.exit_code == 0, done.output
    consortium = read_consortium(tmp_path / "consortium.toml")
    assert [endpoint.host for endpoint in consortium.addresses] == list(parties)  # services are called by their names
    made = {folder.name for folder in write_kits(consortium, tmp_path / "kits", tmp_path / "authority")}
    for name, service in services.items():
        assert service["image"] == f"dpmpc:{VERSION}" and service["build"] == "." and service["read_only"]
        assert service["environment"] == {"DPMPC_ACCOUNT": "/account"} and "/account" in service["volumes"][-1]
        assert service["restart"] == "on-failure"  # as the kits' units and compose files have it
        found = parsed(service["command"])
        assert found["kit"] == Path("/kit") and (found["csv"] is None) == (name in parties)
    for name, service in parties.items():
        assert service["volumes"] == [f"./kits/{name}:/kit", f"${{DPMPC_ACCOUNT:-{ACCOUNT}}}:/account"] and name in made
