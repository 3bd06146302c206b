"""The checked executor: replicated sharing among three parties, of which one may do anything. Security with abort.

It runs the programs that `sharing` runs, with the same messages, keeps the operands and results of every AND, and has
the fold (`fold.py`) over all of them before anything that depends on them is opened. Circuits do not see it.

Party j shares component (j, j + 1) with its successor j + 1, the only receiver of its messages of ANDs and sums, and
(j - 1, j) with its predecessor. Every coin is the sum of a piece of each component. A party lacks the piece of the two
others; its successor tells it, after all of the stage's messages of this party have come, and never before: so whatever
a party may add to a message is fixed before the coin that weighs it. (Its predecessor, which has the piece too, could
tell it early, and never tells it.)

What is compared at the end, each against both others: the log of all coins; X, Y, Z from both of their holders; that it
held, with what was opened. Only then is anything converted; and nobody has a share of the batch before both others have
said that their part of the conversion held too.
Source: docs/active.md, which has the argument and the attacks.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.program import Layer, Program
from dpmpc.mpc.checked_session import CheckedSession
from dpmpc.mpc.engines.checked_rounds import COIN, DIGEST, CheckedRounds
from dpmpc.mpc.engines.executor import MaskBits, Words, execute
from dpmpc.mpc.engines.fold import Fold, Stages, holds
from dpmpc.mpc.engines.sharing import SharingBatch, SharingExecutor
from dpmpc.mpc.native.layers import Deposit, Kept, Slots, add_sources
from dpmpc.mpc.security import Verdict

__all__ = ["COIN", "DIGEST", "CheckedBatch", "CheckedExecutor"]


class CheckedBatch(CheckedRounds, SharingBatch):
    """As `SharingBatch`, for three parties; outputs are given out after all ANDs were checked by all parties."""

    def __init__(self, session: CheckedSession, ident: int, lanes: int, *, compared: bool = False) -> None:
        """`compared`: the bits that the program is given are the same at both honest holders of each component, as
        whoever gives them has seen to; without it none may be given."""
        SharingBatch.__init__(self, session, ident, lanes)
        self.session: CheckedSession = session
        self._compared = compared
        self.begin_rounds(session, self.channel)
        self.order = [self.mine.index(s) for s in self.ordered]  # with the one first that takes messages
        self._pair = [session.stream(s, "pair", ident) for s in self.ordered]

    def stages(self, words: int) -> Stages:
        """The check's."""
        return Stages.of(words)

    async def run(self, program: Program, masks: Sequence[MaskBits | None] = (), given: Words | None = None) -> Words:
        """See `SharingBatch.run`. Errors: CheatError when a check fails."""
        assert given is None or self._compared, "inputs may be dealt differently to their holders; noise has none"
        if self._used:  # holds under -O too
            raise AssertionError(f"the batch on channel {self.ident} has run a program already")
        self._used = True
        executor = CheckedExecutor(self, masks, program, given)
        outputs = await execute(program, executor)
        if program.ands:
            await self._check(executor)
        executor.give_back()
        return outputs

    async def _check(self, kept: "CheckedExecutor") -> None:
        work = self.session.work
        pair = np.stack([stream.words((2,)) for stream in self._pair], axis=1)
        fold = Fold(kept.stages, *kept.operands(), pair.astype(kept.stages.field.dtype))
        coin = await self._coin()  # every message of every AND has come
        await work(lambda: fold.begin(coin))
        for _ in kept.stages.variables:
            part = await work(fold.sums)
            fold.take(await self._share(part))
            stage_coin = await self._coin()
            await work(lambda: fold.fold(stage_coin))  # noqa: B023 - awaited before the next
        await self.all_say(self._log.digest(), "the coins")
        opened = await self._open(fold.opening)
        if not holds(kept.stages.field, opened):
            raise self.cheat("the product of all ANDs")
        seen = hashlib.sha256(f"batch {self.ident} held".encode() + opened.tobytes())
        await self.all_say(seen.digest(), "the check's verdict")
        self.session.judged(Verdict(self.ident, kept.used, seen.hexdigest()))

    async def reveal(self, shares: Words) -> Words | None:
        """As `SharingBatch.reveal`; the other holder of each component that is sent sends its digest. Cost: one round.
        Errors: CheatError where the two differ."""
        missing = {receiver: (sender, parts) for sender, receiver, parts in self.layout.opening_sends}
        outgoing: dict[int, bytes | Words] = {}
        for receiver, (sender, (component,)) in missing.items():
            if self.party in component:
                words = np.ascontiguousarray(shares[:, self.mine.index(component)])
                outgoing[receiver] = words if self.party == sender else hashlib.sha256(words.tobytes()).digest()
        incoming = [self.successor, self.predecessor] if self.party in missing else []
        payloads = dict(zip(incoming, await self.channel.exchange(outgoing, incoming), strict=True))
        if not incoming:
            return None
        whole = payloads.pop(missing[self.party][0])
        (digest,) = payloads.values()
        if len(whole) != len(shares) * self.words * 8 or hashlib.sha256(whole).digest() != bytes(digest):
            raise self.cheat("what two holders open of one component")
        plain: Words = np.bitwise_xor.reduce(shares, axis=1)
        plain ^= np.frombuffer(whole, dtype="<u8").reshape(len(shares), self.words)
        return plain

    async def to_field(self, program: Program, less: int = 0) -> Words:
        """See `ProgramEngine.to_field`; nobody has its shares before all have said that their conversion held."""
        values = await super().to_field(program, less)
        await self.all_say(
            hashlib.sha256(f"batch {self.ident} converted".encode()).digest(), "the conversion's verdict"
        )
        return values


class CheckedExecutor(SharingExecutor):
    """Keeps operands and results of ANDs: x, y and z are (2, words), by component, the messages' one first."""

    def __init__(
        self, batch: CheckedBatch, masks: Sequence[MaskBits | None], program: Program, given: Words | None = None
    ) -> None:
        super().__init__(batch, masks, given)
        self.batch: CheckedBatch = batch
        self.stages = batch.stages(max(1, program.ands * batch.words))
        length = self.stages.lengths[0] * self.stages.field.bits // 64
        self.used = used = program.ands * batch.words  # words of ANDs
        self._x, self._y, self._z = self._scratch = [batch.session.borrow(length) for _ in range(3)]
        for array in (self._x, self._y, self._z):
            array[:, used:] = 0
        self._kept = 0  # ANDs
        self._place = {k: place for place, k in enumerate(batch.order)}

    def kept(self, layer: Layer) -> Kept:
        return Kept(self._x, self._y, self._kept, turned=self._place[0] == 1)

    async def layer(self, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        found = await super().layer(slots, layer, results)
        if not found:
            return found
        first, count = self._kept, len(layer.ands)
        rows = self._z[:, first * self.words : (first + count) * self.words]
        for deposit in found:
            add_sources(deposit.sources, rows[self._place[deposit.component]])
        self._kept += count
        return [Deposit(d.slots, d.component, (rows[self._place[d.component]].reshape(count, -1),)) for d in found]

    def operands(self) -> tuple[Words, Words, Words]:
        """x, y, z as elements of the check's field. The fold uses up x and y."""
        x, y, z = (words.view(self.stages.field.dtype) for words in (self._x, self._y, self._z))
        return x, y, z

    def give_back(self) -> None:
        """Lets the next batch have the memory; to be called when the check is over."""
        for array in self._scratch:
            self.batch.session.give_back(array)
