"""Programs against the circuits they were traced from: on all inputs, on random ones, and when they are broken."""

import dataclasses
import functools
import random
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from comparison import less_than
from direct import DirectEngine, evaluate
from numpy.typing import NDArray

from dpmpc.circuits.adders import add, add_end_around, add_ripple, carry_save
from dpmpc.circuits.approximation import piecewise
from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.engine import Bundle
from dpmpc.circuits.gaussian import GaussianPlan, plan_gaussian
from dpmpc.circuits.heap import Heap
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace
from dpmpc.circuits.program import ONE, Program, compile_graph, computes, program_of
from dpmpc.circuits.sampler import noise_circuit
from dpmpc.circuits.selection import biased_bit, look_up, mux, one_hot
from dpmpc.circuits.trace import Graph, Tracer, nodes_of
from dpmpc.circuits.uniform_function import masked_uniform
from dpmpc.mpc.clear.executor import run
from dpmpc.mpc.contract.executor import MaskBits
from dpmpc.mpc.contract.lanes import to_planes
from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers.prg import Prg

Words = NDArray[np.uint64]
Circuit = Callable[[Any], Coroutine[Any, Any, Bundle]]


@pytest.fixture(params=["compiled", "twins"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of kernels."""
    if request.param == "twins":
        monkeypatch.setattr(choice, "compiled", None)
    elif choice.compiled is None:
        pytest.skip("nothing is compiled")


# -- inputs ----------------------------------------------------------------------------------------------------------
class Given(DirectEngine):
    """The circuit itself on random bits, masks and given bits (rows, words), each numbered as the circuit asks."""

    def __init__(self, random_bits: Words, masks: Words, given: Words) -> None:
        super().__init__(64 * random_bits.shape[-1], Prg(b""))
        self._rows = {"random": random_bits, "given": given}
        self._taken = {"random": 0, "given": 0}
        self._mask_rows = masks

    def _take(self, kind: str, wires: tuple[int, ...]) -> Bundle:
        first = self._taken[kind]
        self._taken[kind] += int(np.prod(wires))
        return self._rows[kind][first : self._taken[kind]].reshape(*wires, *self.tail)

    def random_bits(self, *wires: int) -> Bundle:
        return self._take("random", wires)

    def given(self, *wires: int) -> Bundle:
        return self._take("given", wires)

    def mask_bits(self, *planes: int) -> Bundle:
        return self._mask_rows.reshape(len(self._mask_rows), *planes, *self.tail)


class Rows:
    """A generator that gives rows in the order in which a program draws them."""

    def __init__(self, rows: Words) -> None:
        self._rows, self._next = rows, 0

    def words(self, shape: tuple[int, ...]) -> Words:
        self._next += shape[0]
        return self._rows[self._next - shape[0] : self._next].reshape(shape).copy()

    reserve = words


def inputs_of(circuit: Circuit, masks: int) -> tuple[int, int, int]:
    """(random bits, bits of a mask, given bits) that a circuit asks for."""
    tracer = Tracer(masks)
    evaluate(circuit(tracer))
    counts = tracer.graph.counts
    return counts["random"], counts["mask"], counts["given"]


def run_program(program: Program, random_bits: Words, masks: Words, given: Words) -> Words:
    """What the program gives on inputs numbered as the circuit numbers them."""
    drawn: Any = Rows(random_bits[program.drawn])
    bits = [MaskBits(0, rows) for rows in masks]
    return run(program, random_bits.shape[-1], drawn, bits, given)


def agree(program: Program, circuit: Circuit, random_bits: Words, masks: Words, given: Words) -> bool:
    direct = evaluate(circuit(Given(random_bits, masks, given)))
    return np.array_equal(
        run_program(program, random_bits, masks, given), np.reshape(direct, (-1, random_bits.shape[-1]))
    )


def skewed(rows: int, words: int, seed: int) -> Words:
    """Random bits of which a lane has few, half or nearly all set: rare cases of a long comparison come up."""
    rng = np.random.default_rng([rows, words, seed])
    chance = np.tile([0.5, 0.03, 0.97, 0.997], 16 * words)
    return np.packbits(rng.random((rows, 64 * words)) < chance, axis=1, bitorder="little").view(np.uint64)


def deciding(plan: GaussianPlan | LaplacePlan, rows: int, words: int) -> Words:
    """Random bits of a sampler; in most lanes those that say where two numbers differ are nearly all 1, "equal", so
    that every bit of a threshold, down to the lowest, decides in some lane."""
    rng = np.random.default_rng([rows, words])
    tables = [plan.table] if isinstance(plan, GaussianPlan) else list(plan.digits)
    first = sum(table.index_bits for table in tables) + isinstance(plan, GaussianPlan)  # after the index, and the sign
    count = sum(table.precision - 1 for table in tables) + (63 if isinstance(plan, LaplacePlan) else 0)
    chance = np.full((rows, 64), 0.5)
    chance[first : first + count, 16:] = 0.98
    bits = rng.random((rows, words, 64)) < chance[:, None]
    return np.packbits(bits, axis=2, bitorder="little").view(np.uint64)[..., 0]


def every_input(bits: int) -> Words:
    """(bits, words): all numbers of so many bits, one a lane."""
    lanes = np.arange(max(64, 1 << bits), dtype=np.uint64)
    return to_planes(lanes, max(bits, 1))[:bits]


# -- small circuits, on every input ----------------------------------------------------------------------------------
async def _carry_save(e: Any) -> Bundle:
    return np.concatenate(await carry_save(e, *e.given(3, 3)))


async def _look_up(e: Any) -> Bundle:
    table = np.random.default_rng(1).integers(0, 2, (16, 9)).astype(bool)
    return look_up(await one_hot(e, e.given(4)), table)


async def _with_constants(e: Any) -> Bundle:
    x, one, zero = e.given(6), e.constant([1] * 6), e.constant([0] * 6)
    parts = [x ^ one, await e.and_(x, one), await e.and_(zero, x), await e.and_(x, x), await e.and_(x, e.not_(x))]
    parts += [e.not_(e.not_(x)), x ^ x, zero, one, await mux(e, x[:1], one, zero), await e.and_(x[:0], x[:0])]
    return np.concatenate([p if p.ndim else p[None] for p in parts])


async def _repeated(e: Any) -> Bundle:
    """The same gates again and again, written in other ways."""
    x, y, z = e.given(3, 3)
    first = await e.and_(x ^ y, z)
    again = await e.and_(z, y ^ x)
    distant = await e.and_(x ^ y ^ z ^ z, x ^ z ^ x)
    return np.concatenate([first, again, distant, first ^ again ^ distant, await mux(e, first, again, distant)])


async def _conversion(e: Any) -> Bundle:
    heap = Heap()
    heap.put_number(e.given(2))
    heap.put_number(e.random_bits(2), 1)
    return await add_end_around(e, *(await _compressed(e, heap)))


async def _compressed(e: Any, heap: Heap) -> tuple[Bundle, Bundle]:
    from dpmpc.circuits.heap import compress

    for bits in e.mask_bits(3):
        heap.put_number(bits)
    return await compress(e, heap, 3, end_around=True)


SMALL: dict[str, Circuit] = {
    "add": lambda e: add(e, e.given(5), e.given(5)),
    "ripple": lambda e: add_ripple(e, e.given(6), e.given(6)),
    "around": lambda e: add_end_around(e, e.given(6), e.given(6)),
    "one": lambda e: add_ripple(e, e.given(1), e.given(1)),
    "carry save": _carry_save,
    "less than": lambda e: less_than(e, e.given(6), e.given(6)),
    "less than a constant": lambda e: less_than(e, e.given(6), e.constant([1, 0, 1, 1, 0, 1])),
    "one hot": lambda e: one_hot(e, e.given(7)),
    "look up": _look_up,
    "mux": lambda e: mux(e, e.given(1), e.given(4), e.given(4)),
    "biased": lambda e: biased_bit(e, e.given(6)),
    "constants": _with_constants,
    "repeated": _repeated,
    "conversion": _conversion,
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.usefixtures("kernels")
def test_a_program_is_its_circuit_on_every_input(name: str) -> None:
    circuit = SMALL[name]
    for masks in (0, 2) if name == "conversion" else (0,):
        drawn, of_mask, given = inputs_of(circuit, masks)
        rows = every_input(drawn + masks * of_mask + given)
        split = np.split(rows, [drawn, drawn + masks * of_mask])
        by_mask = split[1].reshape(masks, of_mask, rows.shape[1])
        program = program_of(circuit, masks)
        assert agree(program, circuit, split[0], by_mask, split[2])


def test_what_is_constant_or_known_already_takes_no_gate() -> None:
    program = program_of(_with_constants)
    assert (program.ands, program.depth) == (0, 0)
    program = program_of(_repeated)
    assert program.ands == 3  # x ^ y times z; the multiplexer's choices are equal, so it has none either
    assert program_of(lambda e: e.and_(e.random_bits(3), e.constant([1, 0, 1]))).random_bits == 2


# -- the samplers, on random inputs ----------------------------------------------------------------------------------
LARGE: dict[str, tuple[Circuit, int]] = {
    "gaussian": (functools.partial(noise_circuit, plan=plan_gaussian(2.0**20)[0]), 2),
    "gaussian n=5": (functools.partial(noise_circuit, plan=plan_gaussian(1000.5)[0]), 9),
    "laplace": (functools.partial(noise_circuit, plan=plan_laplace(2.0**20)[0]), 2),
    "laplace, small": (functools.partial(noise_circuit, plan=plan_laplace(1.5)[0]), 0),
    "box-muller": (lambda e: masked_uniform(e, piecewise("gaussian", 1.25, 31), False), 2),
    "box-muller, few rounds": (lambda e: masked_uniform(e, piecewise("gaussian", 1.25, 31), True), 1),
}


@functools.cache
def traced(name: str) -> tuple[Graph, Any]:
    """The graph and the outputs of a sampler, traced once."""
    circuit, masks = LARGE[name]
    tracer = Tracer(masks)
    return tracer.graph, evaluate(circuit(tracer))


@functools.cache
def large(name: str) -> tuple[Program, tuple[int, int, int]]:
    """The program, traced and compiled once, and what the circuit asks for."""
    graph, outputs = traced(name)
    counts = graph.counts
    return compile_graph(graph, outputs, LARGE[name][1]), (counts["random"], counts["mask"], counts["given"])


def large_inputs(name: str, words: int, seed: int = 0) -> tuple[Words, Words, Words]:
    masks, (drawn, of_mask, _) = LARGE[name][1], large(name)[1]
    by_mask = skewed(masks * of_mask, words, seed + 1).reshape(masks, of_mask, words)
    return skewed(drawn, words, seed), by_mask, np.zeros((0, words), dtype=np.uint64)


@functools.cache
def directly(name: str, words: int) -> Words:
    """What the circuit itself gives on these inputs: no kernel has a part in it."""
    return np.reshape(evaluate(LARGE[name][0](Given(*large_inputs(name, words)))), (-1, words))


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.usefixtures("kernels")
def test_a_program_is_its_circuit_on_random_inputs(name: str) -> None:
    for words in (1, 37, 70):  # less than a tile, parts of a tile, more than one
        assert np.array_equal(run_program(large(name)[0], *large_inputs(name, words)), directly(name, words))


def test_a_batch_of_no_lanes_is_nothing() -> None:
    assert run_program(large("gaussian")[0], *large_inputs("gaussian", 0)).shape == (FIELD_BITS, 0)


# -- what a program says of itself -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LARGE)
def test_programs_read_only_what_they_wrote_and_reuse_slots(name: str) -> None:
    program = large(name)[0]
    written, most = {0, 1}, 0
    for layer in program.layers:
        loads = [*layer.random, *layer.masks[:, 0], *layer.given[:, 0]]
        assert len(set(loads)) == len(loads) and not {0, 1} & set(loads)
        written |= set(loads)
        for out, operands in layer.gates:
            assert set(operands) <= written and len(set(operands)) == len(operands) and out > ONE
            written.add(out)
        assert set(layer.ands[:, 1:].reshape(-1)) <= written
        outs = layer.ands[:, 0].tolist()
        assert len(set(outs)) == len(outs) and not {0, 1} & set(outs)
        written |= set(outs)
        most = max(most, *written)
    assert most == program.slots - 1
    gates = program.ands + sum(len(layer.gates) for layer in program.layers) + program.random_bits
    assert program.slots < 0.6 * gates
    assert sorted(program.drawn) == sorted(set(program.drawn))


def test_every_and_is_in_the_first_layer_that_can_have_it() -> None:
    """Written in 31 rounds, the Gaussian sampler takes 25; an AND moved a layer up would miss an operand."""
    program = large("gaussian")[0]
    assert (program.ands, program.depth, program.random_bits) == (646, 25, 230)
    ready: dict[int, int] = {0: 0, 1: 0}  # slot -> layers of ANDs behind what it holds
    for k, layer in enumerate(program.layers):
        ready |= {slot: 0 for slot in (*layer.random, *layer.masks[:, 0], *layer.given[:, 0])}
        for out, operands in layer.gates:
            ready[out] = max(ready[slot] for slot in operands)
        if len(layer.ands):
            deepest = [max(ready[left], ready[right]) for left, right in layer.ands[:, 1:].tolist()]
            assert set(deepest) == {k}
        ready |= {slot: k + 1 for slot in layer.results.tolist()}


@pytest.mark.parametrize("name", ["gaussian", "laplace", "box-muller"])
def test_groups_of_xors_have_no_order_among_themselves(name: str) -> None:
    """NumPy does a group at once. In any order, the groups of a layer leave in every slot what its XORs leave."""
    program, rng = large(name)[0], np.random.default_rng(4)
    for layer in program.layers:
        one = two = rng.integers(0, 1 << 64, program.slots, dtype=np.uint64)
        one, two = one.copy(), two.copy()
        for out, operands in layer.gates:
            one[out] = np.bitwise_xor.reduce(one[list(operands)])
        for outs, operands in layer.xor_groups:
            two[outs] = np.bitwise_xor.reduce(two[operands], axis=1)
        assert (one == two).all()


# -- broken programs -------------------------------------------------------------------------------------------------
def _layer_with(program: Program, draw: random.Random, what: str) -> int:
    return draw.choice([k for k, layer in enumerate(program.layers) if len(getattr(layer, what))])


def _changed(program: Program, k: int, **parts: Any) -> Program:
    layers = list(program.layers)
    layers[k] = dataclasses.replace(layers[k], **parts)
    return dataclasses.replace(program, layers=tuple(layers))


def _flat(gates: list[tuple[int, tuple[int, ...]]]) -> NDArray[np.int32]:
    return np.array([v for out, operands in gates for v in (out, len(operands), *operands)], dtype=np.int32)


def drop_operand(program: Program, draw: random.Random) -> Program:
    """A XOR loses an operand."""
    k = _layer_with(program, draw, "gates")
    gates = list(program.layers[k].gates)
    i = draw.randrange(len(gates))
    out, operands = gates[i]
    lost = draw.randrange(len(operands))
    gates[i] = (out, operands[:lost] + operands[lost + 1 :])
    return _changed(program, k, xors=_flat(gates))


def drop_xor(program: Program, draw: random.Random) -> Program:
    """A XOR is left out: its slot keeps what it held."""
    k = _layer_with(program, draw, "gates")
    gates = list(program.layers[k].gates)
    gates.pop(draw.randrange(len(gates)))
    return _changed(program, k, xors=_flat(gates))


def other_operand(program: Program, draw: random.Random) -> Program:
    """A XOR reads another slot."""
    k = _layer_with(program, draw, "gates")
    gates = list(program.layers[k].gates)
    i = draw.randrange(len(gates))
    out, operands = gates[i]
    wrong = draw.choice([slot for slot in range(2, program.slots) if slot not in operands])
    gates[i] = (out, (wrong, *operands[1:]))
    return _changed(program, k, xors=_flat(gates))


def drop_and(program: Program, draw: random.Random) -> Program:
    """An AND is left out."""
    k = _layer_with(program, draw, "ands")
    ands = program.layers[k].ands
    return _changed(program, k, ands=np.delete(ands, draw.randrange(len(ands)), axis=0))


def and_of_others(program: Program, draw: random.Random) -> Program:
    """An AND reads another slot."""
    k = _layer_with(program, draw, "ands")
    ands = program.layers[k].ands.copy()
    i, side = draw.randrange(len(ands)), draw.choice([1, 2])
    ands[i, side] = draw.choice([slot for slot in range(program.slots) if slot not in ands[i, 1:]])
    return _changed(program, k, ands=ands)


def swap_results(program: Program, draw: random.Random) -> Program:
    """Two ANDs of a layer trade their results."""
    k = draw.choice([k for k, layer in enumerate(program.layers) if len(layer.ands) > 1])
    ands = program.layers[k].ands.copy()
    i, j = draw.sample(range(len(ands)), 2)
    ands[[i, j], 0] = ands[[j, i], 0]
    return _changed(program, k, ands=ands)


def swap_outputs(program: Program, draw: random.Random) -> Program:
    outputs = program.outputs.copy()
    i, j = draw.sample(range(len(outputs)), 2)
    outputs[[i, j]] = outputs[[j, i]]
    return dataclasses.replace(program, outputs=outputs)


def other_mask_bit(program: Program, draw: random.Random) -> Program:
    """A bit of a mask is loaded where another belongs: the mask would not cancel."""
    k = _layer_with(program, draw, "masks")
    masks = program.layers[k].masks.copy()
    i = draw.randrange(len(masks))
    masks[i, 2] = (masks[i, 2] + 1) % program.mask_bits
    return _changed(program, k, masks=masks)


def same_random_bit(program: Program, draw: random.Random) -> Program:
    """A random bit is used twice, and one not at all."""
    k = draw.choice([k for k, layer in enumerate(program.layers) if len(layer.random) > 1])
    slots = program.layers[k].random.copy()
    i, j = draw.sample(range(len(slots)), 2)
    gates = [(slots[i], (slots[j],)), *program.layers[k].gates]
    return _changed(program, k, xors=_flat(gates))


def early_layer(program: Program, draw: random.Random) -> Program:
    """An AND is done a layer too early, before one of its operands is there."""
    k = draw.choice([k for k, layer in enumerate(program.layers) if k and len(layer.ands)])
    row = draw.randrange(len(program.layers[k].ands))
    moved = program.layers[k].ands[row]
    program = _changed(program, k, ands=np.delete(program.layers[k].ands, row, axis=0))
    return _changed(program, k - 1, ands=np.vstack([program.layers[k - 1].ands, moved]))


@functools.cache
def telling(name: str) -> tuple[tuple[Words, Words, Words], Words]:
    """Inputs on which a changed gate of a sampler shows, and what its program gives on them."""
    circuit: Any = LARGE[name][0]
    random_bits, mask_bits, given = large_inputs(name, 512)
    inputs = deciding(circuit.keywords["plan"], len(random_bits), 512), mask_bits, given
    return inputs, run_program(large(name)[0], *inputs)


MUTATIONS = [
    drop_operand, drop_xor, other_operand, drop_and, and_of_others, swap_results, swap_outputs, other_mask_bit,
    same_random_bit, early_layer,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda m: m.__name__)
def test_broken_programs_are_caught(name: str, mutate: Callable[[Program, random.Random], Program]) -> None:
    """Fifteen of each program and kind: all by the compiler's own check, and by what they compute on random inputs
    all but a few, whose gate only matters in a case of probability 2^-60 or never (the alias of a column that is always
    kept)."""
    graph, outputs = traced(name)
    program, (inputs, right), differ = large(name)[0], telling(name), 0
    draw = random.Random(f"{name} {mutate.__name__}")
    for _ in range(15):
        broken = mutate(program, draw)
        assert not computes(broken, graph, nodes_of(outputs))
        differ += not np.array_equal(run_program(broken, *inputs), right)
    assert differ >= 12
    assert computes(program, graph, nodes_of(outputs))


def test_the_compiler_refuses_what_it_compiled_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimisation that drops a needed gate: here, one that takes any AND with a constant for the constant 0."""
    from dpmpc.circuits import program as module

    real = module._operands

    def wrong(graph: Graph, results: list[int]) -> dict[int, tuple[int, ...]]:
        operands = real(graph, results)
        node = next(n for n in sorted(operands) if graph.operation[n] == "xor")
        operands[node] = operands[node][:-1]
        return operands

    program_of(LARGE["gaussian"][0], 2)
    monkeypatch.setattr(module, "_operands", wrong)
    with pytest.raises(AssertionError, match="does not compute what was traced"):
        program_of(LARGE["gaussian"][0], 2)
