"""A program to look at: its figures, its arrays as JSON, its graph for Graphviz."""

from collections.abc import Iterator
from typing import Any

from .program import ONE, ZERO, Program


def figures(program: Program) -> dict[str, Any]:
    """What a program holds, by name."""
    return {
        "ANDs": program.ands,
        "XORs": program.xors,
        "depth": program.depth,
        "ANDs of each layer": program.widths,
        "live wires": program.slots - 2,  # two slots hold the constants
        "random bits": program.random_bits,
        "masks": program.masks,
        "bits of a mask": program.mask_bits if program.masks else 0,
        "given bits": program.given,
        "outputs": len(program.outputs),
    }


def to_json(program: Program) -> dict[str, Any]:
    """The program's arrays, as `circuits.program` describes them."""
    return {
        "slots": program.slots,
        "drawn": program.drawn.tolist(),
        "masks": program.masks,
        "mask_bits": program.mask_bits,
        "given": program.given,
        "layers": [
            {
                "random": layer.random.tolist(),
                "masks": layer.masks.tolist(),
                "given": layer.given.tolist(),
                "xors": [[out, list(operands)] for out, operands in layer.gates],
                "ands": layer.ands.tolist(),
            }
            for layer in program.layers
        ],
        "outputs": program.outputs.tolist(),
    }


def to_dot(program: Program) -> str:
    """The program as a graph: a cluster for each layer; boxes are ANDs, circles XORs, diamonds inputs."""
    lines = ["digraph program {", "  rankdir=LR; node [fontsize=9, height=0.2, width=0.2, margin=0.03];"]
    lines += ['  zero [label="0", shape=plaintext];', '  one [label="1", shape=plaintext];']
    lines += _nodes(program)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _nodes(program: Program) -> Iterator[str]:
    held = {ZERO: "zero", ONE: "one"}  # the node whose value a slot holds
    count = drawn = 0

    def node(label: str, shape: str, operands: list[str]) -> tuple[str, str]:
        nonlocal count
        count += 1
        name = f"n{count}"
        edges = "".join(f" {operand} -> {name};" for operand in operands)
        return name, f'    {name} [label="{label}", shape={shape}];{edges}'

    for number, layer in enumerate(program.layers):
        yield f'  subgraph cluster_{number} {{ label="layer {number}"; color=gray;'
        loads = [(slot, f"mask {mask}: {bit}") for slot, mask, bit in layer.masks.tolist()]
        loads += [(slot, f"given {k}") for slot, k in layer.given.tolist()]
        for slot in layer.random.tolist():
            loads.append((slot, f"random {program.drawn[drawn]}"))
            drawn += 1
        for slot, label in loads:
            held[slot], line = node(label, "diamond", [])
            yield line
        for out, operands in layer.gates:
            held[out], line = node("XOR", "circle", [held[slot] for slot in operands])
            yield line
        results = {}
        for out, left, right in layer.ands.tolist():
            results[out], line = node("AND", "box", [held[left], held[right]])
            yield line
        held |= results
        yield "  }"
    for k, slot in enumerate(program.outputs.tolist()):
        yield f'  out{k} [label="output {k}", shape=plaintext]; {held[slot]} -> out{k};'
