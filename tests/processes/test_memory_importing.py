"""While a command imports, Python looks for no garbage; from then on it does as ever."""

import gc
import subprocess
import sys

import pytest

from dpmpc.processes.memory import importing

_COUNTED = (
    "import gc, sys; sys.argv = ['dpmpc', 'train']; passes = [];"
    "gc.callbacks.append(lambda phase, info: passes.append(len(sys.modules)));"
    "from dpmpc.cli import main, train as command; from dpmpc.processes.memory import importing;"
    "before = len(passes), len(sys.modules);"
)
_IMPORTS = "exec('import dpmpc.consortium.start, dpmpc.aggregation.party.party')"


def counted(code: str) -> list[int]:
    """(modules imported, collections meanwhile, whether they go on)."""
    told = "print(len(sys.modules) - before[1], len(passes) - before[0], int(gc.isenabled()))"
    done = subprocess.run([sys.executable, "-c", _COUNTED + code + "\n" + told], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_imports_are_not_looked_through_for_garbage() -> None:
    modules, passes, on = counted(f"\nwith importing(): {_IMPORTS}")
    plain = counted(_IMPORTS)
    assert modules > 100 and plain[0] == modules
    assert passes <= 2 and on == 1  # the one that was due comes at the end
    assert plain[1] > 20


def test_what_was_imported_is_not_looked_through_later() -> None:
    code = (
        "import gc, sys; from dpmpc.processes.memory import importing; first = gc.get_freeze_count();"
        "\nwith importing(): import sys"
        "\nprint(gc.get_freeze_count() - first)"
        "\nwith importing(): import dpmpc.consortium.start"
        "\nprint(gc.get_freeze_count(), len(gc.get_objects()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nothing, frozen, young = map(int, done.stdout.split())
    assert nothing == 0  # where nothing was imported, what is there stays as it is
    assert frozen > 50_000 > 1000 > young


@pytest.mark.parametrize("usual", [True, False])
def test_collections_are_as_before_whatever_happens_meanwhile(usual: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if usual else gc.disable)()
        with pytest.raises(ImportError), importing():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled() is usual
    finally:
        (gc.enable if before else gc.disable)()


def test_a_command_that_is_only_named_loads_no_library_for_it() -> None:
    code = (
        "import sys, dpmpc.cli.main; print(*{'ctypes', 'numpy'} & set(sys.modules));"
        "import ctypes; print('ctypes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["", "True", ""]


def test_a_run_imports_nothing_that_few_runs_need() -> None:
    code = (
        "import sys, dpmpc.cli.train, dpmpc.consortium.start, dpmpc.local.owner_process;"
        "print(*sorted({'multiprocessing', 'sqlite3', 'tomllib', 'scipy', 'pandas', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
