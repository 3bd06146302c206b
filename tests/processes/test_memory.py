"""The allocator keeps freed blocks: arrays of a share's size are not paid for in page faults again and again."""

import platform
import resource
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from dpmpc.processes.memory import keep_freed_blocks

if sys.argv[1] == "kept":
    keep_freed_blocks()
for turn in range(200):
    if turn == 20:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(40_000) for _ in range(3)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_freed_blocks_are_used_again() -> None:
    assert resource.getpagesize() == 4096 or pytest.skip("faults are counted in pages of 4 KiB")
    given_back, kept = _faults("given back"), _faults("kept")
    assert kept < 100 < given_back
