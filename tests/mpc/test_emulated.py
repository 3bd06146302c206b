"""The kernels for ARM, with NEON's units for AES and carry-less products, against their twins on any other processor:
cross-compiled, and run under QEMU by an ARM Python. `.ci/aarch64` fetches that one and runs this."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mpc.test_kernels_timed import OTHERS, STUB

TREE = Path(__file__).parents[2]
ROOT = Path(os.environ.get("DPMPC_AARCH64", TREE / "build" / "aarch64"))
COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
PYTHON = next(iter(sorted(ROOT.glob("usr/bin/python3.*[0-9]"))), None)
KERNELS = [f"tests/mpc/test_{name}.py" for name in ("native", "native_mersenne", "gf64", "garbled")]


def _missing() -> str:
    """What is not here; "" for nothing."""
    if platform.machine() == "aarch64":
        return "this processor is one, and all tests of kernels run on it"
    if shutil.which(COMPILER) is None or EMULATOR is None:
        return f"no {COMPILER} or no qemu-aarch64; install gcc-aarch64-linux-gnu and qemu-user"
    return "" if PYTHON else f"no Python for ARM in {ROOT}; .ci/aarch64 fetches one"


@pytest.mark.slow
@pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is here")
def test_kernels_for_arm_are_their_twins_under_emulation(tmp_path: Path) -> None:
    tools = {"CC": COMPILER, "LDSHARED": f"{COMPILER} -shared"}
    folders = [f"--build-lib={tmp_path}", f"--build-temp={tmp_path}/o"]
    build = [sys.executable, "setup.py", "--quiet", "build_ext", *folders]
    subprocess.run(build, cwd=TREE, env={**os.environ, **tools}, check=True, capture_output=True)
    (extension,) = tmp_path.glob("dpmpc/mpc/native/_kernels*.so")
    server = f"{EMULATOR} -L {ROOT} {PYTHON} -I -S -B {TREE}/tests/mpc/emulated_kernels.py {extension}"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mpc.emulated", "-p", "no:cacheprovider", *KERNELS]
    done = subprocess.run(
        tests, cwd=TREE, env={**os.environ, "DPMPC_EMULATED": server}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "features: aes pclmul\n" in done.stdout
    called = set(re.findall(r"\w+", done.stdout.split("kernels: ")[1]))
    assert set(re.findall(r"^def (\w+)", STUB.read_text(), re.MULTILINE)) - OTHERS <= called
