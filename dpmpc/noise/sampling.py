"""`dpmpc sample`: draw noise for study, say what it cost and what is proved of it, and hold opened samples against the
exact law.

The parties are local processes. Opening noise defeats its purpose: opened samples serve study and tests, never a
release.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT, FOR_MANY, Holder, Share
from dpmpc.mpc.contract.levels import transfers_k
from dpmpc.mpc.contract.security import Checks, backend_for, security_of
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.transport.channels import WARM_UP
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import batches_of, count_draw, draw, holders_batches
from dpmpc.noise.forecast import forecast_of_draws, refuse_hopeless
from dpmpc.privacy.law import LAWS

HERE, OPEN = 0, 1  # channels
MOST_SECONDS = 3600.0  # that a draw may be predicted to take
STUDY = 2.0**-40  # what openings may fail by where nothing is promised


def drawn_for_study(
    backend: str, law: str, name: str, scale: float, count: int, parties: int, threshold: int
) -> Sampler:
    """The law's sampler as the backend draws it outside any promise."""
    return BACKENDS[backend].drawn(LAWS[law].sampler(name, scale), parties, threshold, count, STUDY)


async def _draw_at_party(
    holder: Holder[Share],
    backend: str,
    parties: int,
    threshold: int,
    law: str,
    name: str,
    scale: float,
    count: int,
    opened: bool,
) -> dict[str, Any]:
    sampler = drawn_for_study(backend, law, name, scale, count, parties, threshold)
    await holder.here(HERE)
    await draw(holder, sampler, holders_batches(holder, sampler, count)[0], first_channel=WARM_UP)
    sent, frames, rounds = holder.bytes_sent, holder.frames_sent, holder.rounds
    start = time.perf_counter()
    share = await draw(holder, sampler, count)
    seconds = time.perf_counter() - start
    result: dict[str, Any] = {
        "seconds": seconds,
        "bytes": holder.bytes_sent - sent,
        "messages": holder.frames_sent - frames,
        "rounds": holder.rounds - rounds,
    }
    if opened:
        values = await holder.open(share, OPEN)
        result["values"] = values if holder.party == 0 else None
    return result


def predict(sampler: Sampler, count: int, parties: int, threshold: int, backend: str = DEFAULT) -> dict[str, Any]:
    """The cost of drawing `count` samples in the pool's batches, by counting: exact."""
    total = count_draw(BACKENDS[backend], sampler, count, parties, threshold)
    return {
        "gates": total.sample,  # of one sample
        "batches": len(batches_of(BACKENDS[backend], sampler, count, parties, threshold)),
        "rounds": total.rounds,
        "messages": list(total.messages_sent),
        "bytes": total.bytes_with_headers(HEADER.size),
    }


