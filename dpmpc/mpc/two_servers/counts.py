"""What programs cost two servers with oblivious transfer, for any number of lanes and any k: arithmetic on a program's
transfers, nothing is run. Predicts exactly what `ot` does: transfers, flows, bytes and messages of each party."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.lift import HeapProgram
from dpmpc.circuits.program import Program
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.two_servers import extension, half_gates
from dpmpc.mpc.two_servers.consistency import ANSWER_BYTES, CHALLENGE_BYTES
from dpmpc.mpc.two_servers.extension import correction_words
from dpmpc.mpc.two_servers.flows import FLOWS
from dpmpc.mpc.two_servers.garbled import GARBLER, NO_PRODUCTS, piece_words, pieces
from dpmpc.mpc.two_servers.lifts import FIELD_CHOOSER, Lifts, lifts_of, products_of_heap, transfers_of
from dpmpc.mpc.two_servers.products import ProductTransfers, products_of


class CountingOt:
    """Counts one batch of `lanes` lanes with trees of 2^k leaves."""

    masks = 1

    def __init__(self, lanes: int, k: int) -> None:
        self.lanes, self.k, self.words = lanes, k, words_for(lanes)
        self.transfers = [0, 0]  # a lane, by who chooses
        self.ands = self.random_bits = 0  # a lane, of programs
        self.wide = 0  # strings that are reduced mod p
        self.chance = 0.0  # that points of hashes meet
        self.rounds = 0
        self.bytes_sent = [0, 0]
        self.messages_sent = [0, 0]

    def add_flow(self, rows: tuple[int, int]) -> None:
        """One message each way, of so many planes by party 0 and by party 1; of none, no message."""
        self.rounds += any(rows)
        for party, count in enumerate(rows):
            self.messages_sent[party] += count > 0
            self.bytes_sent[party] += 8 * self.words * count

    def add_transfers(self, slots: tuple[int | None, int | None]) -> None:
        """The three flows of transfers, by who chooses; None: not in that direction."""
        self.rounds += FLOWS
        for chooser, count in enumerate(slots):
            if count is None:
                continue
            self.transfers[chooser] += count
            self.chance += extension.chance(64 * self.words * count, self.words)
            self.messages_sent[chooser] += 2
            self.bytes_sent[chooser] += 8 * correction_words(self.k, count, self.words) + ANSWER_BYTES
            self.messages_sent[1 - chooser] += 1
            self.bytes_sent[1 - chooser] += CHALLENGE_BYTES

    def _add_products(self, products: ProductTransfers, lifts: Lifts | None) -> None:
        due = transfers_of(products, lifts, 0), transfers_of(products, lifts, 1)
        if any(due):
            self.add_transfers(due)
        for layer in products.layers:
            rows = len(layer.told) + len(layer.sent)
            self.add_flow((rows, rows))

    def _add_sampled(self, heap: HeapProgram) -> Lifts:
        lifts = lifts_of(heap)
        self._add_products(products_of_heap(heap), lifts)
        return lifts

    def _add_program(self, program: Program) -> None:
        products = products_of(program)
        if products.transfers:
            self._add_products(products, None)

    async def lift(self, heap: HeapProgram, less: int = 0) -> NDArray[np.uint64]:
        """See `LiftEngine.lift`; no numbers."""
        self.ands += heap.program.ands
        self.random_bits += heap.random_bits
        lifts = self._add_sampled(heap)
        self.add_flow((lifts.rows(0), lifts.rows(1)))
        self.add_flow((1, FIELD_BITS) if FIELD_CHOOSER == 0 else (FIELD_BITS, 1))
        self.wide += 1
        return np.zeros(0, dtype=np.uint64)

    async def to_field(self, program: Program, less: int = 0) -> NDArray[np.uint64]:
        """See `ProgramEngine.to_field`; no numbers."""
        self.ands += program.ands
        self.random_bits += program.random_bits
        self._add_program(program)
        self.add_flow((len(program.outputs), 0))
        return np.zeros(0, dtype=np.uint64)


class CountingGarbled(CountingOt):
    """The same for garbled circuits."""

    def _add_sampled(self, heap: HeapProgram) -> Lifts:
        lifts = lifts_of(heap, births=False)
        self._add_program(heap.program)
        self._add_products(NO_PRODUCTS, lifts)
        return lifts

    def _add_program(self, program: Program) -> None:
        self.chance += half_gates.chance(program, 64 * self.words)
        if program.random_bits:
            self.add_transfers((None, program.random_bits))
        for part in pieces(program, 64 * self.words):
            self.rounds += 1
            self.messages_sent[GARBLER] += 1
            self.bytes_sent[GARBLER] += 8 * piece_words(program, part.stop - part.start)
