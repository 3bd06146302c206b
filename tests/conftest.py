"""What every test is given: accounts of its own, so that tests spend nothing of this user's, children that find the
suite's helpers whatever a command of an earlier test has set, kept bytecode, an ear for Ctrl-C, and an end."""

import atexit
import faulthandler
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import bytecode
from tests.refusals import hold_words

# Bytecode is kept even where the environment says otherwise: without it each of some hundred processes that tests start
# compiles the library for longer than it runs, and each worker compiles all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Ledgers are synced to disk before what they tell of may happen, some ten thousand times in all tests. Where memory has
# much room, temporary files are kept there: tests of ledgers take a sixth less processor time so, and a fifth less
# waiting; the calls are the same. Workers inherit it; whoever sets TMPDIR has them there.
ROOM, MEMORY = 8 << 30, Path("/dev/shm")


def has_room() -> bool:
    """Whether files may be kept and run in memory, and much of it is free."""
    try:
        disk, said = os.statvfs(MEMORY), Path("/proc/meminfo").read_text()
        limit = Path("/sys/fs/cgroup/memory.max")
        most = limit.read_text().strip() if limit.exists() else "max"
    except OSError:
        return False
    free = next(int(line.split()[1]) << 10 for line in said.splitlines() if line.startswith("MemAvailable:"))
    least = min(free, disk.f_bavail * disk.f_frsize, 2 * ROOM if most == "max" else int(most) - ROOM)
    return os.access(MEMORY, os.W_OK) and not disk.f_flag & os.ST_NOEXEC and least >= ROOM


if "PYTEST_XDIST_WORKER" not in os.environ and not os.environ.get("TMPDIR") and has_room():
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="", dir=MEMORY)
    os.chmod(tempfile.tempdir, 0o711)  # a database of the tests runs as another user
    atexit.register(shutil.rmtree, os.environ["TMPDIR"], ignore_errors=True)

# What a module's fixtures spend comes before any test's own account: it is not this user's either. Workers inherit it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["DPMPC_ACCOUNT"] = tempfile.mkdtemp(prefix="dpmpc-tests-account-")
    atexit.register(shutil.rmtree, os.environ["DPMPC_ACCOUNT"], ignore_errors=True)

# A shell starts what it leaves in the background deaf to Ctrl-C, and children inherit that; tests press it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WHOLE_RUNS = (  # folders of tests
    "consortium", "dossier", "estimators", "experiments", "local", "planning", "statistics", "synthesis",
)  # fmt: skip
FOREVER = 1200.0  # seconds; no test takes a tenth of it, and one that waits for ever would keep all others waiting


hold_words()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers find bytecode; where there are none, this process writes what it needs by itself. Workers share the
    cores, as with `make test`: libraries that take all of them for each spin, for longer than they work."""
    if "PYTEST_XDIST_WORKER" not in os.environ and getattr(session.config.option, "numprocesses", None):
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        bytecode.write(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What the tests are, and what they have imported, is looked through by no collection of garbage: each would take a
    fifth of a second for it, and a listener with TLS asks for some hundred. Nor while it comes to be."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """An end as any other: libraries would call what is left a leak. A worker's is not worth the seconds."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Says where each thread is and ends the process of a test that does not end; a worker's counts as a failure of
    that test, and another takes its place."""
    faulthandler.dump_traceback_later(FOREVER, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def own_accounts(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The user's account is below this session's temporary folder, and nothing that has no name was counted yet."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(_new(tmp_path_factory.getbasetemp())))
    os.environ.pop("DPMPC_PROCESS_ACCOUNT", None)
    if (estimators := sys.modules.get("dpmpc.estimators.spending")) is not None:
        estimators._SAID.clear()  # a process warns of each kind once
    yield
    os.environ.pop("DPMPC_PROCESS_ACCOUNT", None)


@pytest.fixture(autouse=True)
def helpers_are_found() -> Iterator[None]:
    """Commands keep the children of their process safe, and their files private; a test that comes after one in the
    same process is no child."""
    mask = os.umask(0o022)
    os.umask(mask)
    yield
    os.umask(mask)
    os.environ.pop("PYTHONSAFEPATH", None)


@pytest.fixture(scope="module")
def small_tables() -> Iterator[None]:
    """A module whose tests open many small tables: databases are lent again, and have one thread."""
    from tests import databases

    with databases.kept():
        yield


@pytest.fixture(scope="module", autouse=True)
def tables_of_runs(request: pytest.FixtureRequest) -> None:
    """Whole runs open small tables, most of them several: what a run says of them is the same from lent databases."""
    if request.path.parent.name in WHOLE_RUNS:
        request.getfixturevalue("small_tables")


_made = iter(range(10**9))


def _new(folder: Path) -> Path:
    return folder / f"account-{next(_made)}"
