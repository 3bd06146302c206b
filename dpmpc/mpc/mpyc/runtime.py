"""MPyC, imported without its side effects. The only importer of mpyc.

The backend `mpyc` computes with it, and noise for MPyC programs (`dpmpc.mpyc`) runs inside it; no other backend needs
it.
"""

import asyncio
import contextlib
import logging
import sys
import threading
import warnings
from types import SimpleNamespace
from typing import Any

_IMPORTING = threading.Lock()


def import_mpyc() -> Any:
    """The module mpyc.runtime, imported without letting it read this program's command line or set up logging."""
    with _IMPORTING:
        if "mpyc.runtime" not in sys.modules:
            _import()
    return sys.modules["mpyc.runtime"]


def _import() -> None:
    argv, level = sys.argv, logging.root.level
    handlers = list(logging.root.handlers)
    with contextlib.ExitStack() as stack:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # its module-level runtime wants an event loop
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            stack.callback(loop.close)
            stack.callback(asyncio.set_event_loop, None)
        try:
            sys.argv = [argv[0] if argv else "dpmpc", "--no-log"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # it uses numpy.core and asyncio's old loop look-up
                import mpyc.runtime  # noqa: F401
        finally:
            sys.argv = argv
            logging.root.handlers[:] = handlers
            logging.root.setLevel(level)


def version() -> str:
    """MPyC's own."""
    return str(import_mpyc().mpyc.__version__)


def prime_of(bits: int) -> int:
    """The prime of so many bits that MPyC itself chooses for secure numbers."""
    return int(import_mpyc().finfields.find_prime_root(bits, n=2)[0])


def make_runtime(party: int, parties: int, threshold: int) -> Any:
    """An MPyC runtime of this party, without connections.

    `mix32_64bit` makes MPyC marshal arrays as fixed-width bytes; `transfer`, which pickles, is closed.
    """
    module = import_mpyc()
    options = SimpleNamespace(
        threshold=threshold,
        no_log=True,
        no_prss=False,
        ssl=False,
        no_async=parties == 1,
        no_barrier=False,
        mix32_64bit=True,
        sec_param=60,
        bit_length=64,
    )
    runtime = module.Runtime(party, [module.Party(i) for i in range(parties)], options)

    async def closed(*_: object, **__: object) -> None:
        raise AssertionError("Runtime.transfer pickles and is not used here")

    runtime.transfer = closed
    module.pickle = _NoPickle  # the name by which its protocols marshal what has no fixed width
    for name in ("sectypes", "asyncoro", "mpctools", "seclists", "secpols", "secgroups", "random", "statistics"):
        sys.modules[f"mpyc.{name}"].runtime = runtime  # type: ignore[attr-defined]
    return runtime


class _NoPickle:
    """In place of the module pickle: what MPyC would pickle, a peer could make this process run."""

    @staticmethod
    def dumps(obj: object) -> bytes:
        raise AssertionError("MPyC would pickle here, which is not used")

    @staticmethod
    def loads(data: bytes) -> object:
        raise AssertionError("MPyC would unpickle here, which is not used")


def mpc_coro(function: Any) -> Any:
    """The function as a coroutine of the MPyC program that runs here."""
    import_mpyc()
    return sys.modules["mpyc.asyncoro"].mpc_coro(function)
