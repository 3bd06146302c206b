"""No secret decides a jump or an address in the machine code of the kernels: Valgrind follows every bit of them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpmpc.mpc.native import choice

HERE = Path(__file__).parent
STUB = Path(choice.__file__).with_name("_kernels.pyi")
DECIDES = {
    "cut": 1,  # whether a word of a stream is p, once in 2^61
    "inner": 12,  # returns a number of Python's, whose making depends on its size
}
PUBLIC = {"features", "restrict_to", "use_threads", "threads", "blank"}  # what takes no secret


def has_tools() -> bool:
    header = Path("/usr/include/valgrind/memcheck.h")
    return choice.compiled is not None and header.exists() and bool(shutil.which("valgrind") and shutil.which("cc"))


@pytest.mark.slow
@pytest.mark.skipif(
    not has_tools(), reason="needs the extension, valgrind (Debian's package valgrind) and a C compiler"
)
def test_no_jump_and_no_address_depends_on_a_secret(tmp_path: Path) -> None:
    """Outputs depend on the secrets, or the check would see nothing; a jump and an address that do are both caught.

    Every kernel in plain C, with AVX2, with AES and PCLMUL, and with all of them. What Valgrind does not run (VAES,
    VPCLMULQDQ, AVX-512) is compiled from the same lines, for wider registers.
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
    kernels = set(re.findall(r"^def (\w+)", STUB.read_text(), re.M)) - PUBLIC
    assert kernels == set(re.findall(r"kernels\.(\w+)\(", (HERE / "poisoned.py").read_text())) - PUBLIC
    levels = {level for _, level in found}
    assert len(levels) >= (4 if {"aes", "pclmul", "avx2"} <= set(choice.compiled.features()) else 1)
    for (name, level), (decided, tainted) in found.items():
        assert decided <= DECIDES.get(name, 0) and tainted, f"{name} on {level}: {done.stderr[-3000:]}"
