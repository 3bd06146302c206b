"""What the noise of a run will take, before any party starts: traffic and exchanges exactly, time and memory about; and
what is refused because no machine like this one can do it."""

import os
from collections.abc import Sequence

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import Backend, Counts, Needs, Paced
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import batches_of, count_draw
from dpmpc.noise.pool import fills
from dpmpc.processes.cores import threads_for
from dpmpc.processes.room import free_memory

_PROCESS = 70 * 10**6  # bytes of a party that has imported what it needs
_SAMPLE = 24  # bytes of a sample that is held: in its batch, in the whole, and shifted or opened
_WORTH_SAYING = 10**9  # bytes of memory


@dataclass(frozen=True)
class Forecast:
    """The noise of `vectors` vectors (d,). `bytes`: sent by the party that sends most, headers included, exact but for
    bits drawn again. `seconds`: computing alone, at the pace of this machine; None where the backend does not say.
    `memory`: bytes of a party, about."""

    parties: int
    samples: int
    bytes: int
    exchanges: int
    seconds: float | None
    memory: int = 0

    def __str__(self) -> str:
        """A line such as `16 parties, 6,100 samples: about 1.1 s of noise, 30 MB a party, 90 exchanges`."""
        about = "" if self.seconds is None else f"about {self.seconds:.2g} s of noise, "
        size = f"{self.bytes / 1e6:.3g} MB" if self.bytes >= 1e5 else f"{self.bytes / 1e3:.3g} kB"
        memory = f", {_size(self.memory)} of memory a party" if self.memory >= _WORTH_SAYING else ""
        return (
            f"{self.parties} parties, {self.samples:,} samples: {about}{size} a party, {self.exchanges} "
            f"exchanges{memory}"
        )


def forecast(
    backend: Backend, sampler: Sampler, vectors: int, dimension: int, parties: int, threshold: int, *, here: bool
) -> Forecast:
    """The forecast for noise made ahead. `here`: all parties are processes of this machine and share its cores; else
    each has a machine like this one, and the exchanges take half a round trip each besides."""
    sizes = [size * dimension for size in fills(vectors, dimension)]
    return forecast_of_draws(backend, sampler, sizes, parties, threshold, here=here)


def forecast_of_draws(
    backend: Backend,
    sampler: Sampler,
    sizes: Sequence[int],
    parties: int,
    threshold: int,
    *,
    here: bool,
    threads: int | None = None,
) -> Forecast:
    """As `forecast`, for draws of so many samples one after the other. `threads`: of each party; None: as many as it
    gets by default."""
    costs = {size: count_draw(backend, sampler, size, parties, threshold) for size in set(sizes)}
    total = sum((costs[size] for size in sizes), start=Counts())
    seconds = total.seconds
    if isinstance(backend, Paced):
        seconds = backend.noise_seconds(sampler, sum(sizes), parties, threshold, total)
        seconds = None if seconds is None else seconds * _crowd(parties, here)
    sent = total.bytes_with_headers(HEADER.size)
    memory = _memory(backend, sampler, max(sizes, default=0), parties, threshold, here, threads)
    return Forecast(parties, sum(sizes), max(sent, default=0), total.rounds, seconds, memory)


def refuse_hopeless(
    backend: Backend,
    sampler: Sampler,
    sizes: Sequence[int],
    parties: int,
    threshold: int,
    *,
    here: bool,
    threads: int | None = None,
    most_seconds: float | None = None,
    way_out: str,
) -> None:
    """Returns if the memory that is free will do for these draws, and the time takes at most `most_seconds`. Nothing is
    counted that takes long itself. Errors: UsageError with what it would take."""
    if not isinstance(backend, Needs):
        needs = None
    else:
        needs = backend.noise_needs(sampler, sum(sizes), parties, threshold)
    memory = _memory(backend, sampler, max(sizes, default=0), parties, threshold, here, threads)
    seconds = 0.0 if needs is None else needs[0] * _crowd(parties, here)
    free, all_of_it = free_memory(), memory * (parties if here else 1)
    about = "" if needs is None else f"about {_time(seconds)} and "
    what = f"{parties} parties, {sum(sizes):,} samples: {about}{_size(memory)} of memory a party"
    if all_of_it > free:
        raise UsageError(
            f"noise must fit into the memory that is free; {what}, where {_size(free)} are free"
            f"{' for all' if here else ''}; {way_out}",
            code="memory",
        )
    if most_seconds is not None and seconds > most_seconds:
        raise UsageError(f"noise must be made within {_time(most_seconds)}; {what}; {way_out}")


def _crowd(parties: int, here: bool) -> float:
    return max(1.0, parties / (os.cpu_count() or 1)) if here else 1.0


def _memory(
    backend: Backend, sampler: Sampler, count: int, parties: int, threshold: int, here: bool, threads: int | None
) -> int:
    """Bytes of a party that draws `count` samples at once: batches under way, and what they leave."""
    if threads is None:
        threads = threads_for(parties if here else 1)
    sizes, batch = batches_of(backend, sampler, count, parties, threshold), 0
    if sizes and isinstance(backend, Needs):
        needs = backend.noise_needs(sampler, sizes[0], parties, threshold)
        batch = 0 if needs is None else needs[1]
    return _PROCESS + min(threads + 1, len(sizes)) * batch + _SAMPLE * count


def _size(size: float) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"
