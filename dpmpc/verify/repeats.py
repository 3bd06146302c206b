"""Whether values of the noise come again: between two releases, within one, too often, or with bits that never move.

False alarms: each check ALPHA, by counting: two values of the law agree up to sign with probability at most `chance`,
pairs without a common value are independent, and a set of R such pairs agrees with probability chance^R at most.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpmpc.noise import goodness
from dpmpc.privacy.exact import Integers
from dpmpc.verify.parts import Parts
from dpmpc.verify.scores import Sample
from dpmpc.verify.verdict import ALPHA, Check, untested

_MATCHES = 4_000_000
_LEVELS = (None, *(2.0**-b for b in range(22, 5, -2)))  # how far apart two ranks may be; None: equal magnitudes
_MODULUS = 256


def between_check(sample: Sample) -> Check:
    """No two releases share more values than chance gives, up to sign and wherever in the vectors: equal vectors,
    vectors with some coordinates changed, moved by some places, or partly used again, all share many."""
    name = f"noise never repeats ({sample.name})"
    k, d = sample.noise.shape
    allowed = _shared_by_chance(k, d, 2 * sample.most_likely)
    if allowed >= d:
        return untested(name, f"{d} coordinate(s) are too few to tell a repeat from chance")
    most, pair = most_shared(sample.noise)
    detail = f"two releases share {most} of {d} values at most (releases {pair[0]} and {pair[1]}), chance {allowed}"
    power = f"; would fail at {allowed + 1} values used again"
    return Check(name, most <= allowed, detail + power, {"shared": most, "chance": allowed})


def _shared_by_chance(k: int, d: int, chance: float) -> int:
    """The largest number of values that some two of k vectors share with probability above ALPHA; at most d.

    For r shared values there is a matching of r coordinates of one vector with r of the other whose values all agree:
    at most C(d, r)^2 r! matchings, each with probability chance^r.
    """
    pairs = math.log(max(1.0, k * (k - 1) / 2))
    for r in range(1, d + 1):
        ways = 2 * (math.lgamma(d + 1) - math.lgamma(r + 1) - math.lgamma(d - r + 1)) + math.lgamma(r + 1)
        if pairs + ways + r * math.log(min(1.0, chance)) <= math.log(ALPHA):
            return r - 1
    return d


def most_shared(noise: Integers) -> tuple[int, tuple[int, int]]:
    """(the largest number of values, up to sign and counted as often as both have them, that two rows share; which)."""
    k, d = noise.shape
    values = np.sort(np.abs(noise), axis=1)
    repeat = np.zeros((k, d), dtype=np.int64)  # which of its equals in the row a value is
    for j in range(1, d):
        repeat[:, j] = np.where(values[:, j] == values[:, j - 1], repeat[:, j - 1] + 1, 0)
    rows = np.repeat(np.arange(k), d)
    order = np.lexsort((rows, repeat.reshape(-1), values.reshape(-1)))
    v, r, rows = values.reshape(-1)[order], repeat.reshape(-1)[order], rows[order]
    found: list[NDArray[np.int64]] = []
    for lag in range(1, k):  # equal keys stand together, each row once in a group
        same = (v[lag:] == v[:-lag]) & (r[lag:] == r[:-lag])
        if not same.any() or sum(map(len, found)) > _MATCHES:  # a constant: what was found says enough
            break
        found.append(rows[:-lag][same] * k + rows[lag:][same])
    if not found:
        return 0, (0, 0)
    pairs, counts = np.unique(np.concatenate(found), return_counts=True)
    best = int(np.argmax(counts))
    return int(counts[best]), (int(pairs[best]) // k, int(pairs[best]) % k)


def within_check(sample: Sample) -> Check:
    """No release repeats magnitudes of its own, exactly or nearly: sorted, neighbours are paired off; neither one
    release nor all together have more pairs than chance gives."""
    name = f"no repeats within a release ({sample.name})"
    k, d = sample.noise.shape
    if d < 2:
        return untested(name, "one coordinate")
    share = ALPHA / (2 * len(_LEVELS))
    magnitudes, ranks = np.sort(np.abs(sample.noise), axis=1), np.sort(sample.ranks, axis=1)
    problems, seen = [], []
    for level in _LEVELS:
        near = np.diff(magnitudes) == 0 if level is None else np.diff(ranks) <= level
        counts = paired_off(near)
        # ranks step by twice the law's largest probability at most
        chance = 2 * sample.most_likely if level is None else min(1.0, 2 * level + 2 * sample.most_likely)
        one, all_ = _pairs_of_one(k, d, chance, share), _pairs_of_all(k, d, chance, share)
        seen.append((one, all_))
        what = "equal up to sign" if level is None else f"alike up to a rank of {level:.2g}"
        if counts.max() > one:
            problems.append(f"release {int(counts.argmax())} has {counts.max()} pairs {what}, chance {one}")
        if counts.sum() > all_:
            problems.append(f"the releases have {counts.sum()} pairs {what}, chance {all_}")
    power = f"would fail at {seen[0][0] + 1} equal pairs in one release of {d}, {seen[0][1] + 1} in all {k}"
    power += f"; alike to {_LEVELS[-4]:.1g} of rank: {seen[-4][0] + 1} in one"
    figures = {"problems": len(problems)}
    return Check(name, not problems, f"{'; '.join(problems[:3]) or 'none beyond chance'}; {power}", figures)


def paired_off(near: NDArray[np.bool_]) -> Integers:
    """(K,) how many pairs of neighbours, none in two pairs, rows of sorted values have: near (K, d - 1) says which
    neighbours are alike. The most that can be paired: of a run of n alike neighbours, ceil(n / 2)."""
    k = len(near)
    steps = np.diff(np.concatenate([np.zeros((k, 1)), near, np.zeros((k, 1))], axis=1).astype(np.int8))
    rows, begins = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    return np.bincount(rows, weights=(ends - begins + 1) // 2, minlength=k).astype(np.int64)


def _pairs_of_one(k: int, d: int, chance: float, alpha: float) -> int:
    """The most pairs that one of k releases has with probability above alpha: there are d! / (2^r r! (d - 2r)!) ways to
    choose r of them."""
    for r in range(1, d // 2 + 1):
        ways = math.lgamma(d + 1) - r * math.log(2) - math.lgamma(r + 1) - math.lgamma(d - 2 * r + 1)
        if math.log(k) + ways + r * math.log(chance) <= math.log(alpha):
            return r - 1
    return d // 2


def _pairs_of_all(k: int, d: int, chance: float, alpha: float) -> int:
    """The most pairs that k releases have together with probability above alpha: at most C(k d (d - 1) / 2, r) ways."""
    most, pairs = k * (d // 2), k * d * (d - 1) / 2
    low, high = 0, most
    while high - low > 1:  # the bound falls in r where it is below 1
        r = (low + high) // 2
        ways = math.lgamma(pairs + 1) - math.lgamma(r + 1) - math.lgamma(pairs - r + 1)
        rare = r > pairs * chance and ways + r * math.log(chance) <= math.log(alpha)
        low, high = (low, r) if rare else (r, high)
    return low


def common_check(sample: Sample) -> Check:
    """No magnitude is found too often in all: noise that is missing here and there, constant, or on a coarser grid.

    R samples of N are all one value up to sign with probability at most C(N, R) chance^(R - 1).
    """
    n, chance = sample.noise.size, 2 * sample.most_likely
    values, counts = np.unique(np.abs(sample.noise), return_counts=True)
    most = int(counts.max())
    allowed = next(
        (
            r - 1
            for r in range(2, n + 1)
            if math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1) + (r - 1) * math.log(min(1.0, chance))
            <= math.log(ALPHA)
        ),
        n,
    )
    detail = f"{int(values[counts.argmax()])} is found {most} times, chance {allowed}"
    power = f"would fail at {allowed + 1} of {n:,} samples missing, or equal"
    return Check(f"no value too often ({sample.name})", most <= allowed, f"{detail}; {power}", {"most": most})


def low_bits_check(sample: Sample) -> Check:
    """The low bits, which bins of the law do not see, are uniform: chi-square of the residues mod 2 ... 256."""
    name = f"low bits ({sample.name})"
    room = min(
        _MODULUS, math.isqrt(int(sample.exact.variance)) // 64, int(sample.noise.size / goodness.MINIMUM_EXPECTED)
    )
    if room < 2:
        return untested(name, "the law is too narrow, or the samples are too few")
    modulus = 1 << (room.bit_length() - 1)
    outcome = goodness.residues(sample.noise.reshape(-1), sample.exact, modulus)
    p, where = min((2 * outcome.p_value, "all samples"), _bits_by_part(sample, modulus.bit_length() - 1))
    detail = f"least likely: {where}, p = {min(1.0, p):.3g}"
    power = f"would fail where one of the low {modulus.bit_length() - 1} bits is constant in all"
    for noun, n, other in zip(("coordinate", "release"), sample.noise.shape, sample.noise.shape[::-1], strict=True):
        if math.log(8 * 16 * other) - n * math.log(2) < math.log(ALPHA):
            power += f", in one {noun}"
    return Check(name, p >= ALPHA, f"{detail}; {power}", {"p_value": min(1.0, p)})


def _bits_by_part(sample: Sample, bits: int) -> tuple[float, str]:
    """(p-value, where) of the low bits' counts, binomial, by parts of releases and of coordinates."""
    from scipy.special import bdtrc

    ones = [(sample.noise >> bit & 1).astype(np.bool_) for bit in range(bits)]
    best = (1.0, "none")
    for axis, noun in ((0, "release"), (1, "coordinate")):
        parts, across = Parts(noun, sample.noise.shape[axis]), sample.noise.shape[1 - axis]
        each = np.stack([one.sum(axis=1 - axis) for one in ones], axis=1)
        sums = parts.sums(each.astype(np.float64)).T  # (bits, parts), whole numbers
        sizes = np.repeat([g.size * across for g in parts.groups], [g.count for g in parts.groups])
        weights = np.repeat([g.weight for g in parts.groups], [g.count for g in parts.groups])
        p = 8 * bits * bdtrc(np.maximum(sums, sizes - sums) - 1, sizes, 0.5) / weights
        bit, at = np.unravel_index(int(p.argmin()), p.shape)
        best = min(best, (float(p[bit, at]), f"bit {bit} in {parts.name(int(at))}"))
    return best
