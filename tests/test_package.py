"""What is installed: the sdist carries the kernels' sources; a wheel is built from it with a compiler and without."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NATIVE = "dpmpc/mpc/native"


def build(what: str, where: Path, out: Path, **environment: str) -> Path:
    """The file that setuptools makes of the sources in `where`."""
    code = f"import setuptools.build_meta as b; print(b.build_{what}({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=where, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.strip().splitlines()[-1]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The unpacked sdist."""
    with tarfile.open(build("sdist", ROOT, tmp_path)) as file:
        file.extractall(tmp_path, filter="data")
    (made,) = (p for p in tmp_path.iterdir() if p.is_dir())
    return made


def test_the_sdist_carries_every_source_of_the_extension(sources: Path) -> None:
    for pattern in ("*.c", "*.h", "*.py", "*.pyi"):
        names = {p.name for p in (ROOT / NATIVE).glob(pattern)}
        assert names and names == {p.name for p in (sources / NATIVE).glob(pattern)}


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [None, "/bin/false"])
def test_a_wheel_works_with_a_compiler_and_without(sources: Path, tmp_path: Path, compiler: str | None) -> None:
    """Without one, the same samples come out of the NumPy twins."""
    wheel = build("wheel", sources, tmp_path, **({"CC": compiler, "LDSHARED": compiler} if compiler else {}))
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        file.extractall(tmp_path / "site")
    modules = [n for n in names if n.startswith(f"{NATIVE}/_kernels.") and not n.endswith(".pyi")]
    has_compiler = compiler is None and sysconfig.get_config_var("CC") is not None
    assert len(modules) == has_compiler
    assert not [n for n in names if n.endswith((".c", ".h"))]
    code = (
        "import numpy as np, dpmpc; from dpmpc.mpc.native import describe; from dpmpc.mpc.prg import Prg;"
        "from dpmpc.circuits.sampler import discrete_gaussian; from dpmpc.mpc.clear_noise import clear_noise;"
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
    assert Path(where).is_relative_to(tmp_path) and kernels == ("C" if has_compiler else "NumPy")
    here = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert here.stdout.split()[2] == total
