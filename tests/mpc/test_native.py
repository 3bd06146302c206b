"""Compiled kernels against their NumPy twins, bit for bit, on every kind of processor this one can pretend to be; what
the extension refuses; which of the two is in use."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.mpc.native import choice, describe
from dpmpc.mpc.native.planes import transpose, transpose_twin

compiled_only = pytest.mark.skipif(choice.compiled is None, reason="nothing is compiled, or DPMPC_NATIVE=off")
ALL = tuple(choice.compiled.features()) if choice.compiled is not None else ()
# From a processor without vector units up to this one, a feature more each time.
LEVELS = [ALL[:k] for k in range(len(ALL) + 1)]


@pytest.fixture(params=LEVELS, ids=lambda level: "+".join(level) or "portable")
def level(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """The extension without some of this processor's features."""
    choice.compiled.restrict_to(request.param)
    yield request.param
    choice.compiled.restrict_to(ALL)


def draw(*shape: int) -> NDArray[np.uint64]:
    return np.random.default_rng(list(shape)).integers(0, 1 << 64, shape, dtype=np.uint64)


# -- which -----------------------------------------------------------------------------------------------------------
def _ask(setting: str, code: str = "from dpmpc.mpc import native; print(native.describe())") -> tuple[str, int]:
    environment = {**os.environ, "DPMPC_NATIVE": setting}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1], done.returncode


def test_the_environment_says_which_kernels_are_used() -> None:
    assert _ask("off") == ("NumPy", 0)
    assert _ask("on") == (describe() if choice.compiled is None or ALL == tuple(choice.compiled.features()) else "", 0)
    assert _ask("portable")[0] == ("NumPy" if choice.compiled is None else "C (portable)")
    said, code = _ask("nonsense")
    assert code and "DPMPC_NATIVE takes on, portable or off; got 'nonsense'" in said
    with pytest.raises(UsageError, match="mend it or unset it"):
        choice.choose("nonsense")


def test_the_twins_serve_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "compiled", None)
    assert describe() == "NumPy"
    assert (transpose(draw(64, 3), 64) == transpose_twin(draw(64, 3), 64)).all()


@compiled_only
def test_processor_features_are_named_and_only_taken_away() -> None:
    try:
        assert choice.compiled.restrict_to(()) == [] and describe() == "C (portable)"
        for name in ALL:
            assert choice.compiled.restrict_to((name,)) == [name]
        with pytest.raises(ValueError, match="'sse9'"):
            choice.compiled.restrict_to(("sse9",))
    finally:
        assert tuple(choice.compiled.restrict_to(ALL)) == ALL
    assert describe() == f"C ({', '.join(ALL)})" or not ALL


# -- transposes ------------------------------------------------------------------------------------------------------
@compiled_only
@pytest.mark.parametrize("words", [0, 1, 2, 7, 8, 9, 64, 100])
def test_transposes_equal_their_twin(level: tuple[str, ...], words: int) -> None:
    for rows_in in (0, 1, 61, 64):
        block = draw(rows_in, words)
        for rows_out in (0, 1, 61, 64):
            assert (transpose(block, rows_out) == transpose_twin(block, rows_out)).all()
    strided = draw(64, 2 * words)[:, ::2]
    assert (transpose(strided, 64) == transpose_twin(strided, 64)).all()


@compiled_only
@pytest.mark.parametrize(
    ("block", "out", "words", "says"),
    [
        (lambda: draw(64, 2).astype(np.int64), lambda: draw(64, 2), 2, "block must hold items of kind Q"),
        (lambda: draw(64, 4)[:, ::2], lambda: draw(64, 2), 2, "contiguous"),
        (lambda: draw(64, 2), lambda: draw(63, 2)[:, :1], 2, "contiguous"),
        (lambda: draw(64, 2), lambda: _read_only(draw(64, 2)), 2, "read-only"),
        (lambda: draw(65, 2), lambda: draw(64, 2), 2, "at most 64 rows"),
        (lambda: draw(64, 2), lambda: draw(64, 2), 3, "at most 64 rows of 3 words"),
        (lambda: draw(64, 2), lambda: draw(64, 2), -1, "at least 0"),
        (lambda: draw(64, 2), lambda: draw(64, 2), 0, "at most 64 rows"),
        (lambda: _odd(draw(64, 2)), lambda: draw(64, 2), 2, "kind Q; got =Q"),
        (lambda: b"no words at all.", lambda: draw(64, 2), 2, "kind Q"),
        (lambda: None, lambda: draw(64, 2), 2, "buffer|bytes-like"),
    ],
)
def test_buffers_are_checked_before_they_are_touched(
    block: Callable[[], object], out: Callable[[], object], words: int, says: str
) -> None:
    with pytest.raises((TypeError, ValueError, BufferError), match=says):
        choice.compiled.transpose(block(), out(), words)  # type: ignore[arg-type]


@compiled_only
def test_an_output_must_not_share_memory_with_an_input() -> None:
    block = draw(80, 2)
    with pytest.raises(ValueError, match="block and out must not share memory"):
        choice.compiled.transpose(block[:64], block[16:], 2)
    choice.compiled.transpose(block[:16], block[16:], 2)  # side by side is fine


def _read_only(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words.flags.writeable = False
    return words


def _odd(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same words at an address that is no multiple of 8."""
    raw = np.zeros(words.nbytes + 8, dtype=np.uint8)
    shifted: NDArray[np.uint64] = raw[4 + -raw.ctypes.data % 8 :][: words.nbytes].view(np.uint64).reshape(words.shape)
    shifted[:] = words
    return shifted


@compiled_only
def test_the_interpreter_goes_on_while_a_kernel_runs() -> None:
    """Another thread gets the interpreter's lock inside one long call, and nowhere else."""
    block, out = draw(64, 1 << 17), np.empty((64, 1 << 17), dtype=np.uint64)
    interval, go, seen = sys.getswitchinterval(), threading.Event(), []

    def wait() -> None:
        go.wait()
        seen.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    sys.setswitchinterval(1000)
    try:
        go.set()
        assert not seen
        choice.compiled.transpose(block, out, 1 << 17)
        assert seen
    finally:
        sys.setswitchinterval(interval)
        thread.join()
