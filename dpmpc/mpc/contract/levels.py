"""Which trees two servers' transfers have: `--link` says what the line between them carries, and the rest is counted.

With trees of 2^k leaves a chooser sends 128 / k - 1 bits a transfer, and both compute 2^k / k times as many blocks of
AES as they have bits. So the best k follows from the bandwidth: 4 from some 225 Mb/s on, 8 below. It is a name of the
registry of backends, hence in the plan and in the digest that servers compare: nobody measures or agrees on it later.
"""

import math
from typing import Protocol, runtime_checkable

from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS, BY_LEVEL, FOR_TWO

LINKS = {"lan": 1000.0, "wan": 100.0}  # Mb/s, as in `dpmpc bench`
# ns of both servers' computing a transfer: two servers on 2 cores over loopback, 100,000 Gaussian samples, 2026-11-22
_COMPUTING = {2: 36.8, 4: 22.0, 8: 57.6}


@runtime_checkable
class Transfers(Protocol):
    """A backend that computes by oblivious transfers."""

    k: int  # trees of 2^k leaves


def transfers_k(backend: str) -> int | None:
    """The k of its transfers, where it computes by any."""
    entry = BACKENDS[backend]
    return entry.k if isinstance(entry, Transfers) else None


def described(backend: str) -> str:
    """The backend's name for people, with its k where it has one."""
    k = transfers_k(backend)
    return backend if k is None else f"{backend}, k = {k}"


def by_link(link: str, chosen: str) -> str:
    """The backend's name for this link: `lan`, `wan`, or its Mb/s each way. `chosen`: the backend without it.

    Errors: UsageError for another link, and for a backend whose k is not to be chosen.
    """
    speed = _speed(link)
    if chosen != FOR_TWO:
        raise UsageError(
            f"<<link>> chooses how many bytes oblivious transfers take (<<backend={FOR_TWO}>>, two parties); got "
            f"<<link>> "
            f"{link} with <<backend={chosen}>>; leave one of them out",
            code="together",
        )
    return BY_LEVEL[level(speed)]


def level(speed: float) -> int:
    """The k that takes the least time a transfer at `speed` Mb/s: computing, then half a transfer's bits each way."""
    return min(BY_LEVEL, key=lambda k: _COMPUTING[k] + 500 * (128 / k - 1) / speed)


def _speed(link: str) -> float:
    try:
        speed = LINKS[link] if link in LINKS else float(link)
    except ValueError:
        speed = math.nan
    if not (speed > 0 and math.isfinite(speed)):
        raise UsageError(
            f"<<link>> is {', '.join(LINKS)}, or a number of Mb/s above 0; got {link!r}; write <<link=wan>>, or "
            f"what was "
            "measured, such as <<link=50>>",
            code="range",
        )
    return speed
