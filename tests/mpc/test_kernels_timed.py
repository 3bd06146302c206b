"""`benchmarks/studies/kernels.py` times every kernel, and gives its twin the same work."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpmpc.benchmarks.studies import kernels
from dpmpc.mpc.native import choice

STUB = Path(choice.__file__).with_name("_kernels.pyi")
OTHERS = {"features", "restrict_to", "use_threads", "threads", "blank", "aes_schedule"}  # no loops over words
UNITS_ALONE = {"aes_words", "half_gates"}  # nothing calls them without AES units


def _done() -> list[str]:
    """Does all of the work once; its names."""
    names = []
    for name, job in kernels.jobs(8):
        job()
        names.append(name)
    return names


@pytest.mark.skipif(choice.compiled is None, reason="nothing is compiled, or DPMPC_NATIVE=off")
def test_every_kernel_is_timed_and_none_where_its_twin_is(monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[str] = set()
    compiled = choice.compiled

    def told(name: str) -> object:
        def call(*arguments: object) -> object:
            called.add(name)
            return getattr(compiled, name)(*arguments)

        return call

    names = set(re.findall(r"^def (\w+)", STUB.read_text(), re.MULTILINE))
    monkeypatch.setattr(choice, "compiled", SimpleNamespace(**{name: told(name) for name in names}))
    work = _done()
    assert names - OTHERS - UNITS_ALONE <= called
    called.clear()
    monkeypatch.setattr(choice, "compiled", None)
    assert _done() == work and not called


@pytest.mark.skipif(choice.compiled is None, reason="nothing is compiled, or DPMPC_NATIVE=off")
def test_kernels_and_twins_are_timed_by_turns() -> None:
    found = kernels.compare(8, 1)
    assert len(found) > 20 and all(ours > 0 and twin > 0 for ours, twin in found.values())
    assert choice.compiled is not None
