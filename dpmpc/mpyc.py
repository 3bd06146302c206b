"""Certified noise inside any MPyC program, as that program's own secure arrays.

    secfld = mpc.SecFld(modulus=2**61 - 1, signed=True)
    total = total + await dpmpc.mpyc.gaussian(mpc, secfld, size, sigma)

The parties of the program make one noise vector that nobody knows, over the program's own connections, with its PRSS
keys and program counters; the circuits are those of `dpmpc train`. The result is shared as everything else is: Shamir
shares of degree t at the points 1 .. m over p = 2^61 - 1. Semi-honest, at most t parties together, as MPyC itself.

This is noise alone, not a promise: what sum it is added to, how far a record moves that, and that it is added once and
the sum opened once, is the program's business. `epsilon` says what a scale comes to.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT
from dpmpc.mpc.mpyc.program import ProgramSession, fresh_noise
from dpmpc.mpc.mpyc.runtime import mpc_coro
from dpmpc.mpc.numbers import field
from dpmpc.noise.draw import batch_sizes
from dpmpc.privacy.checks import check_count, check_positive
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.law import LAWS, Need
from dpmpc.privacy.sensitivity import Sensitivity

Shape = int | tuple[int, ...]


async def gaussian(mpc: Any, sectype: Any, size: Shape, sigma: float) -> Any:
    """A secure array of `size` fresh samples of the discrete Gaussian of parameter `sigma`, as `sectype`'s arrays are.

    `sectype`: SecFld, SecInt or SecFxp over p = 2^61 - 1. `sigma` is in the type's units: whole numbers, or for SecFxp
    numbers with its f fractional bits, on whose grid 2^-f the law lives. All parties call this in the same order.
    Errors: UsageError for another field, a program without PRSS, a scale outside what the sampler reaches. A party that
    dies leaves the others waiting, as everywhere in MPyC.
    """
    return noise(mpc, sectype, size, "gaussian", sigma)


async def laplace(mpc: Any, sectype: Any, size: Shape, b: float) -> Any:
    """As `gaussian`, with the discrete Laplace law of parameter `b`: P(x) proportional to exp(-|x| / b)."""
    return noise(mpc, sectype, size, "laplace", b)


def noise(mpc: Any, sectype: Any, size: Shape, law: str, scale: float) -> Any:
    """The secure array of `size` samples of a law of `dpmpc.LAWS`; see `gaussian`. Its shares come when they are
    made."""
    shape = size if isinstance(size, tuple) else (size,)
    check_count("the number of samples", math.prod(shape))
    sampler = sampler_of(sectype, law, scale)
    mpc._program_counter[0] += 1  # ours alone, the same at all parties

    @mpc_coro
    async def made():  # type: ignore[no-untyped-def]  # MPyC reads the type of the result off an annotation
        f = sectype.frac_length
        await mpc.returnType((sectype.array, False, shape) if f else (sectype.array, shape))
        counter = int(mpc._program_counter[0]).to_bytes(8, "little", signed=True)
        session = ProgramSession(mpc, counter)
        await session.join_program(counter)
        shares = np.concatenate(await fresh_noise(session, sampler, batch_sizes(math.prod(shape))))
        return sectype.field.array(shares.astype(object).reshape(shape), check=False)

    return made()


def sampler_of(sectype: Any, law: str, scale: float) -> Sampler:
    """What draws the samples; its `certificate` bounds how far they are from the law. Errors: as `gaussian`."""
    modulus = getattr(getattr(sectype, "field", None), "modulus", None)
    if modulus != field.P:
        raise UsageError(
            f"noise lives in the field of p = 2^61 - 1; this type's is of {modulus}; make it with p=2**61 - 1 (SecFld: "
            "modulus=)"
        )
    steps = math.ldexp(check_positive("the noise scale", scale), sectype.frac_length or 0)
    chosen = LAWS[law]
    return chosen.sampler(next(iter(chosen.samplers)), steps)


def certificate(sectype: Any, law: str, scale: float) -> dict[str, float | str]:
    """What is proved of one sample: its law, and the total variation distance from it."""
    return dict(sampler_of(sectype, law, scale).certificate)


def epsilon(
    sectype: Any,
    size: int,
    law: str,
    scale: float,
    *,
    sensitivity: float,
    delta: float,
    parties: int,
    threshold: int,
    releases: int = 1,
) -> float:
    """The epsilon of (epsilon, delta) that `releases` openings of sums with this noise come to, everything counted:
    law, certificate, and what the masks of the noise's own openings fail to hide.

    `sensitivity`: how far the change of one unit moves a sum at most, in L2 norm and in the type's units, rounding
    included. Guarantees: if each sum gets one vector of `size` samples, and is opened once.
    """
    sampler = sampler_of(sectype, law, scale)
    steps = math.ldexp(check_positive("the sensitivity", sensitivity), sectype.frac_length or 0)
    hiding = sum(BACKENDS[DEFAULT].count_noise(sampler, n, parties, threshold).distance for n in batch_sizes(size))
    tv = float(sampler.certificate["total_variation"])
    need = Need(1.0, delta, Sensitivity(l2=steps).within(size), size, releases, tv=tv, mpc_failure=releases * hiding)
    return spending_of(LAWS[law].mechanism(sampler.scale, sampler.discrete, need), releases).epsilon(delta)


__all__: Sequence[str] = ["certificate", "epsilon", "gaussian", "laplace", "noise"]
