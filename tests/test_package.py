"""What is installed: the sdist carries the kernels' sources; a wheel is built from it with a compiler and without."""

import fcntl
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NATIVE, ROWS = "dpmpc/mpc/native", "dpmpc/records"  # where extensions are


def build(what: str, where: Path, out: Path, **environment: str) -> Path:
    """The file that setuptools makes of the sources in `where`."""
    code = f"import setuptools.build_meta as b; print(b.build_{what}({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=where, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.strip().splitlines()[-1]


@pytest.fixture
def sources(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist. One worker at a time makes one, for setuptools works in the tree."""
    shared = tmp_path_factory.getbasetemp().parent
    with (shared / "sdist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made_already = list((shared / "sdist").glob("*.tar.gz")) if "PYTEST_XDIST_WORKER" in os.environ else []
        archive = made_already[0] if made_already else build("sdist", ROOT, shared / "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (made,) = (p for p in tmp_path.iterdir() if p.is_dir())
    return made


def test_the_sdist_carries_every_source_of_the_extension(sources: Path) -> None:
    for pattern in ("*.c", "*.h", "*.py", "*.pyi"):
        names = {p.name for p in (ROOT / NATIVE).glob(pattern)}
        assert names and names == {p.name for p in (sources / NATIVE).glob(pattern)}
        rows = {p.name for p in (ROOT / ROWS).glob(pattern)}
        assert bool(rows) == (pattern != "*.h") and rows == {p.name for p in (sources / ROWS).glob(pattern)}


@pytest.mark.slow
def test_a_wheel_works_without_a_compiler(sources: Path, tmp_path: Path) -> None:
    """The same samples come out of the NumPy twins. With a compiler: `.ci/wheel`."""
    wheel = build("wheel", sources, tmp_path, CC="/bin/false", LDSHARED="/bin/false")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        file.extractall(tmp_path / "site")
    assert not [n for n in names if n.startswith((f"{NATIVE}/_kernels.", f"{ROWS}/_rows.")) and not n.endswith(".pyi")]
    assert not [n for n in names if n.endswith((".c", ".h"))]
    code = (
        "import numpy as np, dpmpc; from dpmpc.mpc.native.choice import describe;"
        "from dpmpc.mpc.numbers.prg import Prg;"
        "from dpmpc.circuits.sampler import discrete_gaussian; from dpmpc.mpc.clear.noise import clear_noise;"
        "x = clear_noise(discrete_gaussian(1000.0), 500, Prg(b'seed'));"
        "print(dpmpc.__file__, describe().split()[0], int(np.abs(x).sum()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "DPMPC_NATIVE": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    where, kernels, total = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path) and kernels == "NumPy"
    here = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert here.stdout.split()[2] == total


LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)]*)\)")


@pytest.mark.parametrize("known", [False, True])
def test_the_page_of_the_package_leads_nowhere_that_is_not(sources: Path, tmp_path: Path, known: bool) -> None:
    """Without an address no link is relative and no picture is broken; with one all of README's are there, whole."""
    if known:
        settings, at = sources / "pyproject.toml", "https://example.org/tree"
        text = settings.read_text()
        for name, value in {"home": "https://example.org", "files": f"{at}/", "pictures": f"{at}-raw/"}.items():
            text = text.replace(f'\n{name} = ""', f'\n{name} = "{value}"')
        settings.write_text(text)
    (tmp_path / "made").mkdir()
    code = f"import setuptools.build_meta as b; b.prepare_metadata_for_build_wheel({str(tmp_path / 'made')!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=sources, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "made").rglob("METADATA")
    told = message_from_string(path.read_text(encoding="utf-8"))
    page, readme = told.get_payload(), (ROOT / "README.md").read_text(encoding="utf-8")
    assert isinstance(page, str) and told["Description-Content-Type"] == "text/markdown" and "<!--" not in page
    links, whole = LINK.findall(page), LINK.findall(readme)
    assert "# dpmpc\n" in page and "[Start]" in readme and "Start" in page and len(whole) > 20
    relative = [target for _, target in whole if ":" not in target]
    assert len(relative) > 20 and all((ROOT / target).exists() for target in relative)
    if known:
        assert len(links) == len(whole) and all(target.startswith("https://") for _, target in links)
        assert [target for mark, target in links if mark] == ["https://example.org/tree-raw/docs/one-copy.svg"]
        assert "Homepage, https://example.org" in told.get_all("Project-URL", [])
    else:
        assert links == [each for each in whole if ":" in each[1]] and told.get_all("Project-URL") is None


def test_what_is_built_holds_no_links_and_no_results(sources: Path, tmp_path: Path) -> None:
    """The tree's links are for tools that read it; the sdist has what its tests need."""
    assert not [p for p in sources.rglob("*") if p.is_symlink()]
    for name in ("LICENSE", "Makefile", "tests/test_package.py", "docs/mpyc.md", ".ci/constraints.txt", "cli/main.py"):
        assert (sources / name).is_file(), name
    assert not (sources / "dpmpc" / "cli").exists()


@pytest.mark.slow
def test_types_reach_programs_that_import_the_installed_wheel(sources: Path, tmp_path: Path) -> None:
    """By mypy, in an environment that has the wheel and nothing else; without py.typed a right program fails."""
    wheel = build("wheel", sources, tmp_path, CC="/bin/false", LDSHARED="/bin/false")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = Path(subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip())
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        file.extractall(site)
    assert not [n for n in names if "/results/" in n] and any(n.endswith("licenses/LICENSE") for n in names)
    right, wrong = "plan: dpmpc.Plan = dpmpc.Plan.read('plan.json')", "plan: int = dpmpc.Plan.read('plan.json')"

    def verdict(line: str) -> str:
        (tmp_path / "program.py").write_text(f"import dpmpc\n\n{line}\n")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    assert "Success" in verdict(right)
    assert "program.py:3: error: Incompatible types in assignment" in verdict(wrong)
    (site / "dpmpc" / "py.typed").unlink()
    assert "import-untyped" in verdict(right)
