"""Sums of votes are decided on replicated shares, and what that costs: comparisons, whether a cell passes, signs.

In order, some cells at a time: two numbers a vote, of shares of degree t, become bits (`unmasking`), of which one says
in which half of F_p each lies; a cell's bits are joined; what a vote opens to becomes shares in F_p again, by the
conversion that noise has. Nobody sees a bit of it: all that is opened is masked, perfectly but for that conversion's
2^-(61 k) a vote, of which k = C(n, t) - 1 masks make nothing.
"""

from typing import TypeVar

import numpy as np

from dpmpc.circuits.deciding import SHIFT, half_program, passing_program, sign_program
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.contract.backend import Counts
from dpmpc.mpc.contract.decisions import CHANNELS, Decision
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import P, Words
from dpmpc.mpc.owner_checks.counts import Exchanges
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.replicated.unmasking import Unmasking

Batch = TypeVar("Batch", bound=CountingBatch)
COMPARED, JOINED, SIGNED = 1, 2, 3  # channels of a batch, after the one on which masked numbers are opened


class Deciding:
    """At one party. `channel`: the first of `CHANNELS` for each batch of cells."""

    def __init__(self, session: Session, channel: int, decision: Decision) -> None:
        self.session, self.channel, self.decision = session, channel, decision

    def unmasking(self, ident: int) -> Unmasking:
        """How numbers become bits."""
        return Unmasking(self.session, self.session.channel(ident))

    async def run(self, total: Words, noise: Words) -> Words:
        """(cells * votes,) shares of what is to be opened, of shares of the sums and of the noise (cells,)."""
        if (total.size, noise.size) != (self.decision.dimension, self.decision.cells):  # holds under -O too
            raise AssertionError("a cell has its votes, and one noise")
        found, at = [], 0
        for k, batch in enumerate(self.decision.batches):
            cells = slice(at, at + batch.cells)
            votes = total.reshape(self.decision.cells, -1)[cells]
            found.append(await self._some(batch, votes, noise[cells], self.channel + CHANNELS * k))
            at += batch.cells
        return np.concatenate(found)

    async def _some(self, batch: Decision, total: Words, noise: Words, ident: int) -> Words:
        unmasking, lanes = self.unmasking(ident), batch.dimension
        numbers = compared(total, noise, batch)
        compares = unmasking.batch(ident + COMPARED, numbers.size)
        bits = await unmasking.run(numbers, compares, half_program(compares.masks))
        components = range(len(compares.mine))
        votes = [from_planes(bits[:1, k])[: numbers.size].reshape(2, batch.cells, batch.votes) for k in components]
        joins = unmasking.batch(ident + JOINED, batch.cells)
        by_vote = np.stack([_planes_of(each.transpose(0, 2, 1).reshape(-1, batch.cells)) for each in votes], axis=1)
        passed = await joins.run(passing_program(batch.votes), (), by_vote)
        signs = unmasking.batch(ident + SIGNED, lanes)
        given = np.stack([self._of_lanes(passed[:, k], votes[k][0], batch) for k in components], axis=1)
        found: Words = await signs.to_field(sign_program(signs.masks), SHIFT, given)
        return found

    def _of_lanes(self, passed: Words, above: Words, batch: Decision) -> Words:
        """(2, W): of a component, whether its cell passes and `above`, a lane a vote."""
        cells = from_planes(passed)[: batch.cells]
        return _planes_of(np.stack([np.repeat(cells, batch.votes), above.reshape(-1)]))


def compared(total: Words, noise: Words, decision: Decision) -> Words:
    """(2, cells, votes) shares of V + eta - least + 1 and of -V + eta - least + 1 (`circuits.deciding`). Local: public
    numbers are shares of themselves."""
    eta = field.add(noise, np.full(1, (1 - decision.least) % P, dtype=np.uint64))[:, None]
    eta = np.broadcast_to(eta, total.shape)
    return np.stack([field.add(eta, total), field.sub(eta, total)])


def _planes_of(rows: Words) -> Words:
    """(rows, W): a bit of every lane of each row."""
    lanes = np.zeros((len(rows), 64 * words_for(rows.shape[1])), dtype=np.uint64)
    lanes[:, : rows.shape[1]] = rows
    return np.concatenate([to_planes(row, 1) for row in lanes])


def count_decision(
    make: type[Batch], decision: Decision, parties: int, threshold: int, senders: tuple[int, ...] | range
) -> tuple[tuple[Counts, ...], list[Batch]]:
    """(the cost by channel, the batches). `senders`: of the shares of masked numbers."""
    layout, found, batches = SharingLayout.of(parties, threshold), [], list[Batch]()
    for batch in decision.batches:
        channel = Exchanges(parties)
        channel.add(senders, layout.opened_to, 2 * WORD * batch.dimension)
        mine = [make(lanes, parties, threshold) for lanes in (2 * batch.dimension, batch.cells, batch.dimension)]
        compares, joins, signs = mine
        compares.add_program(half_program(compares.masks))
        joins.add_program(passing_program(batch.votes))
        evaluate(signs.to_field(sign_program(signs.masks)))
        found += [channel.counts(), *(_counts_of(each) for each in mine)]
        batches += mine
    return tuple(found), batches


def _counts_of(batch: CountingBatch) -> Counts:
    """With its ANDs, of all lanes."""
    sample = {"ands": batch.ands * batch.lanes}
    return Counts(batch.rounds, tuple(batch.bytes_sent), tuple(batch.messages_sent), sample)
