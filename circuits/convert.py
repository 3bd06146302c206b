"""From secret bits to Shamir shares in F_p, p = 2^61 - 1, by one masked opening.

The masks r_1 .. r_k are uniform in F_p. Each is known to the parties of one (n-t)-subset, so its bits are a sharing in
F_2 and its value one in F_p, both without a message; k = C(n, t) - 1, one for each subset but a last one, whose
members alone see y = x + sum r (mod p). Any t parties miss exactly one subset: either they do not see y, or a uniform
mask they do not know hides x in it perfectly. (Mohassel and Rindal 2018 do this over Z_2^k for three parties; over a
Mersenne prime the adder is ones' complement.) There is no kappa: hiding is perfect, but for y = 0 (mod p), which ones'
complement can write as 0 or as p. It comes out as 0 only if x and every mask are 0, so the views of two values of x
differ by at most 2^-(61 k) <= 2^-61 p^-1 for k >= 2.
"""

from .adders import add_end_around
from .engine import Bundle, Engine
from .heap import Heap, compress

FIELD_BITS = 61


async def to_field(engine: Engine, heap: Heap) -> Bundle:
    """y, (61, *tail): the heap's value plus the masks, mod p, where 0 may be written as p. To be opened to those who
    may see it; y less the masks are shares in F_p of the heap's value.

    Guarantees: hiding against t parties up to 2^-(61 k), given uniform masks (see above).
    Cost: about heap.size + 240 ANDs for (3, 1) and 61 more a further mask; then one opening.
    """
    all_bits = Heap(heap.columns)
    for bits in engine.mask_bits(FIELD_BITS):
        all_bits.put_number(bits)
    x, y = await compress(engine, all_bits, FIELD_BITS, end_around=True)
    return await add_end_around(engine, x, y)
