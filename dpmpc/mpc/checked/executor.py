"""The checked executor: replicated sharing among n parties, of which t may do anything. Security with abort.

It runs the programs that `sharing` runs, with the same messages, keeps the operands and results of every AND, and has
the fold (`fold.py`) over all of them before anything that depends on them is opened. Circuits do not see it. Coins are
told when all that they weigh has come (`coins.py`). Where much would be kept, ANDs are folded in segments, some layers
at a time: the next layers take the memory of the last ones, and what is left of all segments is folded together.

What is compared at the end, each with all others: all coins and, where a message has several receivers, what each was
told; X, Y, Z from all of their holders; that it held, with what was opened. Only then is anything converted; and nobody
has a share of the batch before all others have said that their part of the conversion held too.
Source: docs/active.md, which has the argument and the attacks.
"""

from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from dpmpc.circuits.program import Layer, Program
from dpmpc.mpc.checked.coins import COIN
from dpmpc.mpc.checked.fold import BatchCheck, Fold, holds, segments_of
from dpmpc.mpc.checked.rounds import DIGEST, CheckedRounds
from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.contract.executor import MaskBits, Words, execute
from dpmpc.mpc.contract.security import Verdict
from dpmpc.mpc.native.gf64 import THREE, Rights
from dpmpc.mpc.native.layers import Deposit, KeptOperands, Slots, Source
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.replicated.executor import SharingBatch, SharingExecutor
from dpmpc.mpc.replicated.layout import Subset

__all__ = ["COIN", "DIGEST", "CheckedBatch", "CheckedExecutor"]


