"""Standard normals in CrypTen: its own `randn`, two processes and a dealer's over loopback.

Run by `benchmarks/studies/peers.py` with a Python that has the package `crypten`. Prints JSON. The dealer sees all
masks.
"""

import importlib.metadata
import json
import os
import sys
import time
from typing import Any


def _draws(count: int, repetitions: int) -> dict[str, Any]:
    import crypten
    from crypten import communicator

    here, seconds = communicator.get(), list[float]()
    for _ in range(repetitions + 1):  # the first warms up
        here.barrier()
        here.reset_communication_stats()
        begin = time.perf_counter()
        shared = crypten.randn(count)
        seconds.append(time.perf_counter() - begin)
    sent = int(here.get_communication_stats()["bytes"])
    z = shared.get_plain_text().double()
    found = {"variance": float(z.var(unbiased=False)), "largest": float(z.abs().max())}
    return {"seconds": seconds[1:], "bytes": sent, **found}


def main(count: int, repetitions: int) -> None:
    """See the module."""
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    import crypten
    from crypten.mpc import run_multiprocess

    crypten.cfg.mpc.provider = "TTP"
    crypten.cfg.communicator.verbose = True  # it counts bytes
    found = run_multiprocess(2)(_draws)(count, repetitions)
    seconds = [max(pair) for pair in zip(*(each["seconds"] for each in found), strict=True)]
    sent = max(each["bytes"] for each in found)
    named = f"CrypTen {importlib.metadata.version('crypten')}"
    print(json.dumps({**found[0], "version": named, "seconds": seconds, "bytes": sent}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
