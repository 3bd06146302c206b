"""Garbled circuits: half-gates against plain bits on all inputs, keys that never repeat, samples that follow the
law."""

import asyncio
import itertools
from collections import Counter
from math import ceil, floor, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison import less_than
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from pairs import End, Two, together

from dpmpc.circuits import adders, selection
from dpmpc.circuits.program import Program, program_of
from dpmpc.circuits.sampler import discrete_gaussian, discrete_laplace, noise_heap, noise_program
from dpmpc.errors import PeerError
from dpmpc.mpc.clear import executor as clear
from dpmpc.mpc.contract.lanes import from_planes, to_planes
from dpmpc.mpc.native import choice
from dpmpc.mpc.native.ot import stream
from dpmpc.mpc.numbers import field
from dpmpc.mpc.two_servers import half_gates
from dpmpc.mpc.two_servers.backend import OT, GarbledHolder
from dpmpc.mpc.two_servers.extension import pieces as transfer_pieces
from dpmpc.mpc.two_servers.garbled import GarbledBatch, pieces
from dpmpc.mpc.two_servers.half_gates import MOST_GATES, DrawnLabels, Hash, Inputs, lanes_at_a_time, low
from dpmpc.mpc.two_servers.lifts import lifts_of, products_of_heap, transfers_of
from dpmpc.noise.draw import BATCH
from dpmpc.noise.goodness import chi_square
from dpmpc.privacy.law import LAWS
from tests.mpc.test_native import ALL, compiled_only, level
from tests.refusals import refuses

__all__ = ["level"]  # the fixture

RNG = np.random.default_rng(8)
LAWS_OF_HEAPS = {"Gaussian": discrete_gaussian, "Laplace": discrete_laplace}


def words(*shape: int) -> np.ndarray:
    return RNG.integers(0, 2**64, shape, dtype=np.uint64)


def new_delta() -> np.ndarray:
    delta = words(2)
    delta[0] |= np.uint64(1)
    return delta


