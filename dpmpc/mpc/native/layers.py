"""Layers of a program (`dpmpc.circuits.program`) on words: what every executor's inner loop is.

A wire is a row of words for each of the executor's components (shares, or one in the clear). The slots of a program
lie in memory in tiles, some words of every slot together, which kernels' threads share out; rows go in and come out
whole, and no result depends on the tiles. Tiles are as long as can be: a processor fetches ahead along a row, and short
tiles that stay in a core's cache were slower (docs/notes/cost.md).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.program import NO_GATES, ONE, Ints, Layer
from dpmpc.lazy import dataclass
from dpmpc.mpc.native import choice
from dpmpc.mpc.native.aes import Stretch

Words = NDArray[np.uint64]
Source = Words | Stretch
Room = Callable[[int], Words]

SHORTEST = 128  # words of a slot in a tile, of rows that threads share out
_TILES_EACH = 4  # tiles of a thread: who is done early takes some of the others'
LINE = 8  # words of a cache line
_NOTHING = np.zeros(0, dtype=np.int32)


def on_line(whole: Words, size: int) -> Words:
    """So many words of `whole`, which has a line's more, that begin with a cache line: registers are taken and put in
    one piece."""
    start = -whole.__array_interface__["data"][0] // 8 % LINE
    return whole[start : start + size]


def new_words(shape: tuple[int, ...]) -> Words:
    """An array to write into that begins with a cache line."""
    size = math.prod(shape)
    return on_line(np.empty(size + LINE, dtype=np.uint64), size).reshape(shape)


@dataclass(frozen=True)
class Deposit:
    """Rows for one component of slots: the XOR of `sources`, (len(slots), words) each; of none: zeros. `added`: XOR
    what is there. `copy`, (len(slots), words), gets what is in the slots then."""

    slots: Ints
    component: int
    sources: tuple[Source, ...]
    added: bool = False
    copy: Words | None = None


@dataclass(frozen=True)
class ProductLayer:
    """The local part of an AND: the XOR over (k, [l, ...]) of x_k AND (y_l XOR ...), for the component `target`."""

    pairs: Sequence[tuple[int, Sequence[int]]]
    target: int = 0

    @property
    def encoded(self) -> Ints:
        """k, how many l, those; for each pair."""
        return np.array([v for k, others in self.pairs for v in (k, len(others), *others)], dtype=np.int32)


@dataclass(frozen=True)
class Masks:
    """Rows (ANDs, words) that mask products, each with the component that takes it. `own`: of this party's message, at
    most one for each component but the target; `others`: of the other parties' messages."""

    own: Sequence[tuple[int, Source]] = ()
    others: Sequence[tuple[int, Source]] = ()


NO_MASKS = Masks()


@dataclass(frozen=True)
class KeptOperands:
    """Where a layer's ANDs leave their operands: row i goes to row `first` + i of `words` words of each component's
    part of `left` and `right`, contiguous (components, ...); `turned`: of the components in reverse order. And what is
    in the target component of their results, to rows of `results`."""

    left: Words
    right: Words
    results: Words
    first: int
    turned: bool = False


