"""Children import from where dpmpc was installed, whatever lies in the folder in which a command is given.

The folder holds a file for every module that could be meant: the standard library's, all that is installed, dpmpc
itself, `sitecustomize`. Each says that it was imported, and fails.
"""

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from runs import HANG

from dpmpc.processes import paths

ROOT = Path(__file__).parents[2]
HOSTILE = """import os
with open(os.environ["HOSTILE"], "a") as said: said.write({name!r} + "\\n")
raise SystemExit("imported from the current folder: " + {name!r})
"""
DPMPC = "import sys; from dpmpc.cli.main import main; sys.exit(main())"
LIBRARY = "import dpmpc; print(dpmpc.train('{}', data='synthetic', max_rows=200, dimension=4, {}).model.theta.shape)"
POOL = "from dpmpc.processes.executors import executor_maker as m; print(m('{}')(1).submit(pow, 2, 5).result())"
RUN = "--data synthetic --max-rows 200 --dimension 4 --iterations 1 --epsilon 1 --delta 1e-4"
STATS = "stats mean(age) --csv {} --owners-column site --bounds {} --epsilon 1 --delta 1e-4 --hopeless"
COMMANDS = {
    "parties": f"train {RUN} --owners 4 --out {{out}}",
    "two servers": f"train {RUN} --owners 4 -M 2 --out {{out}}",
    "sites": f"train {RUN} --owners 3 --role both --out {{out}}",
    "stats": STATS.format("{records}", "{bounds}") + " --out {out}",
    "sample": "sample --law gaussian --scale 4096 --count 2000 --open",
    "bench": "bench iteration -d 7 -m 3 -M 3",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder full of them, and the records and bounds of the commands."""
    folder = tmp_path_factory.mktemp("hostile")
    names = {*sys.stdlib_module_names, *packages_distributions(), "dpmpc", "cli", "circuits", "sitecustomize"}
    for name in {*names, "usercustomize", "rich", "mpmath"}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(HOSTILE.format(name=name))
    return folder


def python(*words: str | Path, folder: Path, said: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """This interpreter in the folder; only what `words` say keeps it from importing from there."""
    settings = {**os.environ, "HOSTILE": str(said), **environment}
    settings.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=settings, capture_output=True, text=True, timeout=HANG
    )


def clean(done: "subprocess.CompletedProcess[str]", said: Path) -> None:
    assert not said.exists(), said.read_text()
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_imports_from_the_current_folder(name: str, hostile: Path, tmp_path: Path) -> None:
    records, bounds = tmp_path / "records.csv", tmp_path / "bounds.toml"
    records.write_text("age,site\n" + "".join(f"{20 + k % 60},{'abc'[k % 3]}\n" for k in range(300)))
    bounds.write_text("age = [0, 120]\n")
    words = COMMANDS[name].format(out=tmp_path / "out", records=records, bounds=bounds).split()
    script = tmp_path / "dpmpc"  # as pip installs it: its own folder comes first, not the current one
    script.write_text(DPMPC)
    done = python(script, *words, folder=hostile, said=tmp_path / "said")
    clean(done, tmp_path / "said")


@pytest.mark.parametrize("kind", ["processes", "joblib"])
def test_no_pool_imports_from_the_current_folder(kind: str, hostile: Path, tmp_path: Path) -> None:
    if kind == "joblib":
        pytest.importorskip("joblib")
    script = tmp_path / "script.py"
    script.write_text(f"if __name__ == '__main__':\n    {POOL.format(kind)}\n")
    done = python(script, folder=hostile, said=tmp_path / "said")
    clean(done, tmp_path / "said")
    assert done.stdout == "32\n"


def test_no_party_of_the_library_imports_from_the_current_folder(hostile: Path, tmp_path: Path) -> None:
    """A program that calls the library: no command has made its children safe."""
    script = tmp_path / "script.py"
    settings = "iterations=1, owners=3, delta=1e-4"
    script.write_text(f"if __name__ == '__main__':\n    {LIBRARY.format(tmp_path / 'out', settings)}\n")
    done = python(script, folder=hostile, said=tmp_path / "said")
    clean(done, tmp_path / "said")
    assert done.stdout.startswith("(")


def test_the_folder_is_hostile(hostile: Path, tmp_path: Path) -> None:
    """Without safe paths a worker, and a pool, run what lies there."""
    python("-m", "dpmpc.processes.worker", folder=hostile, said=tmp_path / "worker")
    python("-c", "from multiprocessing.spawn import spawn_main", folder=hostile, said=tmp_path / "pool")
    assert (tmp_path / "worker").exists() and (tmp_path / "pool").read_text().strip()


def test_every_start_of_a_python_is_known() -> None:
    """What starts one imports safely by `processes.paths`; anything new is looked at here first."""
    starts = re.compile(r"sys\.executable|get_context|ProcessPoolExecutor\(|create_subprocess|os\.exec|os\.spawn")
    found = {
        str(path.relative_to(ROOT / "dpmpc"))
        for path in (ROOT / "dpmpc").rglob("*.py")
        if starts.search(path.read_text(encoding="utf-8")) and "benchmarks" not in path.parts
    }
    assert found == {f"processes/{name}.py" for name in ("executors", "nursery", "standing", "supervisor", "together")}


def test_a_scripts_folder_comes_last_unless_dpmpc_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = str(ROOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/script", "/installed", str(tmp_path), ""])
    assert paths.import_paths() == ["/installed", "/script", str(tmp_path)]
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", [home, "/installed"])
    assert paths.import_paths() == [home, "/installed"]
