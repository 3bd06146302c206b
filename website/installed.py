"""What installing the wheel takes: `python -m website.installed dist/dpmpc-*.whl` writes docs/project/installed.csv.

Three installs into new environments: one that brings files into the machine's caches and is not counted, one as the
pages say it (`OPTIONS`), one as pip does it without. Then sizes of what is there, and the processor time of compiling
it. `website.figures` puts the figures into docs/project/install.md. Processor time is that of pip and all it starts:
other work on the machine makes it longer by some, the clock's by any.
"""

import csv
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "project" / "installed.csv"
GROUPS = {
    "everybody": ("numpy", "gmpy2", "mpmath", "msgspec", "cryptography", "cffi", "pycparser", "click"),
    "scipy": ("scipy",),
    "records": ("duckdb", "nanoarrow", "zstandard"),
    "cores": ("threadpoolctl",),
    "mpyc": ("mpyc",),
    "dpmpc": ("dpmpc",),
}
OPTIONS = ("--no-compile",)  # of the documented command: `pip install --no-compile ./dpmpc-*.whl`
_WITH_PIP = ("pip", "setuptools")


def spent(command: Sequence[str]) -> tuple[float, float]:
    """The seconds that a command took by the clock, and of the processors."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    clock = time.perf_counter() - begin
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def installed(wheel: str, folder: Path, *options: str) -> tuple[float, float]:
    """As `spent`, of installing the wheel into a new environment."""
    venv.create(folder, with_pip=True)
    return spent([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *options, wheel])


def group(name: str) -> str:
    """The group of a distribution. Errors: KeyError for one that is in none: the page is to say who needs it."""
    return {each: row for row, names in GROUPS.items() for each in names}[name.lower().replace("_", "-")]


def rows_of(found: Sequence[Distribution], python: Path) -> list[dict[str, object]]:
    """Size in MB and seconds of compiling, by group, and of all. They were installed without bytecode."""
    size, compiling = dict.fromkeys(GROUPS, 0.0), dict.fromkeys(GROUPS, 0.0)
    for each in found:
        paths = [Path(str(path.locate())) for path in each.files or ()]
        size[group(each.name)] += sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
        texts = [str(path) for path in paths if path.suffix == ".py" and path.is_file()]
        for k in range(0, len(texts), 2000):
            compiling[group(each.name)] += spent([str(python), "-m", "compileall", "-q", *texts[k : k + 2000]])[1]
    rows: list[dict[str, object]] = [{"what": g, "size": size[g], "bytecode": compiling[g]} for g in GROUPS]
    return [*rows, {"what": "all", "size": sum(size.values()), "bytecode": sum(compiling.values())}]


def measure(wheel: str) -> list[dict[str, object]]:
    """The rows of the file."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as made:
        away = Path(made)
        installed(wheel, away / "warm", *OPTIONS)
        said, usual = installed(wheel, away / "said", *OPTIONS), installed(wheel, away / "usual")
        (packages,) = (away / "said" / "lib").glob("python*/site-packages")
        found = [each for each in distributions(path=[str(packages)]) if each.name not in _WITH_PIP]
        rows = rows_of(found, away / "said" / "bin" / "python")
        pip = subprocess.check_output([str(away / "usual" / "bin" / "pip"), "--version"], text=True).split()[1]
    versions = f"pip {pip}, CPython {platform.python_version()}"
    on = f"{time.strftime('%Y-%m-%d')}, {versions}, {os.cpu_count()} cores, load {load:.1f}"
    return [
        {"what": "machine", "said": on},
        {"what": "packages", "said": str(len(found))},
        {"what": "install", "clock": said[0], "processor": said[1]},
        {"what": "compiled", "clock": usual[0], "processor": usual[1]},
        *rows,
    ]


def main(arguments: Sequence[str]) -> int:
    """The command."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    rows = measure(arguments[0])
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["what", "clock", "processor", "size", "bytecode", "said"], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
