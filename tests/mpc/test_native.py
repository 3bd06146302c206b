"""Compiled kernels against their NumPy twins, bit for bit, on every kind of processor this one can pretend to be; what
the extension refuses; which of the two is in use."""

import functools
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmpc.circuits.program import Layer
from dpmpc.mpc import native
from dpmpc.mpc.native import choice, lifts, ot
from dpmpc.mpc.native.aes import KeyStream, Stretch
from dpmpc.mpc.native.choice import describe
from dpmpc.mpc.native.hashes import keyed_hashes
from dpmpc.mpc.native.layers import Deposit, Masks, ProductLayer, Slots, add_sources
from dpmpc.mpc.native.planes import transpose, transpose_twin
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.residues import weighted_sum, weighted_sum_twin
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.privacy.assignment import hashes
from tests.refusals import refuses
from tests.runs import HANG

compiled_only = pytest.mark.skipif(choice.compiled is None, reason="nothing is compiled, or DPMPC_NATIVE=off")
ALL = tuple(choice.compiled.features()) if choice.compiled is not None else ()
# From a processor without vector units up to this one, a feature more each time; and this one without its widest.
WIDE = ("avx512", "avx2")
LEVELS = [
    *(ALL[:k] for k in range(len(ALL) + 1)),
    *(tuple(f for f in ALL if f not in WIDE[: k + 1]) for k in range(2) if WIDE[k] in ALL),
]


@pytest.fixture(params=LEVELS, ids=lambda level: "+".join(level) or "portable")
def level(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """The extension without some of this processor's features."""
    choice.compiled.restrict_to(request.param)
    yield request.param
    choice.compiled.restrict_to(ALL)


def draw(*shape: int) -> NDArray[np.uint64]:
    return drawn(shape).copy()


@functools.cache
def drawn(shape: tuple[int, ...]) -> NDArray[np.uint64]:
    return np.random.default_rng(list(shape)).integers(0, 1 << 64, shape, dtype=np.uint64)


# -- which -----------------------------------------------------------------------------------------------------------
def _ask(setting: str, code: str = "from dpmpc.mpc.native import choice; print(choice.describe())") -> tuple[str, int]:
    environment = {**os.environ, "DPMPC_NATIVE": setting}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1], done.returncode


def test_the_environment_says_which_kernels_are_used() -> None:
    assert _ask("off") == ("NumPy", 0)
    assert _ask("on") == (describe() if choice.compiled is None or ALL == tuple(choice.compiled.features()) else "", 0)
    assert _ask("portable")[0] == ("NumPy" if choice.compiled is None else "C (portable)")
    for wrong in ("nonsense", "aes,nonsense", "portable,aes", ","):
        said, code = _ask(wrong)
        assert code and "DPMPC_NATIVE takes on, portable, off, or some features" in said and f"got {wrong!r}" in said
    if ALL:
        assert _ask(",".join(reversed(ALL[1:])))[0] == f"C ({', '.join(ALL[1:])})"
    with refuses("choice", "nonsense", "got "):
        choice.choose("nonsense")


def test_the_twins_serve_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "compiled", None)
    assert describe() == "NumPy"
    assert (transpose(draw(64, 3), 64) == transpose_twin(draw(64, 3), 64)).all()


def test_processes_that_start_at_once_compile_and_write_nothing() -> None:
    """Nothing is compiled when a party starts, so nothing can be compiled thrice or read half-written."""
    folder = Path(native.__file__).parent
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.iterdir() if p.is_file()}
    code = "import sys; sys.stdin.read(1); from dpmpc.mpc.native import choice; print(choice.describe())"
    command = [sys.executable, "-B", "-c", code]
    parties = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for party in parties:
        assert party.stdin is not None
        party.stdin.write("x")  # all wait for this, so that they import together
        party.stdin.flush()
    assert [party.communicate(timeout=HANG)[0].strip() for party in parties] == [_ask("")[0]] * 3
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.iterdir() if p.is_file()} == before


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
    for rows_in in (0, 1, 2, 3, 61, 64):
        block = draw(rows_in, words)
        for rows_out in (0, 1, 2, 3, 61, 64):
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


