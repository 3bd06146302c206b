"""The delta of pure releases at an epsilon: the other way round than the package asks."""

import math

from dpmpc.privacy.pure import _SAFE, Losses, _law


def pure_delta(losses: Losses, epsilon: float) -> float:
    """The least delta at `epsilon`; 0 from the sum of all e on, 1 where the law of the sum is too large to be had."""
    if math.fsum(loss * count for loss, count in losses) <= epsilon:
        return 0.0
    law = _law(losses)
    if law is None:
        return 1.0
    largest, step, b, d, lost = law
    i = min(len(d) - 1, max(0, math.floor((largest - epsilon) / step)))
    return min(1.0, (float(d[i]) - math.expm1(epsilon - (largest - step * i)) * float(b[i])) * _SAFE + lost)
