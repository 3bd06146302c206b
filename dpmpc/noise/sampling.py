"""`dpmpc sample`: draw noise for study, say what it cost and what is proved of it, and hold opened samples against the
exact law.

The parties are local processes. Opening noise defeats its purpose: opened samples serve study and tests, never a
release.
"""

import math
import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.mpc import field
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session
from dpmpc.noise.pool import BATCH, batches, draw
from dpmpc.noise.samplers import Law, Sampler, make_sampler

EngineName = Literal["clear", "sharing", "counting"]
_OPEN_CHANNEL = 1
_WARM_UP = 1 << 20


async def _draw_at_party(
    session: Session, name: str, law: Law, scale: float, count: int, opened: bool
) -> dict[str, Any]:
    sampler = make_sampler(name, law, scale)
    await session.open(np.zeros(1, dtype=np.uint64), session.channel(0))  # all parties are here
    await draw(session, sampler, min(count, BATCH), first_channel=_WARM_UP)
    sent, frames, rounds = session.bytes_sent, _frames(session), session.rounds
    start = time.perf_counter()
    shares = await draw(session, sampler, count)
    seconds = time.perf_counter() - start
    result: dict[str, Any] = {
        "seconds": seconds,
        "bytes": session.bytes_sent - sent,
        "messages": _frames(session) - frames,
        "rounds": session.rounds - rounds,
    }
    if opened:
        values = field.to_int64(await session.open(shares, session.channel(_OPEN_CHANNEL)))
        result["values"] = values if session.party == 0 else None
    return result


def _frames(session: Session) -> int:
    return sum(peer.frames_sent for peer in session.peers.values())


def predict(sampler: Sampler, count: int, parties: int, threshold: int) -> dict[str, Any]:
    """The cost of drawing `count` samples in the pool's batches, from the counting engine: exact."""
    total = CountingEngine(0, parties, threshold)
    number = batches(count)
    size = -(-count // number)
    for k in range(number):
        part = min(size, count - k * size)
        batch = sampler.cost(part, parties, threshold)
        total.ands = batch.ands * batch.lanes // part  # a lane of Box-Muller gives two samples
        total.random_bits_drawn = batch.random_bits_drawn * batch.lanes // part
        total.rounds += batch.rounds
        total.bytes_sent = [a + b for a, b in zip(total.bytes_sent, batch.bytes_sent, strict=True)]
        total.messages_sent = [a + b for a, b in zip(total.messages_sent, batch.messages_sent, strict=True)]
    return {
        "ands_per_sample": total.ands,
        "random_bits_per_sample": total.random_bits_drawn,
        "batches": number,
        "rounds": total.rounds,
        "messages": total.messages_sent,
        "bytes": [b + 24 * m for b, m in zip(total.bytes_sent, total.messages_sent, strict=True)],
    }


def sample(
    law: Law,
    scale: float,
    count: int,
    *,
    engine: EngineName,
    parties: int,
    threshold: int,
    sampler: str = "discrete",
    opened: bool = False,
) -> tuple[dict[str, Any], NDArray[np.int64] | None]:
    """A report (JSON-able) and, if `opened` or in the clear, the samples.

    Errors: UsageError for a count below 1, a scale out of range, or `opened` with the counting engine.
    """
    if count < 1:
        raise UsageError(f"--count takes at least 1; got {count}")
    chosen = make_sampler(sampler, law, scale)
    report: dict[str, Any] = {
        "sampler": chosen.name,
        "law": law,
        "asked_scale": scale,
        "scale": chosen.scale,
        "count": count,
        "engine": engine,
        "parties": parties,
        "threshold": threshold,
        "certificate": chosen.certificate,
        "largest": chosen.largest,
        "batch": BATCH,
    }
    values = None
    if engine == "counting":
        if opened:
            raise UsageError("--open needs samples, but --engine counting draws none; leave one of them out")
        report["predicted"] = predict(chosen, count, parties, threshold)
    elif engine == "clear":
        start = time.perf_counter()
        values = chosen.clear(count, Prg.from_os())
        report["seconds"] = time.perf_counter() - start
        report["rate"] = count / report["seconds"]
    else:
        results = run_parties(_draw_at_party, parties, threshold, (sampler, law, scale, count, opened))
        report["seconds"] = max(r["seconds"] for r in results)
        report["rate"] = count / report["seconds"]
        report["measured"] = {
            "rounds": results[0]["rounds"],
            "messages": [r["messages"] for r in results],
            "bytes": [r["bytes"] for r in results],
            "bytes_per_party_and_sample": max(r["bytes"] for r in results) / count,
        }
        report["predicted"] = predict(chosen, count, parties, threshold)
        values = results[0].get("values")
    if values is not None:
        report["opened"] = describe(values, chosen)
    return report, values


def describe(values: NDArray[np.int64], sampler: Sampler) -> dict[str, Any]:
    """Moments of opened samples beside the law's, and a chi-square against the exact law; no test for fewer than "
    "100 samples."""
    from dpmpc.noise.goodness import chi_square, exact_law

    x = values.astype(np.float64)
    law = exact_law(sampler.law, sampler.scale, discrete=sampler.name == "discrete")
    result: dict[str, Any] = {
        "mean": float(x.mean()),
        "mean_standard_error": math.sqrt(law.variance / len(x)),
        "variance": float(x.var(ddof=1)) if len(x) > 1 else None,
        "law_variance": law.variance,
        "largest": int(np.abs(values).max()),
    }
    if len(x) >= 100:
        test = chi_square(values, law)
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