class Slots:
    """The slots of one evaluation: rows of `words` words for each of `components` components."""

    def __init__(
        self, slots: int, components: int, words: int, tile: int | None = None, room: Room | None = None
    ) -> None:
        """`tile`: words of a slot in a tile, a multiple of 8; without it, whole rows for one thread. `room`: gives so
        many words that begin with a cache line; without it they are new."""
        whole = -(-max(words, 1) // LINE) * LINE
        if tile is None:
            threads = choice.threads()
            tile = whole if threads == 1 else max(SHORTEST, whole // (_TILES_EACH * threads) // LINE * LINE)
        tile = min(tile, whole)
        self.words = words
        self.components = components
        tiles = -(-words // tile)
        shape = (tiles, slots, components, tile)
        self.state = new_words(shape) if room is None else room(math.prod(shape)).reshape(shape)

    def set_constants(self, public: int | None) -> None:
        """Zeros and ones into the slots of the constants; a 1 is a 1 in the component `public` alone, if it is held."""
        self.state[:, :2] = 0
        if public is not None:
            self.state[:, ONE, public] = np.uint64(0xFFFFFFFFFFFFFFFF)

    def run(
        self,
        layer: Layer,
        deposits: Sequence[Deposit],
        products: ProductLayer | None = None,
        masks: Masks = NO_MASKS,
        message: Words | None = None,
        kept: KeptOperands | None = None,
    ) -> None:
        """The deposits, then the layer's XORs, then its ANDs, if `products` says what they are.

        The local products XOR the own masks go to `message` (ANDs, words), which own masks need; and all that is known
        of the results to their slots: that to the component `target`, and every mask to its component. What other
        parties send is added to them later. The ANDs' operands go to `kept`. Tiles are shared out among kernels'
        threads.
        """
        if choice.compiled is None:
            _run_twin(self, layer, deposits, products, masks, message)
            if kept is not None and products is not None:
                _keep_twin(self, layer, kept, products.target)
            return
        _, slots, components, tile = self.state.shape
        choice.compiled.run_layer(
            self.state,
            (slots, components, tile, self.words),
            tuple((d.slots, d.component, d.sources, d.added, d.copy) for d in deposits),
            layer.xors,
            _NOTHING if products is None else layer.ands,
            _NOTHING if products is None else products.encoded,
            0 if products is None else products.target,
            tuple(masks.own),
            tuple(masks.others),
            message,
            None if kept is None else (kept.left, kept.right, kept.results, kept.first, kept.turned),
        )

    def deposit(self, deposits: Sequence[Deposit]) -> None:
        """The deposits alone."""
        self.run(NO_GATES, deposits)

    def gather(self, slots: Ints) -> Words:
        """What is in the slots: (len(slots), components, words), a new array."""
        out = np.empty((len(slots), self.components, self.words), dtype=np.uint64)
        if choice.compiled is None:
            for t, rows, width in _parts(self):
                out[..., rows] = self.state[t, slots, :, :width]
        else:
            choice.compiled.gather(self.state, (*self.state.shape[1:], self.words), slots, out)
        return out


def add_sources(sources: Sequence[Source], out: Words) -> None:
    """The XOR of sources of out's size, into `out`, which is contiguous."""
    if choice.compiled is None:
        out[...] = 0
        for source in sources:
            out ^= _rows(source).reshape(out.shape)
    else:
        choice.compiled.add_sources(tuple(sources), out)


def _parts(slots: Slots) -> list[tuple[int, slice, int]]:
    """(tile, its words in a row, how many) of each tile."""
    tile = slots.state.shape[-1]
    starts = [(t, t * tile) for t in range(len(slots.state))]
    return [(t, slice(at, at + tile), min(tile, slots.words - at)) for t, at in starts]


def _rows(source: Source) -> Words:
    assert not isinstance(source, Stretch), "only the compiled kernel makes words by itself"
    return source


def _keep_twin(slots: Slots, layer: Layer, kept: KeptOperands, target: int) -> None:
    at = slice(kept.first * slots.words, (kept.first + len(layer.ands)) * slots.words)
    for side, out in enumerate((kept.left, kept.right), start=1):
        for t, rows, width in _parts(slots):
            for k, part in enumerate(out[::-1] if kept.turned else out):
                part[at].reshape(-1, slots.words)[:, rows] = slots.state[t, layer.ands[:, side], k, :width]
    for t, rows, width in _parts(slots):
        kept.results[at].reshape(-1, slots.words)[:, rows] = slots.state[t, layer.results, target, :width]


def _run_twin(
    slots: Slots,
    layer: Layer,
    deposits: Sequence[Deposit],
    products: ProductLayer | None,
    masks: Masks,
    message: Words | None,
) -> None:
    for t, rows, width in _parts(slots):
        tile = slots.state[t]
        for d in deposits:
            total = tile[d.slots, d.component, :width] if d.added else np.zeros((len(d.slots), width), dtype=np.uint64)
            for source in d.sources:
                total ^= _rows(source)[:, rows]
            tile[d.slots, d.component, :width] = total
            if d.copy is not None:
                d.copy[:, rows] = total
        for out, operands in layer.xor_groups:
            tile[out] = np.bitwise_xor.reduce(tile[operands], axis=1)
        if products is None or not len(layer.ands):
            continue
        x, y = tile[layer.ands[:, 1], :, :width], tile[layer.ands[:, 2], :, :width]
        total = np.zeros((len(x), width), dtype=np.uint64)
        for k, others in products.pairs:
            total ^= x[:, k] & np.bitwise_xor.reduce(y[:, list(others)], axis=1)
        for k, source in masks.own:
            total ^= _rows(source)[:, rows]
            tile[layer.results, k, :width] = _rows(source)[:, rows]
        if message is not None:
            message[:, rows] = total
        tile[layer.results, products.target, :width] = total
        for k, source in masks.others:
            tile[layer.results, k, :width] ^= _rows(source)[:, rows]
