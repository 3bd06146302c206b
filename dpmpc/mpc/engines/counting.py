"""What a program costs the parties, for any (n, t) and number of lanes: arithmetic on the program, nothing is run.

Predicts exactly what `sharing` does: ANDs, rounds, random bits, bytes and messages of each party.
"""

from dataclasses import dataclass, field

from dpmpc.circuits.program import Program
from dpmpc.mpc.engines.lanes import words_for
from dpmpc.mpc.engines.layout import Layout


@dataclass
class Cost:
    """The cost of one batch of `lanes` lanes."""

    lanes: int
    parties: int
    threshold: int
    ands: int = 0  # a lane
    random_bits: int = 0  # a lane
    rounds: int = 0
    bytes_sent: list[int] = field(default_factory=list)  # payload, by party
    messages_sent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bytes_sent = self.bytes_sent or [0] * self.parties
        self.messages_sent = self.messages_sent or [0] * self.parties

    @property
    def layout(self) -> Layout:
        return Layout.of(self.parties, self.threshold)

    def add_round(self) -> None:
        """One exchange; a party alone has none."""
        self.rounds += self.parties > 1

    def add_message(self, sender: int, size: int, copies: int = 1) -> None:
        """`copies` messages of so many bytes."""
        self.messages_sent[sender] += copies
        self.bytes_sent[sender] += copies * size

    def add_program(self, program: Program) -> None:
        """One evaluation of a program by `sharing`: a bit of every AND to each receiver."""
        self.ands += program.ands
        self.random_bits += program.random_bits
        for width in program.widths:
            self.add_round()
            for i in range(self.parties):
                self.add_message(i, width * words_for(self.lanes) * 8, len(self.layout.receivers(i)))

    def add_reveal(self, wires: int) -> None:
        """The opening of so many wires to those who may see them."""
        self.add_round()
        for sender, _, components in self.layout.opening_sends:
            self.add_message(sender, len(components) * wires * words_for(self.lanes) * 8)


def count(program: Program, lanes: int, parties: int, threshold: int) -> Cost:
    """The cost of a program and of opening its outputs."""
    cost = Cost(lanes, parties, threshold)
    cost.add_program(program)
    cost.add_reveal(len(program.outputs))
    return cost
