"""What checked circuits over F_p cost n parties: arithmetic, nothing is run. Predicts exactly what `engine`
does."""

import math
from collections.abc import Sequence

from dpmpc.circuits.arithmetic import Pair
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.product_fold import ProductStages
from dpmpc.mpc.parties.promised_coins import PART, words_of
from dpmpc.mpc.shamir.counts import Circuit, CountingArithmetic, Empty
from dpmpc.mpc.shamir.engine import CHUNK
from dpmpc.mpc.shamir_checked.engine import DIGEST, OPENED, SPARE, saved

_PROMISE = words_of(bytes(PART), field.BITS).size
_WORD = 8


class CountingCheckedArithmetic(CountingArithmetic):
    """As `CountingArithmetic`, and `check` counts too. `kinds` lists what each exchange of the channel carries."""

    def __init__(
        self, lanes: int, parties: int = 3, threshold: int = 1, *, planned: int = 0, chunk: int = CHUNK
    ) -> None:
        """`planned`: random sharings of products and of the check, all lanes together."""
        super().__init__(lanes, parties, threshold, chunk=chunk)
        self._planned = planned
        self.kinds: list[str] = []
        self.elements = 0  # pairs of factors that the check is about

    @property
    def stages(self) -> ProductStages:
        """The check's."""
        return ProductStages.for_elements(self.elements)

    @property
    def sharings(self) -> int:
        """Random sharings of products and of the check, all lanes together."""
        return self.products * self.lanes + SPARE + sum(self.stages.messages)

    async def random_bits(self, count: int) -> Empty:
        self.elements += count * self.lanes
        return await super().random_bits(count)

    async def dots(self, pairs: Sequence[Pair]) -> list[Empty]:
        results = await super().dots(pairs)
        for (x, y), result in zip(pairs, results, strict=True):
            shape = result.shape[:-1]
            if math.prod(shape):
                together = max(saved(v.shape[1:-1], shape) for v in (x, y))
                self.elements += len(x) * math.prod(shape) // together * self.lanes
        return results

    def _exchange(self, words: dict[tuple[int, int], int]) -> None:
        if not self.exchanges:
            everybody = range(self.layout.parties)
            words = {(i, j): words.get((i, j), 0) + _PROMISE for i in everybody for j in everybody if i != j}
        super()._exchange(words)
        self.kinds.append("words")

    def check(self) -> None:
        """The check of everything before."""
        self._take(SPARE)
        self._to_all("coin", PART)
        for k, words in enumerate(self.stages.messages):
            self._take(words)
            self._by_kings(words)
            self._to_all("coin", PART + _WORD * (self.layout.checks_degrees and k == 0))
        for kind, size in (("log", DIGEST), ("product", OPENED * _WORD), ("verdict", DIGEST)):
            self._to_all(kind, size)

    def _to_all(self, kind: str, size: int) -> None:
        self.exchanges += 1
        self.kinds.append(kind)
        others = self.layout.parties - 1
        for i in range(self.layout.parties):
            self.bytes_sent[i] += others * size
            self.messages_sent[i] += others


def count_checked_circuit(
    circuit: Circuit, lanes: int, parties: int, threshold: int, *, chunk: int = CHUNK
) -> CountingCheckedArithmetic:
    """The cost of the circuit and its check when the random sharings of both are dealt with its random bits."""
    first = CountingCheckedArithmetic(lanes, parties, threshold)
    evaluate(circuit(first))
    engine = CountingCheckedArithmetic(lanes, parties, threshold, planned=first.sharings, chunk=chunk)
    evaluate(circuit(engine))
    engine.check()
    return engine
