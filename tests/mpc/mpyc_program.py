"""An MPyC program, started by MPyC's own launcher: opens noise of every type and law and writes it down. For
test_mpyc_program."""

import sys

import numpy as np
from mpyc.runtime import mpc

import dpmpc.mpyc
from dpmpc.errors import UsageError

P = 2**61 - 1
COUNT = 3000


def signed(values):  # type: ignore[no-untyped-def]
    whole = np.array([int(v) for v in values], dtype=object)
    return np.where(whole > P // 2, whole - P, whole).astype(np.int64)


async def main(out: str) -> None:
    secfld, secint, secfxp = mpc.SecFld(modulus=P, signed=True), mpc.SecInt(24, p=P), mpc.SecFxp(18, 6, p=P)
    async with mpc:
        field = await dpmpc.mpyc.gaussian(mpc, secfld, COUNT, 5000.0)
        whole = await dpmpc.mpyc.laplace(mpc, secint, (COUNT // 3, 3), 4200.0)
        fixed = await dpmpc.mpyc.gaussian(mpc, secfxp, COUNT, 75.0)
        again = await dpmpc.mpyc.gaussian(mpc, secfld, 50, 5000.0)
        three = secfld.array(np.array([3] * 50, dtype=object))
        values = {
            "field": signed(await mpc.output(field)),
            "whole": signed(np.asarray(await mpc.output(whole)).reshape(-1)),
            "fixed": np.rint(np.array(await mpc.output(fixed), dtype=float) * 2**6).astype(np.int64),
            # MPyC's operators on it, a product's resharing among them, beside the noise itself
            "doubled": signed(await mpc.output(again * three)),
            "again": signed(await mpc.output(again)),
            "shape": np.array(whole.shape),
        }
    if mpc.pid == 0:
        np.savez(out, **values)  # type: ignore[arg-type]
        for wrong in (mpc.SecFld(modulus=101), mpc.SecInt(24)):
            try:
                await dpmpc.mpyc.gaussian(mpc, wrong, 3, 5000.0)
            except UsageError as error:
                print(error)


mpc.run(main(sys.argv[1]))