def sample(
    law: str,
    scale: float,
    count: int,
    *,
    parties: int,
    threshold: int | None = None,
    backend: str | None = None,
    security: str | None = None,
    link: str | None = None,
    engine: str = "mpc",
    sampler: str | None = None,
    opened: bool = False,
    threads: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[dict[str, Any], NDArray[np.int64] | None]:
    """A report (JSON-able) and, if `opened` or in the clear, the samples. `engine`: mpc, clear or counting. `backend`:
    by default the one that computes less, or suits the `link` between two servers. `say`: told what the parties'
    noise will take, before they start.

    Errors: UsageError for a count below 1, a scale out of range, `opened` with the counting engine, or noise that
    parties on this machine would never finish.
    """
    if count < 1:
        raise UsageError(f"<<count>> takes at least 1; got {count}; ask for 1 or more")
    name = sampler or next(iter(LAWS[law].samplers))
    chosen = LAWS[law].sampler(name, scale)
    backend = backend_for(security, backend, law, name, parties, threshold, link)
    chosen_backend = BACKENDS[backend]
    t = chosen_backend.threshold(parties) if threshold is None else threshold
    chosen_backend.check(parties, t)
    if engine != "clear":
        chosen = drawn_for_study(backend, law, name, scale, count, parties, t)
    sizes = batches_of(chosen_backend, chosen, count, parties, t)
    report: dict[str, Any] = {
        "sampler": chosen.name,
        "law": law,
        "asked_scale": scale,
        "scale": chosen.scale,
        "count": count,
        "engine": engine,
        "backend": backend,
        "transfers_k": transfers_k(backend),
        "security": security_of(backend),
        "parties": parties,
        "threshold": t,
        "certificate": chosen.certificate,
        "largest": chosen.largest,
        "batch": sizes[0],
    }
    if isinstance(chosen_backend, Checks) and engine != "clear":
        report["undetected"] = chosen_backend.undetected(chosen, sizes, parties, t)
    values = None
    if engine == "counting":
        if opened:
            raise UsageError("<<open>> needs samples, but <<engine>> counting draws none; leave one of them out")
        report["predicted"] = predict(chosen, count, parties, t, backend)
    elif engine == "clear":
        start = time.perf_counter()
        values = clear_noise(chosen, count, Prg.from_os())
        report["seconds"] = time.perf_counter() - start
        report["rate"] = count / report["seconds"]
    else:
        seconds = _possible(chosen, count, parties, t, backend, threads, say)
        arguments = (backend, parties, t, law, name, scale, count, opened)
        results = run_parties(
            _draw_at_party, parties, t, arguments, backend=backend, threads=threads, seconds=600.0 + 5 * seconds
        )
        report["seconds"] = max(r["seconds"] for r in results)
        report["rate"] = count / report["seconds"]
        report["measured"] = {
            "rounds": results[0]["rounds"],
            "messages": [r["messages"] for r in results],
            "bytes": [r["bytes"] for r in results],
            "bytes_per_party_and_sample": max(r["bytes"] for r in results) / count,
        }
        report["predicted"] = predict(chosen, count, parties, t, backend)
        values = results[0].get("values")
    if values is not None:
        report["opened"] = describe(values, law, chosen)
    return report, values


def _possible(
    sampler: Sampler,
    count: int,
    parties: int,
    threshold: int,
    backend: str,
    threads: int | None,
    say: Callable[[str], None],
) -> float:
    """Seconds that parties here take, about; 0 where nobody knows. Says so. Errors: too many, or too much memory."""
    at = parties, threshold
    way_out = (
        f"use {f'<<backend={FOR_MANY}>>, ' if backend == DEFAULT and 5 < parties <= 32 else ''}"
        "a smaller <<parties>> or <<threshold>>, or a smaller <<count>>"
    )
    refuse_hopeless(
        BACKENDS[backend],
        sampler,
        [count],
        *at,
        here=True,
        threads=threads,
        most_seconds=MOST_SECONDS,
        way_out=way_out,
    )
    expected = forecast_of_draws(BACKENDS[backend], sampler, [count], *at, here=True, threads=threads)
    say(f"making noise: {expected}")
    return expected.seconds or 0.0


def describe(values: NDArray[np.int64], law: str, sampler: Sampler) -> dict[str, Any]:
    """Moments of opened samples beside the law's, and a chi-square against the exact law; no test for fewer than
    100 samples."""
    from dpmpc.noise.goodness import chi_square

    x = values.astype(np.float64)
    exact = LAWS[law].exact(sampler.scale, sampler.discrete)
    result: dict[str, Any] = {
        "mean": float(x.mean()),
        "mean_standard_error": math.sqrt(exact.variance / len(x)),
        "variance": float(x.var(ddof=1)) if len(x) > 1 else None,
        "law_variance": exact.variance,
        "largest": int(np.abs(values).max()),
    }
    if len(x) >= 100:
        test = chi_square(values, exact)
        result |= {"chi_square": test.statistic, "degrees_of_freedom": test.degrees, "p_value": test.p_value}
    return result


def histogram(values: NDArray[np.int64], scale: float, width: int = 50) -> list[str]:
    """Lines of a text histogram over -4 .. 4 scales."""
    edges = np.linspace(-4, 4, 17) * scale
    counts, _ = np.histogram(values, bins=edges)
    most = max(1, int(counts.max()))
    return [
        f"{lo / scale:+5.1f} .. {hi / scale:+4.1f} {'#' * round(width * c / most):<{width}} {c}"
        for lo, hi, c in zip(edges, edges[1:], counts, strict=False)
    ]


def certificate_lines(certificate: Mapping[str, float | str]) -> list[str]:
    """The certificate, bounds as powers of two."""
    lines = []
    for key, value in certificate.items():
        shown = value if isinstance(value, str) else f"2^{math.log2(value):.1f}" if value > 0 else "0"
        lines.append(f"  {key.replace('_', ' ')}: {shown}")
    return lines