# -- AES ---------------------------------------------------------------------------------------------------------------
@compiled_only
def test_key_streams_are_openssls(level: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of every length up to several chunks, from even and odd words on."""
    sizes = [*range(70), 1000, 3, 4097, 1]
    for key in (bytes(16), bytes(range(16)), b"\xff" * 16):
        stream = KeyStream(key)
        found = [stream.words((size,)) for size in sizes]
        with monkeypatch.context() as patched:
            patched.setattr(choice, "compiled", None)
            twin = KeyStream(key)
            assert all((words == twin.words((len(words),))).all() for words in found)
    assert stream.words((2, 3)).shape == (2, 3)


@compiled_only
def test_a_key_stream_goes_on_from_any_word() -> None:
    if "aes" not in ALL:
        pytest.skip("no AES unit")
    schedule, whole, part = choice.compiled.aes_schedule(bytes(16)), draw(300), draw(7)
    for far in (0, 1 << 33, (1 << 34) + 1):  # the counter is more than 32 bits
        choice.compiled.aes_words(schedule, far, whole)
        for start in (0, 1, 2, 31, 32, 33, 200):
            choice.compiled.aes_words(schedule, far + start, part)
            assert (part == whole[start : start + 7]).all()


@compiled_only
def test_a_key_stream_is_added_from_any_word_in_any_length(level: tuple[str, ...]) -> None:
    """Nothing beyond the last word is written."""
    if "aes" not in level:
        pytest.skip("no AES unit")
    schedule, given = choice.compiled.aes_schedule(bytes(range(16))), draw(300)
    whole, out = np.empty(310, dtype=np.uint64), np.empty(300, dtype=np.uint64)
    choice.compiled.aes_words(schedule, 0, whole)
    for start in (0, 1, 2, 5):
        for size in [*range(140), 255, 256, 257, 299]:
            out[:] = 7
            add_sources((given[:size], Stretch(schedule, start)), out[:size])
            assert (out[:size] == given[:size] ^ whole[start : start + size]).all()
            assert (out[size:] == 7).all()


@compiled_only
def test_aes_refuses_what_does_not_fit() -> None:
    if "aes" not in ALL:
        pytest.skip("no AES unit")
    for key in (bytes(15), bytes(17)):
        with pytest.raises(ValueError, match="16"):
            choice.compiled.aes_schedule(key)
    with pytest.raises(ValueError, match="at least 176 items"):
        choice.compiled.aes_words(bytes(175), 0, draw(4))
    schedule = bytes(176)
    try:
        choice.compiled.restrict_to(())
        with pytest.raises(RuntimeError, match="no AES unit"):
            choice.compiled.aes_words(schedule, 0, draw(4))
    finally:
        choice.compiled.restrict_to(ALL)


# -- sums of products ------------------------------------------------------------------------------------------------
@compiled_only
@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 1025])
def test_weighted_sums_equal_their_twin_and_pythons(level: tuple[str, ...], count: int) -> None:
    edges = [0, 1, field.P - 1, field.P, field.P + 1, 2**64 - 1, 7 * field.P, 8 * field.P - 1]
    factors = [1, 0, field.P - 1, -1, 3, 2**60, 12345678901234567, -2]
    values = [np.resize(np.array(edges[k:] + edges[:k], dtype=np.uint64), count) for k in range(len(factors))]
    values[0] ^= draw(count)
    for terms in (1, 2, len(factors)):
        for constant in (0, field.P - 1, -5):
            found = weighted_sum(values[:terms], factors[:terms], constant)
            assert (found == weighted_sum_twin(values[:terms], factors[:terms], constant)).all()
            wanted = [(constant + sum(int(v) * f for v, f in zip(row, factors[:terms], strict=True))) % field.P
                      for row in zip(*values[:terms], strict=True)]  # fmt: skip
            assert found.tolist() == wanted


@compiled_only
def test_weighted_sums_check_their_arguments() -> None:
    run, out = choice.compiled.weighted_sum, draw(4)
    factors = np.ones(2, dtype=np.uint64)
    for values, used, constant in [
        ((draw(4), draw(5)), factors, 0),
        ((draw(4),), np.full(1, field.P, dtype=np.uint64), 0),
        ((draw(4), draw(4)), factors[:1], 0),
        ((out,), factors, 0),
        ((draw(4),), factors, field.P),
        (tuple(draw(4) for _ in range(65)), np.ones(65, dtype=np.uint64), 0),
    ]:
        with pytest.raises(ValueError, match=r"values|factors|constant|terms"):
            run(values, used, constant, out)


# -- layers ----------------------------------------------------------------------------------------------------------
def random_layer(slots: int, seed: int) -> Layer:
    """Loads, XORs of every length and ANDs, of random slots."""
    rng = np.random.default_rng(seed)
    xors: list[int] = []
    for _ in range(40):
        operands = rng.permutation(slots)[: rng.integers(1, 9)].tolist()
        xors += [int(rng.integers(2, slots)), len(operands), *operands]
    places = rng.permutation(slots)  # of results, apart from those of operands
    ands = np.stack([places[:15], *rng.choice(places[15:], (2, 15))], axis=1).astype(np.int32)
    nothing = np.zeros((0, 3), dtype=np.int32)
    return Layer(nothing[:, 0], nothing, nothing[:, :2], np.array(xors, dtype=np.int32), ands)


def slots_of(slots: int, components: int, words: int, tile: int) -> Slots:
    made = Slots(slots, components, words, tile)
    made.state[:] = draw(*made.state.shape)
    return made


def run_layer(n: int, t: int, party: int, words: int, tile: int, seed: int) -> tuple[NDArray[np.uint64], ...]:
    """All that a random layer leaves behind: results, every slot, a message, and a copy of what was deposited."""
    layout, layer = SharingLayout.of(n, t), random_layer(50, seed)
    components = len(layout.mine(party))
    target = layout.mine(party).index(layout.target(party))
    products, others = ProductLayer(layout.products(party), target), [k for k in range(components) if k != target]
    slots, rows = slots_of(50, components, words, tile), draw(15, words)
    masks = Masks(
        [(k, rows ^ np.uint64(k)) for k in others[: seed + 1]],
        [(k % components, rows >> np.uint64(k)) for k in range(components + seed)],
    )
    copy, message = draw(15, words), draw(15, words)
    deposits = [
        Deposit(layer.results, k, tuple(rows ^ np.uint64(j) for j in range(k % 4)), k % 2 == 0, None if k else copy)
        for k in range(components)
    ]
    slots.run(layer, deposits, products, masks, message)
    return slots.gather(layer.results), slots.gather(np.arange(50, dtype=np.int32)), message, copy


@functools.cache
def run_by_twin(*case: int) -> tuple[NDArray[np.uint64], ...]:
    """The same by NumPy, once for all kinds of processor."""
    with pytest.MonkeyPatch().context() as patched:
        patched.setattr(choice, "compiled", None)
        return run_layer(*case)


@compiled_only
@pytest.mark.parametrize(("n", "t", "party"), [(1, 0, 0), (3, 0, 1), (3, 1, 0), (3, 1, 2), (5, 2, 3)])
@pytest.mark.parametrize("words", [0, 1, 8, 31, 32, 41, 70])
def test_layers_equal_their_twin(level: tuple[str, ...], n: int, t: int, party: int, words: int) -> None:
    for tile in (8, 24, 32, 64):
        for seed in range(2):
            case = n, t, party, words, tile, seed
            assert all((a == b).all() for a, b in zip(run_layer(*case), run_by_twin(*case), strict=True))


@compiled_only
def test_one_thread_has_whole_rows_and_several_have_tiles_for_each() -> None:
    choice.use_threads(1)  # a run in this process may have asked for more
    try:
        assert Slots(3, 2, 1563).state.shape == (1, 3, 2, 1568)
        choice.use_threads(2)
        tiles, _, _, tile = Slots(3, 2, 1563).state.shape
        assert tiles >= 8 and 128 <= tile and tiles == -(-1563 // tile)
        assert Slots(3, 2, 40).state.shape == (1, 3, 2, 40)
    finally:
        choice.use_threads(1)


def test_no_result_depends_on_tiles_or_on_what_memory_held(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, everything = random_layer(20, 3), np.arange(20, dtype=np.int32)
    results = []
    for tile, twins in [(8, False), (32, False), (64, False), (64, True)]:
        if twins:
            monkeypatch.setattr(choice, "compiled", None)
        slots = slots_of(20, 2, 45, tile)
        slots.run(layer, [Deposit(everything, k, (draw(20, 45) ^ np.uint64(k),)) for k in range(2)])
        results.append(slots.gather(everything))
    assert all((r == results[0]).all() for r in results)


GOOD = {"slots": 10, "components": 2, "tile": 8, "words": 12}


@compiled_only
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"xors": [2, 1, 10]}, "xors must lie in 0 .. 9"),
        ({"xors": [-1, 1, 3]}, "xors must lie in"),
        ({"xors": [2, 0]}, "lists"),
        ({"xors": [2, 3, 4, 5]}, "lists"),
        ({"xors": [2, -1, 4]}, "lists"),
        ({"xors": [2, 2**31 - 1, 4]}, "lists"),
        ({"ands": [[2, 3, 10]]}, "ands must lie"),
        ({"ands": [[2, 3]]}, "rows of three"),
        ({"pairs": [0, 1, 2]}, "pairs must lie in 0 .. 1"),
        ({"pairs": [0, 1]}, "lists"),
        ({"deposits": (([10], 0, ()),)}, "slots of a deposit"),
        ({"deposits": (([3], 2, ()),)}, "component of a deposit"),
        ({"deposits": (([3], -1, ()),)}, "component of a deposit"),
        ({"deposits": (([3, 4], 0, (12,)),)}, "2 rows of 12 words"),
        ({"copy": draw(11)}, "a copy must hold 1 rows"),
        ({"target": 2}, "component of the message"),
        ({"target": -1}, "component of the message"),
        ({"own": ((0, 24),)}, "a mask must hold 1 rows"),
        ({"others": ((1, 24),)}, "a mask must hold 1 rows"),
        ({"own": ((2, 12),)}, "component of a mask"),
        ({"others": ((-1, 12),)}, "component of a mask"),
        ({"own": ((1, 12),)}, "one own mask, or the message"),
        ({"own": ((0, 12), (0, 12))}, "one own mask, or the message"),
        ({"message": None}, "own masks are for a message"),
        ({"message": 11}, "message must hold 1 rows of 12"),
        ({"state": 319}, "2 tiles of 160 words"),
        ({"words": 17}, "3 tiles"),
        ({"words": -1}, "a state has"),
        ({"tile": 12}, "multiple of 8"),
        ({"tile": 0}, "multiple of 8"),
        ({"components": 0}, "a state has"),
        ({"kept": (draw(24), draw(24), draw(12), -1, False)}, "kept must hold rows"),
        ({"kept": (draw(1), draw(1), draw(1), 0, False)}, "kept must hold rows"),
        ({"kept": (draw(240), draw(242), draw(120), 0, True)}, "arrays of one size"),
        ({"kept": (draw(240), draw(241)[1:], draw(121), 0, True)}, "arrays of one size"),
    ],
)
def test_layers_check_every_index_and_size(change: dict[str, object], says: str) -> None:
    def ints(values: object) -> NDArray[np.int32]:
        return np.array(values, dtype=np.int32)

    def call(**c: object) -> None:
        v: dict[str, Any] = {**GOOD, "xors": [2, 2, 3, 4], "ands": [[2, 3, 4]], "pairs": [0, 1, 1], "own": ((0, 12),)}
        v |= {"deposits": (([3], 1, (12,)),), "message": 12, "state": 320, "kept": None, "target": 1, "copy": None}
        v |= {"others": ((1, 12),), **c}
        deposits = tuple((ints(s), k, tuple(map(draw, blocks)), True, v["copy"]) for s, k, blocks in v["deposits"])
        shape = (v["slots"], v["components"], v["tile"], v["words"])
        own, others = (tuple((k, draw(size)) for k, size in v[which]) for which in ("own", "others"))
        message = None if v["message"] is None else draw(v["message"])
        choice.compiled.run_layer(
            draw(v["state"]), shape, deposits, ints(v["xors"]), ints(v["ands"]), ints(v["pairs"]), v["target"], own,
            others, message, v["kept"],
        )  # fmt: skip

    call()
    with pytest.raises(ValueError, match=says):
        call(**change)


@compiled_only
def test_layers_do_not_write_where_they_read() -> None:
    state, message, nothing = draw(320), draw(12), np.zeros(0, dtype=np.int32)
    ands, pairs = np.array([[2, 3, 4]], dtype=np.int32), np.array([0, 1, 1], dtype=np.int32)
    shape = (10, 2, 8, 12)
    run = choice.compiled.run_layer
    with pytest.raises(ValueError, match="share memory"):
        run(state, shape, (), nothing, ands, pairs, 0, (), (), state[:12], None)
    for masks in (((1, message),), ()), ((), ((0, message),)):
        with pytest.raises(ValueError, match="share memory"):
            run(state, shape, (), nothing, ands, pairs, 0, *masks, message, None)
    for source, copy in ((message, None), (state[5:17], None), (draw(12), message), (draw(12), state[5:17])):
        deposits = ((ands[:, 0].copy(), 0, (source,), False, copy),)
        with pytest.raises(ValueError, match="share memory"):
            run(state, shape, deposits, nothing, ands, pairs, 0, (), (), message, None)
    rows = draw(12)
    with pytest.raises(ValueError, match="share memory"):
        run(state, shape, ((ands[:, 0].copy(), 0, (rows,), False, rows),), nothing, ands, pairs, 0, (), (), None, None)
    kept = (draw(24), draw(1, 24)[0], rows, 0, False)
    with pytest.raises(ValueError, match="share memory"):
        run(state, shape, ((ands[:, 0].copy(), 0, (rows,), False, None),), nothing, ands, pairs, 0, (), (), None, kept)
    with pytest.raises(ValueError, match="share memory"):
        choice.compiled.gather(state, shape, ands[0], state[:72])


# -- oblivious transfers -----------------------------------------------------------------------------------------------
@compiled_only
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_columns_of_transfers_equal_their_twin(level: tuple[str, ...], k: int) -> None:
    for found, due in zip(transfers(k, False), transfers_by_twin(k), strict=True):
        assert all((a == b).all() for a, b in zip(found, due, strict=True))


def transfers(k: int, twin: bool) -> list[tuple[NDArray[np.uint64], ...]]:
    """Planes, and what was folded into them, of some stretches of columns."""
    keys, done = draw(128 // k << k, 2).view(np.uint8), []
    masks = np.where(draw(128) & np.uint64(1), np.uint64(2**64 - 1), np.uint64(0))
    for words, position in ((1, 0), (5, (9 << 33) + 4), (33, 32), (70, 1 << 33)):
        fixes = draw(128 // k - 1, words)
        for more in ((draw(128 // k, words),), (draw(0), fixes, masks)):
            arrays = draw(128, words), *(array.copy() for array in more)
            ot.columns(keys.tobytes() if twin else ot.schedule_of(keys), k, position, *arrays)
            done.append(arrays)
    return done


@functools.cache
def transfers_by_twin(k: int) -> list[tuple[NDArray[np.uint64], ...]]:
    return transfers(k, True)


@compiled_only
def test_a_build_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone goes on, and its extension is the old one: the twins are used, and no call fails for its arguments."""
    assert choice.choose("on") is choice.compiled
    monkeypatch.setattr(choice, "KERNELS", choice.KERNELS + 1)
    assert choice.choose("on") is None


@compiled_only
def test_hashes_of_transfers_equal_their_twin(level: tuple[str, ...]) -> None:
    key = draw(1, 2).view(np.uint8)
    for words in (1, 7, 8, 9, 40):
        planes, tweaks, offsets = draw(128, words), draw(64 + words, 2), draw(2, 2)
        for parts in (1, 2):
            found = [draw(2, parts, 64, words) for _ in range(2)]
            ot.hashes(planes, ot.schedule_of(key), tweaks, offsets, found[0])
            ot.hashes(planes, key.tobytes(), tweaks, offsets, found[1])
            assert (found[0] == found[1]).all()


def test_a_hash_is_the_block_under_the_cipher_and_itself() -> None:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key, planes, offset, out = draw(1, 2).view(np.uint8), draw(128, 2), draw(1, 2), draw(1, 2, 64, 2)
    tweaks = draw(64 + 2, 2)
    ot.hashes(planes, ot.schedule_of(key), tweaks, offset, out)
    row = sum(int(planes[i, 1] >> np.uint64(5)) % 2 << i for i in range(128))
    for low, high in (offset[0].tolist(), tweaks[5].tolist(), tweaks[64 + 1].tolist()):
        row ^= low | high << 64
    block = row.to_bytes(16, "little")
    hashed = Cipher(algorithms.AES(key.tobytes()), modes.ECB()).encryptor().update(block)
    assert int.from_bytes(hashed, "little") ^ row == int(out[0, 0, 5, 1]) | int(out[0, 1, 5, 1]) << 64


@compiled_only
def test_transfers_refuse_what_does_not_fit() -> None:
    if "aes" not in ALL:
        pytest.skip("no AES unit")
    schedules, none = ot.schedule_of(draw(512, 2).view(np.uint8)), draw(0)
    with pytest.raises(ValueError, match="1 to 8 levels; got 9"):
        choice.compiled.ot_columns(schedules, 9, 0, draw(128, 2), none, none, none)
    for planes, sums, fixes, masks in (
        (draw(127, 2), none, none, none),
        (draw(128, 2), draw(31, 2), none, none),
        (draw(128, 2), none, draw(30, 2), draw(128)),
        (draw(128, 2), none, draw(31, 2), draw(127)),
    ):
        with pytest.raises(ValueError, match="do not fit each other"):
            choice.compiled.ot_columns(schedules, 4, 0, planes, sums, fixes, masks)
    both = draw(256, 2)
    with pytest.raises(ValueError, match="must not share memory"):
        choice.compiled.ot_columns(schedules, 4, 0, both[:128], both[100:132], none, none)
    key = ot.schedule_of(draw(1, 2).view(np.uint8))
    for planes, tweaks, offsets, out in (
        (draw(127, 2), draw(66, 2), draw(1, 2), draw(64, 2)),
        (draw(128, 2), draw(66, 2), draw(3), draw(64, 2)),
        (draw(128, 2), draw(66, 2), draw(2, 2), draw(64, 2)),
        (draw(128, 2), draw(66, 2), draw(1, 2), draw(3, 64, 2)),
        (draw(128, 2), draw(65, 2), draw(1, 2), draw(64, 2)),
    ):
        with pytest.raises(ValueError, match="128 planes, pairs of offsets"):
            choice.compiled.ot_hashes(planes, key, tweaks, offsets, out)


@compiled_only
@pytest.mark.parametrize("words", [1, 7, 8, 9, 40])
def test_lifts_equal_their_twin(level: tuple[str, ...], words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lifts with and without rows that are sent, coefficients that are a power of two, negative, or zero; strings of a
    few lifts among those of more."""
    kernels, count = choice.compiled, 4
    coefficients = np.array([1 << 20, 2**64 - 3, 0, 5], dtype=np.uint64)
    sent = np.array([26, 0, 7, 63], dtype=np.int32)
    strings, choices, told = draw(2, 64, count + 2, words)[:, :, 1:-1], draw(count, words), draw(96, words)
    found = []
    for compiled in (kernels, None):
        offered, chosen = draw(3, 64 * words)[1:].copy()
        rows, bits = np.zeros((96, words), dtype=np.uint64), np.zeros((count, words), dtype=np.uint64)
        with monkeypatch.context() as patch:
            patch.setattr(choice, "compiled", compiled)
            lifts.offered(strings[0], strings[1], coefficients, sent, offered, rows, bits)
            lifts.chosen(strings[0], coefficients, sent, chosen)
            between = chosen.copy()
            lifts.finished(choices, told, coefficients, sent, chosen)
        found.append((offered, rows, bits, between, chosen))
    assert all((a == b).all() for a, b in zip(*found, strict=True))
    assert all(array.any() for array in found[0]) and (found[0][3] != found[0][4]).any()


@compiled_only
def test_lifts_refuse_what_does_not_fit() -> None:
    strings, c, sent, total = draw(64, 2, 3), draw(2), np.array([4, 0], dtype=np.int32), draw(192)
    for wrong in (strings[:63], strings[:, :1], strings[:, :, ::-1], strings.astype(np.int64), strings.swapaxes(0, 1)):
        with pytest.raises(ValueError, match="64 rows of 2 lifts' 3 words"):
            choice.compiled.lifts_chosen(wrong, c, sent, total)
    for much in (-1, 64):
        with pytest.raises(ValueError, match="0 to 63 planes; got"):
            choice.compiled.lifts_chosen(strings, c, np.array([4, much], dtype=np.int32), total)
    with pytest.raises(ValueError, match="a total 64 rows"):
        choice.compiled.lifts_chosen(strings, c, sent, total[:191])
    with pytest.raises(ValueError, match="rows must hold 4 planes"):
        choice.compiled.lifts_offered(strings, strings, c, sent, total, draw(5, 3), draw(2, 3))
    with pytest.raises(ValueError, match="must not share memory"):
        choice.compiled.lifts_offered(strings, strings, c, sent, total, total[:12], draw(2, 3))
    with pytest.raises(ValueError, match="what was told 4 rows"):
        choice.compiled.lifts_finished(draw(2, 3), draw(3, 3), c, sent, total)


# -- hashes of ids ---------------------------------------------------------------------------------------------------
@compiled_only
@pytest.mark.parametrize("key", [b"k", bytes(range(16)), bytes(64)], ids=len)
def test_hashes_of_ids_are_those_of_the_standard_library(key: bytes) -> None:
    """Texts of one block and of several, in ASCII and not; places, across every new digit."""
    texts = ["x" * n for n in (1, 127, 128, 129, 255, 256, 257, 1000)] + ["é", "名前" * 50, "a\0b"]
    expected = [int.from_bytes(hashlib.blake2b(t.encode(), key=key, digest_size=8).digest()) for t in texts]
    assert keyed_hashes(key, texts).tolist() == hashes(key, texts).tolist() == expected
    for n in (0, 1, 10, 11, 1001, 70_000):
        assert np.array_equal(keyed_hashes(key, range(n)), hashes(key, range(n)))
    assert np.array_equal(keyed_hashes(key, range(5, 20)), hashes(key, range(5, 20)))


@compiled_only
def test_hashes_refuse_what_no_key_and_no_texts_are() -> None:
    out, ends = np.empty(2, dtype=np.uint64), np.array([1, 2], dtype=np.uint64)
    for key, given in ((b"", ends), (bytes(65), ends), (b"k", ends[::-1].copy()), (b"k", ends + 1), (b"k", ends - 1)):
        with pytest.raises(ValueError):
            choice.compiled.keyed_hashes(key, b"ab", given, out)
