"""`dpmpc circuit`: what it prints is what the program holds; the arrays that it writes make the same samples."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dpmpc.circuits.program import Layer, Program
from dpmpc.circuits.sampler import discrete_gaussian, discrete_laplace, noise_program
from dpmpc.cli.main import named
from dpmpc.mpc.clear.executor import run
from dpmpc.mpc.contract.executor import MaskBits
from dpmpc.mpc.contract.lanes import to_planes
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.replicated.backend import SHARING

command = named("circuit")


def ask(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


def figures(output: str) -> dict[str, str]:
    """The columns: names, values."""
    return {line[2:20].strip(): line[21:] for line in output.splitlines() if line.startswith("  ")}


def test_what_is_printed_is_what_the_program_holds_and_costs() -> None:
    sampler = discrete_gaussian(2.0**20)
    program = noise_program(sampler.plan, 2)
    done = ask("gaussian", "--sigma", "2^20", "--samples", 1000)
    assert done.exit_code == 0
    said = figures(done.output)
    assert (said["ANDs"], said["depth"], said["random bits"]) == ("646", "25", "230")
    assert said["XORs"] == f"{program.xors:,}" and said["live wires"] == str(program.slots - 2)
    assert said["ANDs of each layer"].split() == [str(w) for w in program.widths]
    cost = SHARING.count_noise(sampler, 1000, 3, 1)
    assert f"{cost.rounds} rounds, {max(cost.bytes_sent) / 1000:.1f} bytes" in done.output
    five = figures(ask("laplace", "--b", "1000.5", "-M", 5).output)
    assert (five["masks"], five["depth"]) == ("9", str(noise_program(discrete_laplace(1000.5).plan, 9).depth))


def test_the_arrays_that_it_writes_are_the_program(tmp_path: Path) -> None:
    """Read back by someone else, they give the same bits."""
    path = tmp_path / "program.json"
    assert ask("gaussian", "--sigma", 300, "--out", path).exit_code == 0
    value = json.loads(path.read_text())

    def ints(rows: list[object], width: int = 0) -> "np.ndarray[tuple[int, ...], np.dtype[np.int32]]":
        return np.array(rows, dtype=np.int32).reshape((-1, width) if width else -1)

    layers = tuple(
        Layer(
            ints(layer["random"]),
            ints(layer["masks"], 3),
            ints(layer["given"], 2),
            ints([v for out, operands in layer["xors"] for v in (out, len(operands), *operands)]),
            ints(layer["ands"], 3),
        )
        for layer in value["layers"]
    )
    read = Program(
        layers, ints(value["outputs"]), value["slots"], ints(value["drawn"]), value["masks"], value["mask_bits"],
        value["given"],
    )  # fmt: skip
    program = noise_program(discrete_gaussian(300.0).plan, 2)
    masks = [MaskBits(0, to_planes(Prg(b"mask", k).words((128,)), 61)) for k in range(2)]
    given = np.zeros((0, 2), dtype=np.uint64)
    drawn, again = run(program, 2, Prg(b"seed"), masks, given), run(read, 2, Prg(b"seed"), masks, given)
    assert np.array_equal(drawn, again) and drawn.any()


def test_the_graph_has_every_gate(tmp_path: Path) -> None:
    path = tmp_path / "program.dot"
    assert ask("gaussian", "--sigma", "2^7", "--dot", path).exit_code == 0
    text = path.read_text()
    program = noise_program(discrete_gaussian(128.0).plan, 2)
    assert text.startswith("digraph") and text.count("{") == text.count("}")
    assert len(re.findall(r"shape=box", text)) == program.ands
    assert len(re.findall(r"shape=circle", text)) == sum(len(layer.gates) for layer in program.layers)
    assert text.count("subgraph") == len(program.layers)
    names = set(re.findall(r"^\s*(\w+) \[label", text, re.MULTILINE))
    edges = re.findall(r"(\w+) -> (\w+)", text)
    assert {end for edge in edges for end in edge} <= names


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("gaussian", "--sigma", "two"), "takes a number such as 1000.5 or 2^20; got 'two'"),
        (("laplace", "--sampler", "box-muller"), "box-muller"),
        (("gaussian", "-M", 3, "-T", 2), "threshold"),
    ],
)
def test_what_it_cannot_show_is_refused(arguments: tuple[object, ...], says: str) -> None:
    done = ask(*arguments)
    assert done.exit_code != 0
    assert says in done.output + str(done.exception)
