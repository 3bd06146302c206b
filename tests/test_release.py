"""Releases: one version, a dated changelog, workflows that name what is there."""

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import dpmpc

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(release: ModuleType, tmp_path: Path) -> Path:
    for name in (release.HOME, "CHANGELOG.md", *release.COPIES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_version_stands_in_one_place_and_its_copies_agree(release: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dpmpc.__version__"}
    assert release.current() == dpmpc.__version__ and release.stale() == []


def test_every_text_that_names_the_version_is_set_by_a_release(release: ModuleType) -> None:
    """What one installs, builds or downloads by it: none names the last one after a release."""
    texts = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "SECURITY.md", "Dockerfile", "compose.yaml")),
    ]
    named = re.compile(rf"dpmpc(?::|==|-){re.escape(dpmpc.__version__)}")
    for path in texts:
        name = path.relative_to(ROOT).as_posix()
        whole = path.read_text(encoding="utf-8")
        told = (
            re.findall(f"{release.COPIES[name]}{re.escape(dpmpc.__version__)}", whole) if name in release.COPIES else []
        )
        assert len(named.findall(whole)) == len(told), f"{name} names the version where .ci/release.py does not set it"


def test_a_release_sets_version_and_date_everywhere(release: ModuleType, tree: Path) -> None:
    log, pending = tree / "CHANGELOG.md", tree / "changelog.d"
    log.write_text("# Changes\n\nWhat.\n\n## 9.0.0 (2030-01-01)\n\nFirst.\n")
    pending.mkdir()
    for name, text in (("a.fix.md", "Mended\nhere.\n"), ("b.breaking.md", "Gone.\n"), ("README.md", "How.\n")):
        (pending / name).write_text(text)
    release.write("9.1.0", tree, today="2030-01-31")
    said = "## 9.1.0 (2030-01-31)\n\n**Breaking**\n\n- Gone.\n\n**Mended**\n\n- Mended here.\n\n"
    assert log.read_text() == f"# Changes\n\nWhat.\n\n{said}## 9.0.0 (2030-01-01)\n\nFirst.\n"
    assert [path.name for path in pending.iterdir()] == ["README.md"]
    assert release.current(tree) == "9.1.0" and release.stale(tree) == []
    (tree / "CITATION.cff").write_text("version: 9.0.9\n")
    assert release.stale(tree) == ["CITATION.cff"]


def test_an_entry_that_is_written_already_is_dated_and_takes_what_is_pending(release: ModuleType, tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changes\n\n## 9.1.0 (unreleased)\n\nMuch.\n\n## 9.0.0\n\nFirst.\n")
    (tree / "changelog.d").mkdir()
    (tree / "changelog.d" / "a.feature.md").write_text("More.\n")
    release.write("9.1.0", tree, today="2030-01-31")
    said = "## 9.1.0 (2030-01-31)\n\nMuch.\n\n**New**\n\n- More.\n\n"
    assert (tree / "CHANGELOG.md").read_text() == f"# Changes\n\n{said}## 9.0.0\n\nFirst.\n"


def test_what_is_pending_is_of_a_known_kind(release: ModuleType) -> None:
    assert all(path.read_text(encoding="utf-8").strip() for path in release.changes())


@pytest.mark.parametrize(
    ("version", "pending", "said"),
    [
        ("0.0.1", "a.fix.md", "versions rise; got 0.0.1 after"),
        ("9.0", "a.fix.md", "a version is like 0.3.0"),
        ("9.0.0", "README.md", "9.0.0 has nothing in changelog.d/"),
        ("9.0.0", "a.news.md", "got a.news.md; rename it"),
        ("9.0.0", "a.md", "got a.md; rename it"),
    ],
)
def test_what_is_no_release_is_refused(release: ModuleType, tree: Path, version: str, pending: str, said: str) -> None:
    (tree / "changelog.d").mkdir()
    (tree / "changelog.d" / pending).write_text("A change.\n")
    before = (tree / "CHANGELOG.md").read_text()
    with pytest.raises(SystemExit, match=said):
        release.write(version, tree)
    assert release.current(tree) == dpmpc.__version__ and release.stale(tree) == []
    assert (tree / "CHANGELOG.md").read_text() == before


def test_candidates_stand_below_their_release(release: ModuleType) -> None:
    names = ["0.2.9", "0.3.0a1", "0.3.0a2", "0.3.0b1", "0.3.0rc1", "0.3.0", "0.3.1", "0.10.0", "1.0.0"]
    assert sorted(names, key=release.order) == names


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_workflows_name_what_is_there(path: Path) -> None:
    """Checked for syntax and names; what they do on the service that runs them is not."""
    workflow = yaml.safe_load(path.read_text())
    assert {"name", True, "permissions", "jobs"} <= set(workflow)  # YAML 1.1 reads `on` as true
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in workflow["jobs"].values():
        assert set(job.get("needs", [])) <= set(workflow["jobs"])
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        assert "uses" not in step or re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./-]+", step["uses"])
        for line in step.get("run", "").splitlines():
            checked = subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", line), text=True, check=False)
            assert checked.returncode == 0, line
            if line.startswith("make "):
                named = {word for word in line.split()[1:] if "=" not in word}
                assert named and named <= targets, line
            for name in re.findall(r"(?<![\w/])\.ci/[\w.]+", line):
                assert (ROOT / name).is_file(), line


def test_the_suite_runs_on_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)}
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    assert set(workflow["jobs"]["suite"]["strategy"]["matrix"]["python"]) == named
    wheels = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    platforms = {each["platform"] for each in wheels["jobs"]["wheel"]["strategy"]["matrix"]["include"]}
    linux = {f"{libc}_{machine}" for libc in ("manylinux", "musllinux") for machine in ("x86_64", "aarch64")}
    assert platforms == linux | {"macosx_arm64", "macosx_x86_64"}


def test_what_is_installed_is_what_was_tested() -> None:
    """Every package that a user gets has its tested version in the lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    names = [
        re.split(r"[^\w.-]", each)[0].lower()
        for each in (*project["dependencies"], *project["optional-dependencies"]["docs"])
    ]
    assert len(names) > 12 and not set(names) - lock
