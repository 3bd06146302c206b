"""The sharing engine: replicated secret sharing over F_2 among the parties of a session, for any (n, t) with 2t < n.

Semi-honest, t parties learn nothing: every message of an AND is masked by a PRSS stream that no t parties without the
sender know all of. Random bits and masks come from PRSS without a message. Streams are bound to the session's keys,
the run id and the engine's channel, and each word is used once.
Source: Araki et al. 2016 for (3, 1); Cramer, Damgård, Ishai 2005 for PRSS and the general products.
"""

import math
from typing import Any

import numpy as np

from dpmpc.circuits.convert import FIELD_BITS
from dpmpc.circuits.engine import Bundle
from dpmpc.mpc import field
from dpmpc.mpc.engines.lanes import Words, from_planes, to_planes, words_for
from dpmpc.mpc.engines.layout import Layout, Subset
from dpmpc.mpc.session import Session

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


class SharingEngine:
    """One batch of `lanes` evaluations. Bundles have shape (*wires, K, words), K = C(n-1, t) components in the order
    of `layout.mine`.

    All parties make the engine with the same `ident` (one channel of the session) and run the same circuit on it.
    """

    def __init__(self, session: Session, ident: int, lanes: int) -> None:
        self.lanes = lanes
        self.session = session
        self.channel = session.channel(ident)
        self.layout = Layout.of(session.parties, session.threshold)
        me = self.party = session.party
        self.mine = self.layout.mine(me)
        self.words = words_for(lanes)
        self.tail: tuple[int, ...] = (len(self.mine), self.words)
        self.ands = 0
        self._ident = ident
        self._products = self.layout.products(me)
        self._receivers = self.layout.receivers(me)
        # Party j's part of a product lands in its target component, masked by the other components of j, which get the
        # masks.
        self._target = self.mine.index(self.layout.target(me))
        self._own = [(k, session.stream(s, "and", ident, me)) for k, s in enumerate(self.mine) if k != self._target]
        self._others = [
            (k, session.stream(s, "and", ident, j))
            for k, s in enumerate(self.mine)
            for j in s
            if j != me and s != self.layout.target(j)
        ]
        self._senders = [
            (j, self.mine.index(self.layout.target(j)))
            for j in range(session.parties)
            if j != me and me in self.layout.target(j)
        ]
        self._random = [session.stream(s, "random", ident) for s in self.mine]
        self._public = self.mine.index(self.layout.subsets[0]) if me in self.layout.subsets[0] else None
        self._masks = 0

    def constant(self, bits: Any) -> Bundle:
        wires = np.asarray(bits, dtype=bool)
        out = np.zeros((*wires.shape, *self.tail), dtype=np.uint64)
        if self._public is not None:
            out[..., self._public, :] = np.where(wires[..., None], _ONES, np.uint64(0))
        return out

    def not_(self, x: Bundle) -> Bundle:
        if self._public is None:
            return x
        out = x.copy()
        np.invert(out[..., self._public, :], out=out[..., self._public, :])
        return out

    def random_bits(self, *wires: int) -> Bundle:
        out = np.empty((math.prod(wires), *self.tail), dtype=np.uint64)
        for k, stream in enumerate(self._random):
            out[:, k] = stream.words((len(out), self.words))
        return out.reshape(*wires, *self.tail)

    async def and_(self, x: Bundle, y: Bundle) -> Bundle:
        shape = np.broadcast_shapes(x.shape, y.shape)
        local = self._local_product(x, y)
        if not local.size:
            return np.zeros(shape, dtype=np.uint64)
        self.ands += math.prod(shape[:-2])
        out = np.empty(shape, dtype=np.uint64)
        fresh = [True] * len(self.mine)

        def put(k: int, words: Words) -> None:
            if fresh[k]:
                out[..., k, :] = words
                fresh[k] = False
            else:
                out[..., k, :] ^= words

        for k, stream in self._own:
            mask = stream.words(local.shape)
            local ^= mask
            put(k, mask)
        local = np.ascontiguousarray(local)
        pending = None
        if self.layout.parties > 1:  # sent at once; the streams below are drawn while the network works
            pending = self.channel.words(
                dict.fromkeys(self._receivers, local.reshape(-1)), [j for j, _ in self._senders], local.size
            )
        put(self._target, local)
        for k, stream in self._others:
            put(k, stream.words(local.shape))
        if pending is not None:
            for (_, k), words in zip(self._senders, await pending, strict=True):
                put(k, words.reshape(local.shape))
        return out

    def _local_product(self, x: Bundle, y: Bundle) -> Words:
        """This party's part of x y: the XOR over its pairs of components."""
        result: Words | None = None
        for k, others in self._products:
            right = y[..., others[0], :]
            for l in others[1:]:
                right = right ^ y[..., l, :]
            term = x[..., k, :] & right
            if result is None:
                result = term
            else:
                result ^= term
        if result is None:  # t = 0: one party holds everything and does everything
            return np.zeros(np.broadcast_shapes(x[..., 0, :].shape, y[..., 0, :].shape), dtype=np.uint64)
        return result

    async def reveal(self, y: Bundle) -> Words | None:
        """The bits y in the clear, (*wires, words), at the members of `layout.opened_to`; None elsewhere. Cost: one
        round."""
        outgoing, incoming, sizes = {}, [], []
        for sender, receiver, parts in self.layout.opening_sends:
            if sender == self.party:
                held = [self.mine.index(s) for s in parts]
                outgoing[receiver] = np.ascontiguousarray(y[..., held, :]).reshape(-1)
            if receiver == self.party:
                incoming.append(sender)
                sizes.append(len(parts))
        received = await self.channel.exchange(outgoing, incoming) if self.layout.parties > 1 else []
        if self.party not in self.layout.opened_to:
            return None
        plain: Words = np.bitwise_xor.reduce(y, axis=-2)
        for payload, count in zip(received, sizes, strict=True):
            parts_words = np.frombuffer(payload, dtype="<u8").reshape(*plain.shape[:-1], count, self.words)
            plain ^= np.bitwise_xor.reduce(parts_words, axis=-2)
        return plain

    def field_mask(self) -> "SharedMask":
        self._masks += 1
        return SharedMask(self, self._masks)


class SharedMask:
    """PRSS field elements: one for each subset but `layout.opened_to`; bits shared over F_2, values over F_p."""

    def __init__(self, engine: SharingEngine, number: int) -> None:
        self._engine = engine
        layout, session = engine.layout, engine.session
        masked = [s for s in layout.subsets if s != layout.opened_to]
        self.bits: Bundle = np.zeros((len(masked), FIELD_BITS, *engine.tail), dtype=np.uint64)
        self._values: list[tuple[Subset, Words]] = []
        for m, s in enumerate(masked):
            if s in engine.mine:
                values = field.uniform(session.stream(s, "mask", engine._ident, number), (64 * engine.words,))
                self._values.append((s, values))
                self.bits[m, :, engine.mine.index(s)] = to_planes(values, FIELD_BITS)

    async def open(self, y: Bundle) -> Words:
        engine = self._engine
        layout, me, n = engine.layout, engine.party, engine.session.parties
        plain = await engine.reveal(y)
        share = np.zeros(64 * engine.words, dtype=np.uint64)
        if plain is not None:
            opened = from_planes(plain)
            opened = np.where(opened == np.uint64(field.P), np.uint64(0), opened)
            share = field.mul(opened, field.subset_weight(layout.opened_to, n, me))
        for s, values in self._values:
            share = field.sub(share, field.mul(values, field.subset_weight(s, n, me)))
        return share[: engine.lanes]
