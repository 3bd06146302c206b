"""Views of two servers in the steps whose masks are leaves, labels and shares. Those of products, lifts and the step
into the field are in test_two_servers.py."""

import asyncio
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from pairs import Two, together

from dpmpc.circuits.program import program_of
from dpmpc.mpc.native import choice
from dpmpc.mpc.native import ot as native
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.two_servers import half_gates
from dpmpc.mpc.two_servers.extension import Chooser
from dpmpc.mpc.two_servers.half_gates import Hash, Inputs, under
from dpmpc.mpc.two_servers.holder import AdditiveDealer


# -- leaves: what a chooser sends --------------------------------------------------------------------------------------
def _rank(rows: list[int]) -> int:
    """Over F_2."""
    found: list[int] = []
    for row in rows:
        for pivot in found:
            row = min(row, row ^ pivot)
        if row:
            found.append(row)
    return len(found)


def rank_of_a_correction(monkeypatch: pytest.MonkeyPatch, forgotten: bool) -> int:
    """The rank of (choice, correction) in the bits of the leaves that the offerer lacks, one a tree: 64 trees at
    k = 2. Lane l has a 1 in that of tree l; with `forgotten`, two trees lack the same bit."""
    lacking = np.uint64(1) << np.arange(64, dtype=np.uint64)
    if forgotten:
        lacking[6] = lacking[5]

    def columns(schedules: Any, k: int, position: int, planes: np.ndarray, *more: np.ndarray) -> None:
        planes[:] = 0
        if more:
            more[0][:] = lacking[:, None]

    chooser = Chooser(np.zeros((64, 4, 2), dtype=np.uint64), 2, b"session", 0)
    with monkeypatch.context() as patch:
        patch.setattr(native, "columns", columns)
        chosen = chooser.begin(5, 1, 1)
    return _rank([int(chosen.choices[0, 0]), *chosen.correction[:63].tolist()])


def test_a_correction_says_nothing_of_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choice and correction are 64 bits, and a bijection of the 64 that the offerer lacks: uniform together, so the
    choice is uniform given the correction and all leaves that the offerer has."""
    assert rank_of_a_correction(monkeypatch, forgotten=False) == 64
    assert rank_of_a_correction(monkeypatch, forgotten=True) == 63


def test_an_answer_says_nothing_of_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the challenge: R(u) is moved by the extra slot's choices as they are, and those are in nothing else but
    their correction, with whose leaves they are uniform (above). The rest of an answer is what the offerer works out:
    it would not hold otherwise."""
    leaves, k = np.random.default_rng(4).integers(0, 2**64, (64, 4, 2), dtype=np.uint64), 2
    columns, moved = native.columns, np.uint64(0)

    def moving(schedules: Any, k: int, position: int, planes: np.ndarray, *more: np.ndarray) -> None:
        columns(schedules, k, position, planes, *more)
        if more and planes.shape[1] == 1:  # the extra slot
            more[0][:] ^= moved

    monkeypatch.setattr(native, "columns", moving)

    def said(challenge: bytes, by: int) -> tuple[int, bytes]:
        nonlocal moved
        moved = np.uint64(by)
        answer = Chooser(leaves, k, b"session", 0).begin(5, 3, 2).answer(challenge, lambda *_: None)
        return int.from_bytes(answer[:8], "little"), answer[8:]

    for challenge in (bytes(16), bytes(range(16))):
        first, digest = said(challenge, 0)
        for by in (1, 2**63, 0xABCDEF):
            assert said(challenge, by) == (first ^ by, digest)


# -- labels: what the evaluator gets -----------------------------------------------------------------------------------
async def _two_gates(engine: Any) -> Any:
    """x AND y, and an AND of its result."""
    x = engine.random_bits(3)
    first = await engine.and_(x[0], x[1][None])
    return await engine.and_(first[0] ^ x[2], x[0][None])


LANES = 1 << 8  # two bits of the hash of each of four labels that the evaluator lacks


