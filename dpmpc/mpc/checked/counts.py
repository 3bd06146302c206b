"""What checked programs cost the parties: arithmetic, nothing is run. Predicts exactly what `checked` does."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import Program
from dpmpc.mpc.checked.coins import COIN
from dpmpc.mpc.checked.fold import BatchCheck, Stages, segments_of
from dpmpc.mpc.checked.rounds import DIGEST
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.native.gf64 import GF64
from dpmpc.mpc.parties.promised_coins import PART
from dpmpc.mpc.replicated.counts import CountingBatch

_OPENED = 3 * 8  # bytes of X, Y, Z


class CountingChecked(CountingBatch):
    """As `CountingBatch`; `kinds` lists every kind of message with the exchange of the channel that carries it."""

    def __init__(self, lanes: int, parties: int = 3, threshold: int = 1) -> None:
        super().__init__(lanes, parties, threshold)
        self.kinds: list[str] = []
        self.checks: list[BatchCheck] = []

    @property
    def error(self) -> Fraction:
        """How likely the batch, or one of fewer lanes, passes with a wrong AND, at most. Where messages have several
        receivers, these may have been told different things: the hash of what they hold is a polynomial of degree 2
        in the first coin, too."""
        differing = Fraction(2 * (len(self.layout.receivers(0)) > 1), 1 << GF64.bits)
        return sum((check.worst + differing for check in self.checks), Fraction(0))

    def _round(self, kind: str, size: int, receivers: int | None = None) -> None:
        """An exchange in which every party sends so many bytes to each other one, or to some of them."""
        self.add_round()
        self.kinds.append(kind)
        for i in range(self.layout.parties):
            self.add_message(i, size, self.layout.parties - 1 if receivers is None else receivers)

    def add_program(self, program: Program) -> None:
        """A program and its check."""
        three, parties = self.layout.parties == 3, self.layout.parties
        coin = (COIN, 1) if three else (PART, None)

        def told(stages: Stages) -> None:
            self._round("coin", *coin)
            for words in stages.messages:
                self._round("sums", 8 * words, len(self.layout.receivers(0)))
                self._round("coin", *coin)

        if program.ands and not three:
            self._round("promise", PART)
        super().add_program(program)
        if not program.ands:
            return
        words, ahead, widths = words_for(self.lanes), 0, list(program.widths)
        sizes = segments_of(widths, words)
        self.checks.append(check := BatchCheck.of([size * words for size in sizes]))
        for size, stages in zip(sizes, check.segments, strict=True):
            ahead += size
            while ahead and widths:
                ahead -= widths.pop(0)
                self.kinds.append("and")
            told(stages)
        if check.rest is not None:
            told(check.rest)
        self._round("log", DIGEST)
        if not three:
            self._round("agreed", DIGEST)
        lacking = math.comb(parties - 2, self.layout.threshold - 1)  # components that one party has and another lacks
        self._round("product", _OPENED * lacking)
        self._round("verdict", DIGEST)

    def add_reveal(self, wires: int) -> None:
        """An opening, with the digests of the other holders."""
        super().add_reveal(wires)
        self.kinds.append("conversion")
        sends = {(i, j): len(parts) for i, j, parts in self.layout.opening_sends}
        lacking = math.comb(self.layout.parties - 2, self.layout.threshold - 1)
        for receiver in self.layout.opened_to:
            for sender in range(self.layout.parties):
                whole = sends.get((sender, receiver), 0)
                if sender != receiver and whole < lacking:
                    self.bytes_sent[sender] += DIGEST
                    self.messages_sent[sender] += not whole  # else it is in one message with what is sent whole

    async def to_field(self, program: Program, less: int = 0) -> NDArray[np.uint64]:
        """See `ProgramEngine.to_field`; no numbers."""
        result = await super().to_field(program, less)
        self._round("converted", DIGEST)
        return result
