"""A process whose kernels are others than those of the rest is named to every party, from start to log."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import HANG, errors_of, started
from test_last_word import NAMES, kits

from dpmpc.mpc.native import choice


@pytest.mark.skipif(choice.compiled is None, reason="all processes have the same kernels here")
def test_a_party_and_an_owner_without_compiled_kernels_are_named_at_every_site(tmp_path: Path) -> None:
    """charite and north are programs of their own that were told to go without; nobody else is named. It is said once,
    though the survey's parties meet and those of the training."""
    kits(tmp_path, surveyed=True)
    records = tmp_path / "records.csv"
    records.write_text("age,ill\n" + "".join(f"{20 + k},{'yes' if k % 3 else 'no'}\n" for k in range(60)))
    sites = {name: tmp_path / "kits" / name for name in (*NAMES, "north")}
    plain = {**os.environ, "DPMPC_NATIVE": "off", "PYTHONSAFEPATH": "1"}
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(started("join", sites[name])) for name in (NAMES[0], NAMES[2])]
        slow = []
        for words in (["charite"], ["north", "--csv", str(records)]):
            command = [sys.executable, "-m", "dpmpc", "join", str(sites[words[0]]), *words[1:]]
            slow.append(subprocess.Popen(command, env=plain, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
            stack.callback(slow[-1].kill)
        said = [errors_of(process) for process in others] + [each.communicate(timeout=HANG)[1] for each in slow]
        assert [process.returncode for process in (*others, *slow)] == [0] * 4, said
    for i, name in enumerate(NAMES):
        run = sites[name] / "run"
        logs = [(run / folder / f"party_{i}.log").read_text() for folder in ("survey", ".")]
        (line,) = [line for log in logs for line in log.splitlines() if " computes with " in line]
        assert "charite (party 1) computes with NumPy, and took" in line, line
        assert "north (owner 0) computes with NumPy, and took" in line, line
        assert "the slowest party is the speed of all" in line
        assert not any(f"{other} computes" in line for other in ("akh (party 0)", "insel (party 2)"))
