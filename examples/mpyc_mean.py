"""A private mean inside an MPyC program: owners' vectors, MPyC's operators, one noise vector, one opening.

    python examples/mpyc_mean.py -M3           # three parties of this machine, started by MPyC's own launcher

Every party is also an owner here, with one vector of 1,000 numbers, clipped to norm 1. Replacing one owner's vector
moves the sum by at most 2.
"""

import numpy as np
from mpyc.runtime import mpc

import dpmpc.mpyc

D, F, SIGMA = 1000, 16, 20.0  # coordinates, fractional bits, noise


async def main():
    secfld = mpc.SecFld(modulus=2**61 - 1, signed=True)
    vector = np.random.default_rng(mpc.pid).normal(size=D)  # this owner's
    vector /= max(1.0, np.linalg.norm(vector))
    async with mpc:
        steps = np.rint(vector * 2**F).astype(int).astype(object)
        total = sum(mpc.input(secfld.array(steps)))
        total = total + await dpmpc.mpyc.gaussian(mpc, secfld, D, SIGMA * 2**F)
        opened = np.array([int(x) for x in await mpc.output(total)], dtype=float)
    mean = opened / 2**F / len(mpc.parties)
    epsilon = dpmpc.mpyc.epsilon(
        secfld, D, "gaussian", SIGMA * 2**F, sensitivity=2 * 2**F + np.sqrt(D), delta=1e-5,
        parties=len(mpc.parties), threshold=mpc.threshold,
    )  # fmt: skip
    print(f"epsilon = {epsilon:.3f}, delta = 1e-05; one owner's whole vector replaced")
    print(f"{len(mpc.parties)} owners; deviation of a coordinate of the mean {mean.std():.3f}")


if __name__ == "__main__":
    mpc.run(main())
