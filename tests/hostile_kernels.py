"""Every compiled kernel, built with sanitizers outside the tree, handed what nobody should hand it.

    python -m tests.hostile_kernels [draws [seed]]

Calls that the tests of kernels make are recorded, up to 40 of each function. Each draw takes one of them and changes
one to three of its arguments: lengths of 0, 1, below zero and near 2^63; arrays cut short, empty, of another type, not
contiguous, not aligned, not to be written, twice the same; NaN, infinities, denormals, codes and places far out of
range. The kernel has to raise an exception or to return: sanitizers of addresses and of undefined behaviour end it
elsewhere, and an alarm where it does not end. What was found is printed with the draw's number, which a second run with
the same seed repeats. Needs a compiler with both sanitizers.
"""

import atexit
import contextlib
import copy
import faulthandler
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ("dpmpc.mpc.native._kernels", "dpmpc.records._rows", "dpmpc.intake._numbers")
TESTS = (
    "tests/mpc/test_native.py", "tests/mpc/test_native_mersenne.py", "tests/mpc/test_kernels_compared.py",
    "tests/records/test_rows.py", "tests/records/test_design.py",
    "tests/intake/test_numbers.py", "tests/intake/test_coded.py",
)  # fmt: skip
APART = {"use_threads", "threads", "features", "restrict_to", "blank"}  # no arrays; the last takes the memory it is to
Calls = dict[tuple[str, str], list[Any]]  # by module and function, what it was handed
_ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_MOST = 40  # that are found, and then enough
EACH, LARGEST = 40, 1 << 16  # calls of a function; bytes of an array that is recorded
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 63, 64, 65, 2**16, 2**31 - 1, 2**31, 2**61 - 1, 2**62, 2**63 - 1)
ODD = (np.nan, np.inf, -np.inf, 5e-324, -0.0, 0.5, -1.0, 1e9, 9.3e18, 1e300, -1e300)


def record(into: Path) -> None:
    """Runs the tests of kernels and keeps calls of each function. A plugin of pytest, `-p tests.hostile_kernels`."""
    found: Calls = {}

    def watched(module: str, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            calls = found.setdefault((module, name), [])
            if len(calls) < EACH and sum(each.nbytes for each in given if isinstance(each, np.ndarray)) <= LARGEST:
                with contextlib.suppress(TypeError):  # a memoryview: another call has an array
                    calls.append(copy.deepcopy(given))
            return real(*given)

        return call

    for module in KERNELS:
        kernel = importlib.import_module(module)
        for name in dir(kernel):
            if not name.startswith("_") and name not in APART:
                setattr(kernel, name, watched(module, name, getattr(kernel, name)))
    atexit.register(lambda: into.write_bytes(pickle.dumps({key: calls for key, calls in found.items() if calls})))


if target := os.environ.get("DPMPC_RECORDED"):
    record(Path(target))


def built(into: Path) -> None:
    """Builds the kernels with sanitizers. Errors: CalledProcessError where there is no such compiler."""
    # counters of a caller go round at 2^63; a length that does is seen by what it leads to
    flags = "-O1 -g -std=gnu11 -ffp-contract=off -fwrapv -fPIC -shared"
    flags += " -fsanitize=address,undefined -fno-sanitize-recover=undefined"
    include = f"-I{sysconfig.get_paths()['include']}"
    for name in KERNELS:
        path = into / f"{name.replace('.', '/')}.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        sources = sorted(str(each) for each in (ROOT / Path(*name.split(".")[:-1])).glob("*.c"))
        subprocess.run(["gcc", *flags.split(), include, *sources, "-o", str(path), "-lm"], check=True)


def loaded(folder: Path) -> dict[str, Any]:
    """The kernels below a folder, by name, without the package."""
    found = {}
    for name in KERNELS:
        path = folder / f"{name.replace('.', '/')}.so"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        found[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    return found


def changed(value: Any, others: Sequence[Any], rng: np.random.Generator) -> Any:
    """A hostile value in place of an argument."""
    if isinstance(value, tuple) and value and rng.random() < 0.8:
        at = int(rng.integers(len(value)))
        return (*value[:at], changed(value[at], others, rng), *value[at + 1 :])
    if isinstance(value, bool | int) and rng.random() < 0.9:
        return int(rng.choice(np.array(NUMBERS, dtype=object)))
    if isinstance(value, float):
        return float(rng.choice(ODD))
    if not isinstance(value, np.ndarray):
        return [None, (), b"", "x", np.zeros(3), 2**70][int(rng.integers(6))]
    match int(rng.integers(9)):
        case 0:
            return value[: int(rng.integers(len(value) + 1))].copy() if value.ndim else value
        case 1:
            return np.zeros(0, dtype=value.dtype)
        case 2:
            return value.astype(rng.choice(["u1", "u2", "i4", "f4", "u8", "i8", "f8"]))
        case 3:
            return np.repeat(value.reshape(-1), 2)[::2]
        case 4:
            room = np.zeros(value.nbytes + 1, dtype=np.uint8)
            room[1:] = np.frombuffer(value.tobytes(), dtype=np.uint8)
            return room[1:].view(value.dtype) if value.nbytes else value
        case 5:
            other = value.copy()
            other.flags.writeable = False
            return other
        case 6:
            arrays = [each for each in others if isinstance(each, np.ndarray)]
            return arrays[int(rng.integers(len(arrays)))]
        case _:
            odd = np.array(ODD)
            if value.dtype.kind in "iu":
                ends = np.iinfo(value.dtype)
                odd = np.array([min(max(n, int(ends.min)), int(ends.max)) for n in NUMBERS], dtype=value.dtype)
            mixed = value.copy().reshape(-1)
            some = rng.integers(max(1, len(mixed)), size=min(len(mixed), int(rng.choice([1, 3, 1000]))))
            mixed[some] = odd[rng.integers(len(odd), size=len(some))]
            return mixed.reshape(value.shape)


def hostile(calls: Calls, seed: int, draw: int) -> tuple[tuple[str, str], tuple[Any, ...]]:
    """The function of a draw, and what it is handed."""
    rng = np.random.default_rng((seed, draw))
    names = sorted(calls)
    name = names[int(rng.integers(len(names)))]
    given = list(copy.deepcopy(calls[name][int(rng.integers(len(calls[name])))]))
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(given)))
        given[at] = changed(given[at], given, rng)
    return name, tuple(given)