class _Bits:
    """A stream of given planes."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self._at = rows, 0

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        self._at += shape[0]
        return self._rows[self._at - shape[0] : self._at].reshape(shape)

    reserve = words


CIRCUITS: dict[str, tuple[int, Any]] = {
    "one_hot": (5, lambda e, x: selection.one_hot(e, x)),
    "mux": (7, lambda e, x: selection.mux(e, x[0], x[1:4], x[4:7])),
    "less_than": (8, lambda e, x: less_than(e, x[:4], x[4:])),
    "add": (10, lambda e, x: adders.add(e, x[:5], x[5:])),
    "add_end_around": (10, lambda e, x: adders.add_end_around(e, x[:5], x[5:])),
}


def garbled(program: Program, bits: np.ndarray, key: bytes, delta: np.ndarray) -> tuple[np.ndarray, ...]:
    """(ciphertexts, zero labels, evaluator's labels) with the random bits (bits, lanes)."""
    zero = words(*bits.shape, 2)
    tables, ends = half_gates.garble(program, Inputs(zero), delta, key)
    return tables, ends, half_gates.evaluate(program, Inputs(zero ^ half_gates.under(bits, delta)), tables, key)


@pytest.mark.parametrize("name", CIRCUITS)
def test_garbled_circuits_are_the_circuits_on_all_inputs(name: str) -> None:
    """Lane l has the bits of l; the evaluator's label is the zero label, XOR Delta where the plain bit is 1."""
    count, circuit = CIRCUITS[name]
    program = program_of(lambda tracer: circuit(tracer, tracer.random_bits(count)))
    lanes = max(64, 1 << count)
    planes = to_planes(np.arange(lanes, dtype=np.uint64), count)[program.drawn]
    bits = np.array([from_planes(row[None]) for row in planes])
    plain = clear.run(program, lanes // 64, _Bits(planes))  # type: ignore[arg-type]
    delta = new_delta()
    _, ends, held = garbled(program, bits, bytes(range(16)), delta)
    values = np.array([from_planes(row[None]) for row in plain])
    assert (held == ends ^ half_gates.under(values, delta)).all()
    assert (low(held) ^ low(ends) == values).all()


async def _and(engine: Any) -> Any:
    x = engine.random_bits(3)
    return await engine.and_(x[0], x[1:])


def test_the_evaluators_lowest_bits_show_nothing() -> None:
    """For both values of both operands: over all lowest bits of the zero labels, the bits of the labels held take all
    values equally often, and the gate is right."""
    program, delta = program_of(_and), new_delta()
    laws = []
    for values in itertools.product((0, 1), repeat=3):
        seen: Counter[tuple[int, ...]] = Counter()
        for permuted in itertools.product((0, 1), repeat=3):
            zero = words(3, 64, 2)
            zero[..., 0] = zero[..., 0] & ~np.uint64(1) | np.array(permuted, dtype=np.uint64)[:, None]
            bits = np.repeat(np.array(values, dtype=np.uint64)[:, None], 64, axis=1)
            held = Inputs(zero ^ half_gates.under(bits, delta))
            tables, ends = half_gates.garble(program, Inputs(zero), delta, bytes(16))
            out = half_gates.evaluate(program, held, tables, bytes(16))
            seen[tuple(low(held.random)[:, 0].tolist())] += 1
            order = [values[k] for k in np.argsort(program.drawn)]
            assert (low(out) ^ low(ends) == (np.array([[order[0]]]) & np.array([[order[1]], [order[2]]]))).all()
        laws.append(seen)
    assert all(law == laws[0] and set(law.values()) == {1} and len(law) == 8 for law in laws)


@compiled_only
def test_compiled_half_gates_are_the_twins(level: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ciphertexts and labels, of one tile and of several: as the twin has them. Slots that held other
    labels before change nothing, nor do threads, which other executors choose their tiles by."""
    monkeypatch.setattr(choice, "threads", lambda: 3)
    program, delta, key = noise_heap(discrete_gaussian(300.0).plan).program, new_delta(), bytes(range(16))
    room = half_gates.Room()
    for lanes in (16, 64, 64, 176, 1040):
        zero = Inputs(words(program.random_bits, lanes, 2))
        held = Inputs(words(program.random_bits, lanes, 2))
        tables, ends = half_gates.garble(program, zero, delta, key, room=room)
        found = half_gates.evaluate(program, held, tables, key, room)
        with monkeypatch.context() as patched:
            patched.setattr(choice, "compiled", None)
            due = half_gates.garble(program, zero, delta, key)
            assert (tables == due[0]).all() and (ends == due[1]).all()
            assert (found == half_gates.evaluate(program, held, tables, key)).all()


@compiled_only
def test_labels_from_transfers_are_the_twins(level: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes in the middle of rows: the garbler's labels and corrections, and what the evaluator makes of them."""
    program, delta, key = noise_heap(discrete_gaussian(300.0).plan).program, new_delta(), bytes(range(16))
    count, lanes, part = program.random_bits, 96, slice(16, 80)
    strings, own, chosen = words(2, count, lanes, 2), words(count, lanes), words(count, lanes)
    held = np.where((chosen & np.uint64(1))[..., None] == 0, *strings)
    found = []
    for patch in (False, True):
        with monkeypatch.context() as patched:
            if patch:
                patched.setattr(choice, "compiled", None)
            fixes = np.zeros((count, 64, 2), dtype=np.uint64)
            zero = Inputs(DrawnLabels((strings[0], strings[1]), own, fixes, part))
            tables, ends = half_gates.garble(program, zero, delta, key)
            labels = half_gates.evaluate(program, Inputs(DrawnLabels((held,), chosen, fixes, part)), tables, key)
            found.append((fixes, tables, ends, labels))
    assert all((one == other).all() for one, other in zip(*found, strict=True))
    planes = np.concatenate([to_planes(row, 1) for row in (own ^ chosen)[:, part]])
    plain = clear.run(program, 1, _Bits(planes))  # type: ignore[arg-type]
    values = np.array([from_planes(row[None]) for row in plain])
    assert (found[0][3] == found[0][2] ^ half_gates.under(values, delta)).all()


@compiled_only
def test_half_gates_refuse_what_does_not_fit() -> None:
    if "aes" not in ALL:
        pytest.skip("no AES unit")
    script = np.array([1, 1, 3, 1, 3, 4, 3, 1, 4, 2, 3, 4], dtype=np.int32)  # loads 3 and 4; 3 = 4; 2 = 3 AND 4
    schedule, run = choice.compiled.aes_schedule(bytes(16)), choice.compiled.half_gates
    base, other, bits, fixes = words(48), words(48), words(24), words(32)
    random = (base, other, bits, fixes, 48, 8)
    good: list[Any] = [
        words(6 * 32), (6, 32, 32), script, np.array([2], dtype=np.int32), schedule, random, words(32), words(64),
        words(32), words(2),
    ]  # fmt: skip
    run(*good)
    run(*good[:5], (base, None, bits, fixes, 48, 8), *good[6:9], None)
    state, tables = good[0], good[7]
    changes: list[dict[int, Any]] = [
        {0: words(191)}, {1: (6, 30, 32)}, {1: (6, 32, 30)}, {1: (6, 32, 64)}, {1: (0, 32, 32)}, {1: (4, 32, 32)},
        {2: script[:-1].copy()}, {2: script[:2].copy()}, {3: good[3] + 4}, {3: good[3] - 3}, {4: schedule[:-1]},
        {6: words(31)}, {6: state[:32]}, {7: words(63)}, {7: state[:64]}, {8: words(31)}, {8: tables[:32]},
        {9: words(1)}, {9: tables[:2]}, {9: state[:2]}, {9: None},
    ]  # fmt: skip
    changes += [{5: (*random[:k], wrong, *random[k + 1 :])} for k, wrong in (
        (0, words(47)), (1, words(47)), (1, None), (2, words(23)), (3, words(31)), (3, None), (3, base[:32]), (4, 46),
        (5, 18), (5, -2), (5, 1),
    )]  # fmt: skip
    changes += [{5: (base, None, bits, None, 48, 8), 9: None}, {5: (base, None, None, fixes, 48, 8), 9: None}]
    for at, wrong in ((0, -1), (0, 9), (1, 2), (2, 4), (3, 2), (4, 6), (5, -1), (6, 6), (7, 0), (7, 5), (8, 6), (9, 9)):
        changed = script.copy()
        changed[at] = wrong
        changes.append({2: changed})
    for change in changes:
        arguments = [change.get(k, argument) for k, argument in enumerate(good)]
        with pytest.raises(ValueError):
            run(*arguments)


def test_no_key_serves_two_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over gates and halves of a whole sampler; for each the garbler hashes two labels a lane. Keys differ."""
    used: Counter[int] = Counter()
    call = Hash.__call__

    def recorded(self: Hash, x: np.ndarray, halves: np.ndarray) -> np.ndarray:
        used.update(halves.tolist())
        return call(self, x, halves)

    monkeypatch.setattr(Hash, "__call__", recorded)
    monkeypatch.setattr(choice, "compiled", None)
    program = noise_heap(discrete_gaussian(300.0).plan).program
    half_gates.garble(program, Inputs(words(program.random_bits, 64, 2)), new_delta(), bytes(16))
    assert set(used.values()) == {2} and sorted(used) == list(range(2 * program.ands))
    blocks = stream(bytes(16), 0, 4 * program.ands).reshape(-1, 2)
    assert len({block.tobytes() for block in blocks}) == 2 * program.ands
    for every in (program, noise_program(discrete_laplace(2.0**20).plan, 1)):
        assert every.ands * max(part.stop - part.start for part in pieces(every, 5000)) <= MOST_GATES
        assert lanes_at_a_time(every) % 64 == 0
        assert [lane for part in pieces(every, 5000) for lane in range(part.start, part.stop)] == list(range(5000))


def test_the_bound_in_the_docs_is_that_of_the_programs() -> None:
    """docs/two-servers.md: lanes and transfers under a key, and what the bound comes to for a million samples."""
    lines = (Path(__file__).parents[2] / "docs/two-servers.md").read_text(encoding="utf-8").splitlines()
    samples = 10**6
    heaps = {law: noise_heap(make(2.0**20).plan) for law, make in LAWS_OF_HEAPS.items()}
    for law, heap in heaps.items():
        m, hashed = lanes_at_a_time(heap.program), 2 * heap.program.ands * samples
        chance = 6 * m * hashed / 2**128 + (hashed / m) ** 2 / 2**129
        shown = f"{floor(log2(2**125 / m))} | 2^{ceil(log2(m) + 80 - 126)} | 2^{ceil(log2(chance))} |"
        assert f"| garbled {law} | m = {m:,} | 2^{shown}" in lines
    t = samples * transfers_of(products_of_heap(heaps["Gaussian"]), lifts_of(heaps["Gaussian"]), 0)
    n = max(BATCH, 64 * max(size for _, size, _ in transfer_pieces(1000, 100)))
    shown = f"{floor(log2(2**126 / n))} | 2^{ceil(log2(n) + 80 - 127)} | 2^{ceil(log2(4 * t * n / 2**128))} |"
    assert f"| transfers, Gaussian | N = {n:,} | 2^{shown}" in lines
    lacking, k = 128 // OT.k, OT.k  # streams that an offerer lacks, of a bit a transfer
    calls, told = ceil(log2(lacking) + 80 - 128), ceil(log2(lacking * (t / 128) ** 2 / 2**129))
    page = "\n".join(lines)
    assert f"2^{calls} at p = 2^80 and k = {k}" in page and f"a million Gaussian samples that is 2^{told}." in page


def test_the_hash_is_what_is_said() -> None:
    """By OpenSSL's AES alone. The map before it, and what it differs by from its argument, can be undone: without that
    a label that is known and one decryption would give Delta."""
    key, label = bytes(range(16)), words(1, 4, 2)
    half_key, tweak = (
        Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block.to_bytes(16, "big"))
        for block in (5, 2**62 + 3)
    )
    low_word, high = label[0, 3].tolist()
    moved = high | (low_word ^ high) << 64
    taken = moved ^ int.from_bytes(tweak, "little")
    made = Cipher(algorithms.AES(half_key), modes.ECB()).encryptor().update(taken.to_bytes(16, "little"))
    due = int.from_bytes(made, "little") ^ moved
    found = Hash(key)(label, np.array([5], dtype=np.int32))
    assert int.from_bytes(found[0, 3].tobytes(), "little") == due
    one_bit = [1 << k for k in range(128)]
    images = [(x >> 64) | ((x ^ x >> 64) & (1 << 64) - 1) << 64 for x in one_bit]
    for vectors in (images, [x ^ y for x, y in zip(one_bit, images, strict=True)]):
        assert _rank(vectors) == 128


def _rank(vectors: list[int]) -> int:
    """Over GF(2)."""
    rank, rest = 0, [v for v in vectors if v]
    while rest:
        pivot = rest.pop()
        lowest = pivot & -pivot
        rest = [r for r in (v ^ pivot if v & lowest else v for v in rest) if r]
        rank += 1
    return rank


def test_a_key_of_two_gates_would_show_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """x AND y, x AND z: the first ciphertexts of the two differ by Delta where the lowest bits of y and z differ."""
    program, delta = program_of(_and), new_delta()
    zero = words(3, 64, 2)

    def shown() -> bool:
        tables, _ = half_gates.garble(program, Inputs(zero), delta, bytes(16))
        return bool((tables[0, 0] ^ tables[1, 0] == delta).all(axis=-1).any())

    assert not shown()
    monkeypatch.setattr(choice, "compiled", None)
    monkeypatch.setattr(half_gates, "_halves", lambda first, gates: np.zeros(gates, dtype=np.int32))
    assert shown()


def test_lanes_of_one_label_show_delta_but_for_the_tweaks_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluator that got one label in two lanes of a wire would see Delta in the first ciphertexts of its gates,
    where the other operands' colours differ: in half of 2,016 pairs of lanes. Compiled kernels give the twin's bits, so
    the tweaks are taken out of the twin alone."""
    program, delta = program_of(_and), new_delta()
    zero = words(3, 64, 2)
    zero[0] = zero[0, :1]

    def votes() -> int:
        tables, _ = half_gates.garble(program, Inputs(zero), delta, bytes(16))
        first = tables[:, 0]
        return int((first[:, :, None] ^ first[:, None] == delta).all(axis=-1).sum())

    assert not votes()
    monkeypatch.setattr(choice, "compiled", None)
    assert not votes()
    blocks = half_gates.stream
    monkeypatch.setattr(half_gates, "stream", lambda key, at, size: blocks(key, at, size) * np.uint64(at < 1 << 63))
    assert votes() > 500


@pytest.mark.parametrize(("law", "scale", "count"), [("gaussian", 2.0**16, 1 << 11), ("laplace", 5000.0, 1 << 11)])
def test_samples_follow_the_law(law: str, scale: float, count: int) -> None:
    """Chi-square, false alarm 1e-9; moved by half a scale they are refused. By lifts, and the Gaussian by adders."""
    sampler = LAWS[law].sampler("discrete", scale)
    exact = LAWS[law].exact(sampler.scale, True)

    async def body(two: Two) -> list[np.ndarray]:
        found = [await asyncio.gather(*(h.noise(sampler, 5, count) for h in two.holders))]
        if law == "gaussian":
            program = noise_program(sampler.plan, 1)
            batches = [GarbledBatch(h, 6, count) for h in two.holders]
            found.append(await asyncio.gather(*(b.to_field(program, sampler.plan.offset) for b in batches)))
        return [field.to_int64(field.add(*shares)) for shares in found]

    for values in together(body, made_by=GarbledHolder):
        assert len(values) == count and np.abs(values).max() <= sampler.largest
        assert chi_square(values, exact).p_value > 1e-9
        assert chi_square(values + int(scale / 2), exact).p_value < 1e-9


def test_delta_and_noise_are_new_every_time() -> None:
    """Two sessions with the same run id, plan and channel; and no Delta of an extension is that of a circuit."""
    sampler, seen = discrete_gaussian(300.0), []

    async def body(two: Two) -> None:
        shares = await asyncio.gather(*(h.noise(sampler, 5, 64) for h in two.holders))
        seen.append(field.add(*shares).tobytes())

    for _ in range(2):
        together(body, made_by=GarbledHolder)
    assert seen[0] != seen[1]


def test_no_more_than_a_piece_waits_to_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A garbler that is quicker than its line keeps one piece in memory, not all; and it garbles the next one when the
    last is under way, so that both servers work at once."""
    monkeypatch.setattr(half_gates, "MOST_GATES", 1)
    events: list[str] = []
    garble = half_gates.garble

    def seen(*given: Any) -> Any:
        events.append("garbles")
        return garble(*given)

    monkeypatch.setattr(half_gates, "garble", seen)

    class Slow(End):
        def send(self, label: int, payload: Any) -> None:
            events.append("sends")
            super().send(label, payload)

        async def flushed(self) -> None:
            await asyncio.sleep(0)
            events.append("sent")

    async def body(two: Two) -> None:
        end = two.holders[0].peers[1]
        end.__class__ = Slow
        await asyncio.gather(*(h.noise(discrete_gaussian(300.0), 5, 256) for h in two.holders))

    together(body, made_by=GarbledHolder)
    first, last = events.index("garbles"), len(events) - events[::-1].index("garbles")
    assert events[first:last] == ["garbles", "sent", "sends", "sent"] * 3 + ["garbles"]


def test_flows_of_another_length_are_refused() -> None:
    sampler = discrete_gaussian(300.0)

    async def body(two: Two) -> None:
        tasks = [asyncio.ensure_future(h.noise(sampler, 5, 64)) for h in two.holders]
        with refuses("message", kind=PeerError):
            await tasks[0]
        tasks[1].cancel()

    together(body, made_by=GarbledHolder, spoil=lambda label, raw: raw[:-8] if label == 5 << 32 else raw)
