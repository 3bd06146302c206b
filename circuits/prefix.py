"""Products of many wires over F_p: all prefixes, and all subsets of a few bits."""

from .arithmetic import Arithmetic, Values, multiply


async def prefix_products(engine: Arithmetic, x: Values, pairings: int | None = None) -> Values:
    """(k, ...): x[0], x[0] x[1], ..., x[0] ... x[k - 1], for x (k, ...), k >= 1.

    Cost: with `pairings` None k - 1 products in k - 1 rounds, the fewest products. Else by pairing neighbours so many
    times and then halving: 2 * pairings + ceil(log2(k / 2^pairings)) rounds, fewer products the more pairings (about
    2 k after log2(k)).
    Source: Sklansky 1960 (pairings = 0); Ladner and Fischer 1980.
    """
    if len(x) == 1:
        return x
    if pairings is None:
        rows = [x[:1]]
        for i in range(1, len(x)):
            rows.append(await multiply(engine, rows[-1], x[i : i + 1]))
        return engine.join(rows)
    if pairings == 0:
        return await _halve(engine, x)
    n = len(x) // 2
    pairs = await multiply(engine, x[0 : 2 * n : 2], x[1 : 2 * n : 2])
    odd = await prefix_products(engine, pairs, pairings - 1)  # products that end at places 1, 3, ...
    even = await multiply(engine, odd[: (len(x) - 1) // 2], x[2::2]) if len(x) > 2 else x[:0]
    rows = [x[:1]]
    for i in range(1, len(x)):
        rows.append(odd[i // 2 : i // 2 + 1] if i % 2 else even[i // 2 - 1 : i // 2])
    return engine.join(rows)


async def _halve(engine: Arithmetic, x: Values) -> Values:
    """Prefixes of both halves in step; then the first half's product enters all of the second."""
    blocks = [x[i : i + 1] for i in range(len(x))]
    while len(blocks) > 1:
        pairs = list(zip(blocks[0::2], blocks[1::2], strict=False))
        upper = await engine.dots([(low[-1:][None], high[None]) for low, high in pairs])
        merged = [engine.join([low, high]) for (low, _), high in zip(pairs, upper, strict=True)]
        blocks = merged + blocks[2 * len(pairs) :]
    return blocks[0]


async def monomials(engine: Arithmetic, bits: Values) -> Values:
    """(2^b, ...): at place v the product of the bits (b, ...) that are set in v; 1 at 0.

    Cost: 2^b - b - 1 products, ceil(log2 b) rounds.
    """
    b = len(bits)
    one = engine.add(engine.subtract(bits[:1], bits[:1]), engine.constant(1))
    made: dict[int, Values] = {0: one} | {1 << i: bits[i : i + 1] for i in range(b)}
    size = 1
    while size < b:
        due = [v for v in range(1 << b) if size < v.bit_count() <= 2 * size]
        parts = [_split(v) for v in due]
        left = engine.join([made[low] for low, _ in parts])
        product = await multiply(engine, left, engine.join([made[high] for _, high in parts]))
        made |= {v: product[k : k + 1] for k, v in enumerate(due)}
        size *= 2
    return engine.join([made[v] for v in range(1 << b)])


def _split(v: int) -> tuple[int, int]:
    """Two disjoint halves of the set bits of v."""
    places = [i for i in range(v.bit_length()) if v >> i & 1]
    low = sum(1 << i for i in places[: len(places) // 2])
    return low, v - low
