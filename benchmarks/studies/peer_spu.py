"""Standard normals in SPU, as its users write them: Box-Muller of shared uniforms by ABY3, three processes.

Run by `benchmarks/studies/peers.py` with a Python that has the package `spu`. Prints JSON. The shares of the
uniforms are there beforehand and cost nothing here. Bytes are what SPU's own profile counts in one more run, which is
not timed.
"""

import json
import multiprocessing
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PARTIES, FRACTION = 3, 18
_SENT = re.compile(r"pphlo\.\w+, executed .* send bytes (\d+) ")


def normals(first: Any, second: Any) -> Any:
    """Two normals of each pair of uniforms."""
    import jax.numpy as jnp

    radius, angle = jnp.sqrt(-2.0 * jnp.log(first)), 2.0 * jnp.pi * second
    return jnp.concatenate([radius * jnp.cos(angle), radius * jnp.sin(angle)])


def _config(profile: bool) -> Any:
    from spu import libspu

    config = libspu.RuntimeConfig(protocol=libspu.ProtocolKind.ABY3, field=libspu.FieldType.FM64)
    config.fxp_fraction_bits = FRACTION
    config.enable_pphlo_profile = config.enable_hal_profile = profile
    return config


def _party(
    rank: int, ports: Sequence[int], executable: Any, shares: Sequence[Any], repetitions: int, pipe: Any
) -> None:
    from spu import api, libspu

    parties = libspu.link.Desc()
    for k, port in enumerate(ports):
        parties.add_party(f"party{k}", f"127.0.0.1:{port}")
    link = libspu.link.create_brpc(parties, rank)
    seconds = list[float]()
    with tempfile.NamedTemporaryFile() as log:
        for k in range(repetitions + 2):  # the first warms up, the last counts bytes
            profile = k > repetitions
            if profile:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            runtime = api.Runtime(link, _config(profile))
            for name, share in zip(executable.input_names, shares, strict=True):
                runtime.set_var(name, share)
            link.barrier()
            begin = time.perf_counter()
            runtime.run(executable)
            seconds.append(time.perf_counter() - begin)
        sent = sum(map(int, _SENT.findall(Path(log.name).read_text(errors="replace"))))
    out = runtime.get_var(executable.output_names[0])
    pipe.send((seconds[1:-1], sent, out.meta, list(out.share_chunks)))
    link.barrier()
    link.stop_link()


def main(count: int, repetitions: int) -> None:
    """See the module."""
    from spu import __version__, api, libspu
    from spu.utils import frontend

    rng, half = np.random.default_rng(1), -(-count // 2)
    uniforms = [1 - rng.random(half, dtype=np.float32), rng.random(half, dtype=np.float32)]
    secret = libspu.Visibility.VIS_SECRET
    executable, _ = frontend.compile(
        frontend.Kind.JAX, normals, uniforms, {}, ["first", "second"], [secret] * 2, lambda out: ["normals"]
    )
    io = api.Io(PARTIES, _config(False))
    shares = [io.make_shares(each, secret) for each in uniforms]
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(PARTIES)]
    ports = [each.getsockname()[1] for each in listening]
    for each in listening:
        each.close()
    context, pipes, parties = multiprocessing.get_context("fork"), list[Any](), list[Any]()
    for rank in range(PARTIES):
        mine, theirs = context.Pipe()
        given = (rank, ports, executable, [of[rank] for of in shares], repetitions, theirs)
        parties.append(context.Process(target=_party, args=given, daemon=True))
        parties[-1].start()
        pipes.append(mine)
    found, opened = [pipe.recv() for pipe in pipes], list[Any]()
    for party in parties:
        party.join()
    for _, _, meta, chunks in found:
        opened.append(libspu.Share())
        opened[-1].meta, opened[-1].share_chunks = meta, chunks
    z = io.reconstruct(opened)[:count]
    seconds, sent = np.max([each[0] for each in found], axis=0).tolist(), max(each[1] for each in found)
    drawn = {"variance": float(z.astype(np.float64).var()), "largest": float(abs(z).max())}
    print(json.dumps({"version": f"SPU {__version__}", "seconds": seconds, "bytes": sent, **drawn}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
