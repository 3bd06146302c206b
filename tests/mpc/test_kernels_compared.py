"""How fast a process's kernels are, and what is said of those of several."""

import pytest

from dpmpc.mpc.native import choice
from dpmpc.mpc.native.choice import describe
from dpmpc.mpc.native.speed import MOST_SAID, Kernels, compared, kernels_in_use


def test_a_process_says_how_fast_its_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind of work; a factor is that of the kind in which two processes differ most."""
    here = kernels_in_use()
    assert here.names == describe() and len(here.pace) == 3 and all(pace > 0 for pace in here.pace.values())
    slow = Kernels("NumPy", {kind: pace * (2 + k) for k, (kind, pace) in enumerate(here.pace.items())})
    assert slow.slower_than(here) == pytest.approx(4) and here.slower_than(slow) == pytest.approx(1 / 2)
    assert here.slower_than(here) == 1
    monkeypatch.setattr(choice, "compiled", None)
    assert kernels_in_use.__wrapped__().names == "NumPy"


def test_processes_with_other_or_slow_kernels_are_named_with_the_factor() -> None:
    here = Kernels("AVX2, VAES", dict.fromkeys(kernels_in_use().pace, 2.0))
    slow = Kernels("NumPy", {kind: 2.0 * (10 + k) for k, kind in enumerate(here.pace)})
    busy = Kernels(here.names, {**here.pace, "key streams": 7.0})
    assert compared({"party 0": here, "party 1": here, "owner 0": None}) == compared({"party 0": slow}) == ""
    assert compared({"party 0": here, "party 1": Kernels(here.names, dict.fromkeys(here.pace, 5.9))}) == ""
    assert compared({"party 1": slow, "party 0": here, "owner 3": busy}).startswith(
        "warning: party 1 computes with NumPy, and took 10.0 to 12.0 times as long, by the kind of work; owner 3 took "
        "1.0 to 3.5 times as long, by the kind of work, with the same kernels; party 0 is the fastest, with AVX2, "
        "VAES, in a test of some milliseconds; the slowest party is the speed of all"
    )
    install, busy_or_slow = "install dpmpc from its wheel", "its processor is slower, or was shared"
    for named, other, says, not_said in (("owner 3", busy, busy_or_slow, install), ("x", slow, install, busy_or_slow)):
        line = compared({"party 0": here, named: other})
        assert says in line and not_said not in line, line
    late = Kernels(slow.names, {kind: 4 * pace for kind, pace in slow.pace.items()})
    alike = compared({"party 0": slow, "owner 0": slow})
    assert alike.startswith("warning: no process has compiled kernels: with NumPy noise takes 2 to 150 times as long")
    assert compared({"party 0": slow, "owner 0": late}).endswith(alike.removeprefix("warning: "))
    assert "no process has" not in compared({"party 0": slow, "party 1": here})
    told = Kernels.unpack(busy.pack())
    assert told is not None and told.names == busy.names and told.pace == pytest.approx(busy.pace)
    assert len(Kernels("x" * 1000, here.pace).pack()) == MOST_SAID
    escapes = Kernels.unpack(Kernels("a\x1b[2Jb\n", here.pace).pack())
    assert escapes is not None and escapes.names == "a [2Jb "
    nan = Kernels("x", dict.fromkeys(here.pace, float("nan"))).pack()
    for payload in (b"", bytes(12), bytes(13), nan, here.pack() + bytes(200)):
        assert Kernels.unpack(payload) is None
