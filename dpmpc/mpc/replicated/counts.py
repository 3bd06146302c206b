"""What programs cost the parties, for any (n, t) and number of lanes: arithmetic on a program, nothing is run.

Predicts exactly what `sharing` does: ANDs, rounds, random bits, bytes and messages of each party.
"""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import Program
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.replicated.layout import SharingLayout


class CountingBatch:
    """Counts one batch of `lanes` lanes at (parties, threshold)."""

    def __init__(self, lanes: int, parties: int = 3, threshold: int = 1) -> None:
        self.lanes = lanes
        self.layout = SharingLayout.of(parties, threshold)
        self.ands = 0  # a lane
        self.random_bits = 0  # a lane
        self.rounds = 0
        self.bytes_sent = [0] * parties  # payload, by party
        self.messages_sent = [0] * parties
        self.programs: list[Program] = []

    @property
    def masks(self) -> int:
        return len(self.layout.subsets) - 1

    def add_round(self) -> None:
        """One exchange; a party alone has none."""
        self.rounds += self.layout.parties > 1

    def add_message(self, sender: int, size: int, copies: int = 1) -> None:
        """`copies` messages of so many bytes."""
        self.messages_sent[sender] += copies
        self.bytes_sent[sender] += copies * size

    def add_program(self, program: Program) -> None:
        """A program as `sharing` runs it: a bit of every AND to each receiver."""
        self.programs.append(program)
        self.ands += program.ands
        self.random_bits += program.random_bits
        for width in program.widths:
            self.add_round()
            for i in range(self.layout.parties):
                self.add_message(i, width * words_for(self.lanes) * 8, len(self.layout.receivers(i)))

    def add_reveal(self, wires: int) -> None:
        """The opening of so many wires to those who may see them."""
        self.add_round()
        for sender, _, components in self.layout.opening_sends:
            self.add_message(sender, len(components) * wires * words_for(self.lanes) * 8)

    async def to_field(self, program: Program, less: int = 0) -> NDArray[np.uint64]:
        """See `ProgramEngine.to_field`; no numbers."""
        self.add_program(program)
        self.add_reveal(len(program.outputs))
        return np.zeros(0, dtype=np.uint64)