def law_of_tables(
    values: tuple[int, ...], held: np.ndarray, delta: int, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> Counter[tuple[int, ...]]:
    """The law of all ciphertexts, labels and hashes having two bits: given the labels that the evaluator holds, over
    all hashes of those that it lacks. With `forgotten` these are fixed."""
    program = program_of(_two_gates)
    order = [values[k] for k in program.drawn]
    x, y, z = values
    operands = [(x, y), ((x & y) ^ z, x)]  # of either gate
    calls = itertools.count()
    call = Hash.__call__

    def hashed(self: Hash, labels: np.ndarray, halves: np.ndarray) -> np.ndarray:
        number = next(calls)  # of a gate: both operands' zero labels, then both with Delta
        gate, other, half = number // 4, number % 4 // 2, number % 2
        one = call(self, labels[:, :1], np.zeros_like(halves) + 2 * gate + half)  # that is held, alike in all lanes
        found = np.repeat(one & np.array([3, 0], np.uint64), labels.shape[1], axis=1)
        if other != sorted_operands[gate][half]:
            digit = 0 if forgotten else np.arange(LANES, dtype=np.uint64) >> np.uint64(4 * gate + 2 * half)
            found[..., 0] = digit & np.uint64(3)
        return found

    # which operand of a gate comes first is the program's business
    sorted_operands = _operands(program, order, operands)
    zero = held[:, None, :] ^ under(np.array(order, np.uint64)[:, None], np.array([delta, 0], np.uint64))
    zero = np.repeat(zero, LANES, axis=1)
    with monkeypatch.context() as patch:
        patch.setattr(choice, "compiled", None)  # kernels hash by themselves
        patch.setattr(Hash, "__call__", hashed)
        tables, _ = half_gates.garble(program, Inputs(zero), np.array([delta, 0], np.uint64), bytes(16))
    assert next(calls) == 8 and (tables < 4).all()
    return Counter(map(tuple, tables[..., 0].reshape(-1, LANES).T.tolist()))


def _operands(program: Any, order: list[int], gates: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The plain operands of each AND as the program has them."""
    slots = np.zeros(program.slots, dtype=np.uint64)
    slots[half_gates.ONE] = 1
    found, drawn = [], 0
    for layer in program.layers:
        slots[layer.random] = order[drawn : drawn + len(layer.random)]
        drawn += len(layer.random)
        for out, operands in layer.xor_groups:
            slots[out] = np.bitwise_xor.reduce(slots[operands], axis=1)
        for a, b, result in zip(layer.ands[:, 1], layer.ands[:, 2], layer.results, strict=True):
            found.append((int(slots[a]), int(slots[b])))
            slots[result] = slots[a] & slots[b]
    assert [sorted(each) for each in found] == [sorted(each) for each in gates]
    return found


def test_ciphertexts_have_one_law_for_all_values_and_every_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the labels that the evaluator holds, over all hashes of the others: uniform, hence free of the wires'
    values and of Delta. With hashes that are forgotten it is not."""
    for seed in range(2):
        held = np.random.default_rng(seed).integers(0, 4, (3, 2), dtype=np.uint64) & np.array([3, 0], np.uint64)
        laws, wrong = [], []
        for delta, *values in itertools.product((1, 3), *[(0, 1)] * 3):
            laws.append(law_of_tables(tuple(values), held, delta, monkeypatch, forgotten=False))
            wrong.append(law_of_tables(tuple(values), held, delta, monkeypatch, forgotten=True))
        assert all(len(law) == LANES and set(law.values()) == {1} for law in laws)
        assert len({tuple(law) for law in wrong}) > 1


# -- shares: what an opening and an owner show -------------------------------------------------------------------------
def test_an_opening_shows_the_opened_vector_alone() -> None:
    """Whatever splits a vector into shares, the other server sends the opened vector less one's own share, and a fresh
    salt, with which it is what was promised."""
    rng = np.random.default_rng(3)
    salts = set[bytes]()

    async def body(two: Two) -> None:
        for channel in range(40, 60):
            value = rng.integers(-(2**40), 2**40, 7)
            first = field.uniform(Prg.from_os(), value.shape)
            shares = first, field.sub(field.from_int64(value), first)
            opened = await asyncio.gather(*(h.open(s, channel) for h, s in zip(two.holders, shares, strict=True)))
            assert all((each == value).all() for each in opened)
            for party in (0, 1):
                label, raw = two.sent[1 - party][-1]
                told = np.frombuffer(raw, dtype=np.uint64, offset=32)
                assert label == channel << 32 | 1
                holder, promise = two.holders[1 - party], dict(two.sent[1 - party])[channel << 32]
                assert promise == holder._promise(1 - party, channel, b"", raw[:32], told)
                salts.add(raw[:32])
                assert (told == field.sub(field.from_int64(opened[party]), shares[party])).all()

    together(body, connect=False)
    assert len(salts) == 40


def test_a_server_sees_a_uniform_vector_of_an_owner() -> None:
    """Server 0 gets r whatever the vector is, server 1 gets v - r: a shift of r, which has 61 bits and never repeats.

    False alarm below 1e-9: 122 fractions, each 7 standard errors wide; two equal words come with 3e-13."""
    values = np.array([[5, -5, 0, 2**40]] * 200)
    first, second = (np.frombuffer(raw, dtype="<u8").reshape(values.shape) for raw in AdditiveDealer().deal(values))
    assert (field.add(second, first) == field.from_int64(values)).all()
    for share in (first, second):
        assert len(np.unique(share)) == share.size and (share < field.P).all()
        ones = ((share[..., None] >> np.arange(61, dtype=np.uint64)) & np.uint64(1)).mean(axis=(0, 1))
        assert (abs(ones - 0.5) < 7 / 2 / np.sqrt(share.size)).all()