class CheckedBatch(CheckedRounds, SharingBatch):
    """As `SharingBatch`; outputs are given out after all ANDs were checked by all parties."""

    def __init__(
        self,
        session: CheckedSession,
        ident: int,
        lanes: int,
        *,
        compared: bool = False,
        used_up: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`compared`: the bits that the program is given are the same at all honest holders of each component, as
        whoever gives them has seen to; without it none may be given. `used_up`: called when the last segment's own
        stages are over, and another batch may have the memory of what was kept."""
        SharingBatch.__init__(self, session, ident, lanes)
        self.session: CheckedSession = session
        self._compared, self._used_up = compared, used_up
        self.begin_rounds(session, self.channel)
        self.order = [self.mine.index(s) for s in self.ordered]
        self._pair = [session.stream(s, domains.PAIR, ident) for s in self.ordered]
        self._folds: list[Fold] = []  # of segments, after their own stages

    async def run(self, program: Program, masks: Sequence[MaskBits | None] = (), given: Words | None = None) -> Words:
        """See `SharingBatch.run`. Errors: CheatError when a check fails."""
        assert given is None or self._compared, "inputs may be dealt differently to their holders; noise has none"
        if self._used:  # holds under -O too
            raise AssertionError(f"the batch on channel {self.ident} has run a program already")
        self._used = True
        if not program.ands:
            return await execute(program, SharingExecutor(self, masks, given))
        executor = CheckedExecutor(self, masks, program, given)
        await self._coins.begin(executor.check.coins)
        outputs = await execute(program, executor, executor.room)
        executor.evaluated()
        await self.folded(executor)
        if self._used_up is not None:
            await self._used_up()
        await self._check(executor.check, program.ands * self.words)
        return outputs

    async def folded(self, kept: "CheckedExecutor") -> None:
        """A segment through its own stages: what was kept of it is used up. Cost: a round, and two a stage."""
        stages = kept.stages
        fold = Fold(stages, *kept.operands(), kept.mask, self._rights, self.session.give_back)
        coin = await self._coins.next()  # every message of every AND has come
        await self.session.work(lambda: fold.begin(coin))
        self._note(fold.claim[:, None])
        for _ in range(stages.own):
            await self._stage(fold)
        self._folds.append(fold)

    async def _stage(self, fold: Fold) -> None:
        """Cost: two rounds."""
        part = await self.session.work(fold.sums)
        fold.take(await self._share(part))
        coin = await self._coins.next()
        await self.session.work(lambda: fold.fold(coin))

    def mask(self) -> Words:
        """Shares (2, K) of the check's random pair. To be called once."""
        return np.stack([stream.words((2,)) for stream in self._pair], axis=1)

    async def _check(self, check: BatchCheck, used: int) -> None:
        """The rest of it. `used`: words of ANDs."""
        fold = self._folds[0]
        if check.rest is not None:
            fold = Fold.joined(check.rest, self._folds, await self._coins.next(), self.mask())
        self._folds = []
        for _ in fold.stages.variables[fold.stages.own :]:
            await self._stage(fold)
        await self.agree()
        opened = await self._open(fold.opening)
        if not holds(fold.stages.field, opened):
            raise self.cheat("the product of all ANDs")
        await self.all_say(opened.tobytes(), "the check's verdict")
        digest = domains.CHECKED.digest(self.session.run_id, self.ident, value=opened.tobytes())
        self.session.judged(Verdict(self.ident, used, digest.hex()))

    @property
    def _rights(self) -> Rights:
        """Which products of components are this party's."""
        if self.session.parties == 3:
            return THREE
        rights = dict(self.layout.products(self.party))
        return [rights.get(k, []) for k in range(len(self.mine))]

    async def reveal(self, shares: Words) -> Words | None:
        """As `SharingBatch.reveal`; the other holders of each component that is sent send a digest. Cost: one round.
        Errors: CheatError where they differ."""
        rows = {s: np.ascontiguousarray(shares[:, k]) for k, s in enumerate(self.mine)}
        outgoing = {j: self._told_to(j, rows) for j in self.layout.opened_to if j != self.party}
        seeing = self.party in self.layout.opened_to
        received = await self.channel.exchange(outgoing, self.others if seeing else [])
        if not seeing:
            return None
        digests: dict[int, bytes] = {}
        for j, payload in zip(self.others, received, strict=True):
            whole, rest = self._parts(j, self.party)
            size = len(whole) * len(shares) * self.words * 8
            if len(payload) != size + DIGEST * bool(rest):
                raise self.cheat("the length of what is opened", j)
            words = np.frombuffer(payload[:size], dtype="<u8").reshape(len(whole), len(shares), self.words)
            rows |= zip(whole, words, strict=True)
            digests[j] = bytes(payload[size:])
        for j, digest in digests.items():
            if digest != self._digest(j, [rows[s] for s in self._parts(j, self.party)[1]]):
                raise self.cheat("what two holders open of one component")
        plain: Words = np.bitwise_xor.reduce(np.stack(list(rows.values())), axis=0)
        return plain

    def _parts(self, sender: int, receiver: int) -> tuple[list[Subset], list[Subset]]:
        """The components that one party opens to another: whole, and by a digest of all of them."""
        whole = next((parts for i, j, parts in self.layout.opening_sends if (i, j) == (sender, receiver)), ())
        held = [s for s in self.layout.mine(sender) if receiver not in s]
        return list(whole), [s for s in held if s not in whole]

    def _told_to(self, receiver: int, rows: dict[Subset, Words]) -> bytes | Words:
        whole, rest = self._parts(self.party, receiver)
        if not rest:
            return np.stack([rows[s] for s in whole])
        return b"".join([*(rows[s].tobytes() for s in whole), self._digest(self.party, [rows[s] for s in rest])])

    async def to_field(self, program: Program, less: int = 0, given: Words | None = None) -> Words:
        """See `ProgramEngine.to_field`; nobody has its shares before all have said that their conversion held."""
        values = await super().to_field(program, less, given)
        await self.all_say(b"", "the conversion's verdict")
        return values

    def _digest(self, sender: int, rows: list[Words]) -> bytes:
        """What the sender says of components, one after the other; of none, nothing."""
        value = b"".join(row.tobytes() for row in rows)
        return domains.CONVERSION.digest(self.session.run_id, self.ident, sender, value=value) if rows else b""


class CheckedExecutor(SharingExecutor):
    """Keeps operands and results of ANDs: x, y and z are (K, words), by component, in the order of the check."""

    def __init__(
        self, batch: CheckedBatch, masks: Sequence[MaskBits | None], program: Program, given: Words | None = None
    ) -> None:
        super().__init__(batch, masks, given)
        self.batch: CheckedBatch = batch
        self._sizes = segments_of(program.widths, batch.words)  # ANDs of each segment
        self.check = BatchCheck.of([size * batch.words for size in self._sizes])
        self._number = -1  # of the segment
        self._next()
        self._place = {k: place for place, k in enumerate(batch.order)}
        self._target = self._place[self._products.target]

    def _next(self) -> None:
        """Memory for what the next segment keeps."""
        self._number += 1
        self._kept = 0  # ANDs
        self.stages, used = self.check.segments[self._number], self._sizes[self._number] * self.words
        length, most = self.stages.lengths[0], max(each.lengths[0] for each in self.check.segments)
        self._x, self._y, self._z = [self.batch.session.borrow(self.components, length, most) for _ in range(3)]
        for array in (self._x, self._y, self._z):
            array[:, used:] = 0

    @property
    def mask(self) -> Words | None:
        """The check's random pair, where the segment is the only one."""
        return self.batch.mask() if self.check.rest is None else None

    def room(self, size: int) -> Words:
        """Memory for the wires."""
        self._wires = self.batch.session.borrow(1, size)
        return self._wires.reshape(-1)

    def evaluated(self) -> None:
        """Gives it back: wires are no longer asked for."""
        self.batch.session.give_back(self._wires)

    def kept(self, layer: Layer) -> KeptOperands:
        return KeptOperands(self._x, self._y, self._z[self._target], self._kept, turned=self._place[0] != 0)

    async def layer(self, slots: Slots, layer: Layer, results: list[Deposit]) -> list[Deposit]:
        if len(layer.ands) and self._kept == self._sizes[self._number]:
            slots.deposit(results)  # the last of what the segment keeps
            results = []
            await self.batch.folded(self)
            self._next()
        found = await super().layer(slots, layer, results)
        self._kept += len(layer.ands)
        return found

    def deposits(self, layer: Layer, parts: Sequence[Sequence[Source]]) -> list[Deposit]:
        """As `SharingExecutor.deposits`; also of components that nobody sends anything for: results are copied."""
        others = (k for k in range(self.components) if k != self._products.target)
        return [self.added(layer, k, tuple(parts[k])) for k in others]

    def added(self, layer: Layer, component: int, sources: tuple[Source, ...]) -> Deposit:
        first, count = self._kept, len(layer.ands)
        rows = self._z[self._place[component], first * self.words : (first + count) * self.words]
        return Deposit(layer.results, component, sources, added=True, copy=rows.reshape(count, -1))

    def operands(self) -> tuple[Words, Words, Words]:
        """x, y, z as elements of the check's field. The fold uses up x and y, and gives all of them back."""
        x, y, z = (words.view(self.stages.field.dtype) for words in (self._x, self._y, self._z))
        return x, y, z
