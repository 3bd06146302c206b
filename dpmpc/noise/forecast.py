"""What the noise of a run will take, before any party starts: traffic and exchanges exactly, time about."""

import os
from dataclasses import dataclass

from dpmpc.circuits.sampler import Sampler
from dpmpc.mpc.backend import Backend, Counts, Paced
from dpmpc.mpc.wire import HEADER
from dpmpc.noise.draw import count_draw
from dpmpc.noise.pool import fills


@dataclass(frozen=True)
class Forecast:
    """The noise of `vectors` vectors (d,). `bytes`: sent by the party that sends most, headers included, exact but for
    bits drawn again. `seconds`: computing alone, at the pace of this machine; None where the backend does not say."""

    parties: int
    samples: int
    bytes: int
    exchanges: int
    seconds: float | None

    def __str__(self) -> str:
        """A line such as `16 parties, 6,100 samples: about 1.1 s of noise, 30 MB a party, 90 exchanges`."""
        about = "" if self.seconds is None else f"about {self.seconds:.2g} s of noise, "
        size = f"{self.bytes / 1e6:.3g} MB" if self.bytes >= 1e5 else f"{self.bytes / 1e3:.3g} kB"
        return f"{self.parties} parties, {self.samples:,} samples: {about}{size} a party, {self.exchanges} exchanges"


def forecast(
    backend: Backend, sampler: Sampler, vectors: int, dimension: int, parties: int, threshold: int, *, here: bool
) -> Forecast:
    """The forecast for noise made ahead. `here`: all parties are processes of this machine and share its cores; else
    each has a machine like this one, and the exchanges take half a round trip each besides."""
    total = Counts()
    for size in fills(vectors, dimension):
        total += count_draw(backend, sampler, size * dimension, parties, threshold)
    seconds = total.seconds
    if isinstance(backend, Paced):
        crowd = max(1.0, parties / (os.cpu_count() or 1)) if here else 1.0
        seconds = backend.noise_seconds(sampler, vectors * dimension, parties, threshold, total) * crowd
    sent = total.bytes_with_headers(HEADER.size)
    return Forecast(parties, vectors * dimension, max(sent, default=0), total.rounds, seconds)
