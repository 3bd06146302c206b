"""Several releases of tables as one: what each says of a block, weighted by the inverse variance of its noise.

Independent Gaussian noise with variances v1 and v2 on the same number: the mean weighted by 1/v1 and 1/v2 is the
sufficient statistic, with variance 1/(1/v1 + 1/v2). It is post-processing, at no cost.
"""

import math
from collections.abc import Sequence

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.statistics.blocks import Block
from dpmpc.statistics.layout import FINEST, Layout
from dpmpc.statistics.opened import Opened

_EXACT = 1e-9  # records: the deviation that stands for none


@dataclass(frozen=True)
class Pooled(Layout):
    """Blocks of several releases. `stated`: the scale of each, as if one release had opened them all."""

    stated: tuple[int, ...] = ()

    @property
    def scales(self) -> tuple[int, ...]:
        """As stated, not by the root rule: this layout describes what was opened, and is never encoded."""
        return self.stated


def pooled(releases: Sequence[Opened]) -> Opened:
    """One release that says what all of them do, of the same records; one alone is itself."""
    if len(releases) == 1:
        return releases[0]
    blocks: dict[Block, list[Opened]] = {}
    for opened in releases:
        for block in opened.layout.blocks:
            blocks.setdefault(block, []).append(opened)
    each = {block: [max(opened.deviation(block), _EXACT) ** -2 for opened in some] for block, some in blocks.items()}
    precision = [math.fsum(parts) for parts in each.values()]
    # scales are whole numbers; the noise is said in the unit in which the most precise block has the finest one
    sigma = (1 << FINEST) / max(precision) ** 0.5
    scales = tuple(max(1, round(sigma * part**0.5)) for part in precision)
    first = releases[0].layout
    layout = Pooled(tuple(blocks), (1.0,) * len(blocks), first.unit, scales)
    empty = Opened(layout, np.zeros(layout.dimension), sigma, releases[0].sizes, releases[0].counted, releases[0].rows)
    parts = []
    for (block, some), whole, scale in zip(blocks.items(), precision, scales, strict=True):
        mean = sum(opened.raw(block) * part for opened, part in zip(some, each[block], strict=True)) / whole
        parts.append((mean * (scale * empty.weights(block))).ravel())
    return Opened(layout, np.concatenate(parts), sigma, releases[0].sizes, releases[0].counted, releases[0].rows)
