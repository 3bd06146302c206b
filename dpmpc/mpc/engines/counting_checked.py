"""What checked programs cost the three parties: arithmetic, nothing is run. Predicts exactly what `checked` does."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import Program
from dpmpc.mpc.engines.checked import COIN, DIGEST
from dpmpc.mpc.engines.counting import CountingBatch
from dpmpc.mpc.engines.fold import Stages
from dpmpc.mpc.engines.lanes import words_for

_OPENED = 3 * 8  # bytes of X, Y, Z


class CountingChecked(CountingBatch):
    """As `CountingBatch`; `kinds` lists every kind of message with the exchange of the channel that carries it."""

    def __init__(self, lanes: int, parties: int = 3, threshold: int = 1) -> None:
        super().__init__(lanes, parties, threshold)
        self.kinds: list[str] = []
        self.stages: list[Stages] = []

    def _round(self, kind: str, size: int, copies: int = 1) -> None:
        """An exchange in which every party sends so many messages."""
        self.add_round()
        self.kinds.append(kind)
        for i in range(self.layout.parties):
            self.add_message(i, size, copies)

    def add_program(self, program: Program) -> None:
        """A program and its check."""
        super().add_program(program)
        self.kinds += ["and"] * len(program.widths)
        if not program.ands:
            return
        stages = Stages.of(program.ands * words_for(self.lanes))
        self.stages.append(stages)
        self._round("coin", COIN)
        for words in stages.messages:
            self._round("sums", 8 * words)
            self._round("coin", COIN)
        self._round("log", DIGEST, 2)
        self._round("product", _OPENED, 2)
        self._round("verdict", DIGEST, 2)

    def add_reveal(self, wires: int) -> None:
        """An opening, with the digests of the other holders."""
        super().add_reveal(wires)
        self.kinds.append("conversion")
        for sender, receiver, (component,) in self.layout.opening_sends:
            (other,) = (i for i in component if i != sender)
            assert other != receiver
            self.add_message(other, DIGEST)

    async def to_field(self, program: Program, less: int = 0) -> NDArray[np.uint64]:
        """See `ProgramEngine.to_field`; no numbers."""
        result = await super().to_field(program, less)
        self._round("converted", DIGEST, 2)
        return result
