"""No secret decides a jump or an address in the machine code of the kernels: Valgrind follows every bit of them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpmpc.mpc.native import choice

HERE = Path(__file__).parent


def has_tools() -> bool:
    header = Path("/usr/include/valgrind/memcheck.h")
    return choice.compiled is not None and header.exists() and bool(shutil.which("valgrind") and shutil.which("cc"))


@pytest.mark.slow
@pytest.mark.skipif(
    not has_tools(), reason="needs the extension, valgrind (Debian's package valgrind) and a C compiler"
)
def test_no_jump_and_no_address_depends_on_a_secret(tmp_path: Path) -> None:
    """Outputs depend on the secrets, or the check would see nothing; a jump and an address that do are both caught.

    Plain C, AES units and AVX2 alike; AVX-512, which Valgrind does not run, is compiled from the same lines.
    """
    library = tmp_path / "poison.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(HERE / "poison.c"), "-o", str(library)], check=True)
    command = ["valgrind", "--quiet", "--tool=memcheck", "--undef-value-errors=yes", "--leak-check=no"]
    command += [sys.executable, "-I", "-S", str(HERE / "poisoned.py"), str(library), str(choice.compiled.__file__)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {}
    for line in done.stdout.splitlines():
        name, level, decided, tainted = line.split()
        found[name, level] = int(decided), int(tainted)
    assert found.pop(("control-branch", "here"))[0] > 0 and found.pop(("control-address", "here"))[0] > 0
    assert {name for name, _ in found} >= {"layer", "gather", "transpose", "sum"}
    for (name, level), (decided, tainted) in found.items():
        assert (decided, tainted > 0) == (0, True), f"{name} on {level}: {done.stderr[-3000:]}"