def attacked(kernels: dict[str, Any], calls: Calls, seed: int, begin: int, end: int) -> None:
    """Calls of draws begin ... end - 1; the process ends where a sanitizer says so. Prints what came of them."""
    came = {"returned": 0, "refused": 0}
    for draw in range(begin, end):
        name, given = hostile(calls, seed, draw)
        print(f"draw {draw} {'.'.join(name)}", file=sys.stderr, flush=True)
        signal.alarm(60)
        try:
            getattr(kernels[name[0]], name[1])(*given)
            came["returned"] += 1
        except (ValueError, TypeError, OverflowError, SystemError, MemoryError):
            came["refused"] += 1
        signal.alarm(0)
    print(f"{came['returned']} returned, {came['refused']} refused")


def main() -> int:
    """The program."""
    draws, seed = map(int, (*sys.argv[1:3], *("20000", "1")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        built(Path(folder) / "built")
        recorded = Path(folder) / "calls"
        own = {**os.environ, "DPMPC_RECORDED": str(recorded), **_ALONE}
        line = [sys.executable, "-m", "pytest", "-q", "-p", "tests.hostile_kernels", "-p", "no:xdist", *TESTS]
        done = subprocess.run(line, cwd=ROOT, env=own, text=True, capture_output=True, check=False)
        if not recorded.is_file():
            print(done.stdout[-2000:])
            return 1
        names = sorted(name for _, name in recorded_in(recorded))
        print(f"{len(names)} functions: {', '.join(names)}", flush=True)
        found, at = 0, 0
        while at < draws and found < _MOST:
            line = [sys.executable, "-m", "tests.hostile_kernels", "--child", folder, str(seed), str(at), str(draws)]
            done = subprocess.run(line, cwd=ROOT, env=_watched(), text=True, capture_output=True, check=False)
            lines = done.stderr.splitlines()
            last = [each for each in lines if each.startswith("draw ")]
            if done.returncode == 0:
                print(done.stdout.strip(), flush=True)
                break
            found += 1
            said = [each for each in lines if "runtime error" in each or "AddressSanitizer" in each or "    #" in each]
            where = f"FOUND, {(last or ['before the first'])[-1]}, code {done.returncode}"
            print(where, *said[:8], sep="\n  ", flush=True)
            if not last:
                print(done.stderr[-3000:])
                break
            at = int(last[-1].split()[1]) + 1
        print(f"{draws} draws, seed {seed}: {found} found")
        return 1 if found else 0


def _watched() -> dict[str, str]:
    """The environment of a process whose kernels have sanitizers."""
    paths = []
    for library in ("libasan.so", "libubsan.so"):
        asked = ["gcc", f"-print-file-name={library}"]
        paths.append(subprocess.run(asked, text=True, capture_output=True, check=True).stdout.strip())
    options = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    return {**os.environ, **_ALONE, **options, "LD_PRELOAD": " ".join(paths)}


def recorded_in(path: Path) -> Calls:
    """What `record` wrote there."""
    found: Calls = pickle.loads(path.read_bytes())  # noqa: S301
    return found


def _child() -> int:
    faulthandler.enable()
    folder, seed, begin, end = Path(sys.argv[2]), *map(int, sys.argv[3:6])
    attacked(loaded(folder / "built"), recorded_in(folder / "calls"), seed, begin, end)
    return 0


if __name__ == "__main__":
    raise SystemExit(_child() if sys.argv[1:2] == ["--child"] else main())
