"""Where tasks that do not depend on each other run: any `concurrent.futures.Executor`, by name."""

import importlib
import ipaddress
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.processes.paths import keep_children_safe

Make = Callable[[int], Executor]
KINDS = (
    "processes, joblib, dask:ADDRESS, ray:HOST:PORT, or MODULE:FUNCTION, a function of yours that returns an Executor"
)
_PATIENCE = 10.0  # seconds that the head of a Ray cluster has to answer a call


def executor_maker(name: str) -> Make:
    """What makes the executor of this name for so many workers: one of KINDS.

    `dask:ADDRESS` is a scheduler's (tcp://127.0.0.1:8786, tls://host:8786), `ray:HOST:PORT` the head of a Ray cluster;
    their workers decide how many run at once. `joblib` is loky, as scikit-learn uses it. Errors: UsageError for another
    name, a package that is not installed, a function that is not there, a scheduler that does not answer, or one whose
    messages, which are pickles, anybody on the way could write.
    """
    keep_children_safe()
    if name == "processes":
        return _processes
    if name == "joblib":
        loky = _module("joblib.externals.loky", "joblib")
        return lambda workers: _checked(name, loky.get_reusable_executor(max_workers=workers))
    kind, _, rest = name.partition(":")
    if kind == "dask" and rest:
        _check_way(rest)
        return lambda workers: _checked(name, _dask(rest))
    if kind == "ray" and rest:
        _check_ray([rest])
        return lambda workers: _Ray(rest)
    if rest and all(part.isidentifier() for part in kind.split(".")):
        function = getattr(_module(kind, kind), rest, None)
        if not callable(function):
            raise UsageError(f"<<executor>> MODULE:FUNCTION names a function; {name} is none; mend it", code="unknown")
        return lambda workers: _checked(name, function())
    raise UsageError(f"<<executor>> is {KINDS}; got {name!r}; choose one", code="choice")


def _processes(workers: int) -> Executor:
    import multiprocessing  # which takes longer than the rest of this module
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_starter)


def _end_with_starter() -> None:
    """Has a worker end when the process that started it is gone, however it ended: a pool's own would wait for ever."""
    import multiprocessing

    def watch() -> None:
        if (starter := multiprocessing.parent_process()) is not None:
            starter.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _dask(address: str) -> Any:
    client = _module("distributed", "distributed").Client
    needs = f"<<executor>> dask:ADDRESS needs a scheduler; {address}"
    try:
        found = client(address)
    except (OSError, ValueError) as error:
        raise UsageError(f"{needs}: {error}; start it first") from None
    except TypeError:  # Dask's word for a tls:// without a context
        raise UsageError(
            f"<<executor>> dask:tls://HOST:PORT needs certificates; {address}: Dask is configured with none; set "
            "distributed.comm.tls in its configuration, or DASK_DISTRIBUTED__COMM__TLS__CA_FILE and its like",
            code="keys",
        ) from None
    try:
        _check_listening(found)
        executor = found.get_executor(pure=False)
    except (OSError, ValueError) as error:
        found.close()
        raise UsageError(f"{needs}: {error}; start it first") from None
    except BaseException:
        found.close()
        raise
    leave = executor.shutdown

    def shutdown(wait: bool = True, **more: Any) -> None:
        """Dask's own leaves its client, which looks for a scheduler that is gone for as long as the process lives."""
        leave(wait=wait, **more)
        found.close()

    executor.shutdown = shutdown
    return executor


def _check_listening(client: Any) -> None:
    """Errors: the scheduler, a worker or its nanny has or listens at an address that is neither of this machine nor of
    TLS. Where they are called says nothing of that: Dask's own default is to listen at all addresses."""

    def listening(dask_scheduler: Any = None, dask_worker: Any = None) -> list[str]:  # sent as it is, not by its name
        return [each.listen_address for each in (dask_scheduler or dask_worker).listeners]

    workers = client.scheduler_info(n_workers=-1)["workers"]
    for worker in workers:
        _check_way(worker)
    found = {"the scheduler": client.run_on_scheduler(listening)}
    found |= {f"worker {worker}": addresses for worker, addresses in client.run(listening).items()}
    if nannies := [worker for worker, about in workers.items() if about.get("nanny")]:
        asked = client.run(listening, workers=nannies, nanny=True)
        found |= {f"the nanny of worker {worker}": addresses for worker, addresses in asked.items()}
    for what, addresses in found.items():
        for address in addresses:
            _check_way(address, f"{what} listens at {address}, which")


class _Ray(Executor):
    """The workers of a running Ray cluster. Ray's own tries are off: a lost task is `elsewhere`'s to send again."""

    def __init__(self, address: str) -> None:
        self._ray = _module("ray", "ray")
        self._joined = not self._ray.is_initialized()
        try:
            if self._joined:
                _reach(address)
                self._ray.init(address=address, log_to_driver=False, logging_level="error")
            _check_ray([node["NodeManagerAddress"] for node in self._ray.nodes() if node["Alive"]])
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"<<executor>> ray:HOST:PORT needs the head of a Ray cluster; {address}: {type(error).__name__}; start "
                "it first, with the same RAY_AUTH_TOKEN",
                code="missing",
            ) from None
        except UsageError:
            self.shutdown()
            raise
        self._task = self._ray.remote(max_retries=0)(_called)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = self._task.remote(fn, *args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """A program that had joined the cluster before stays in it."""
        if self._joined:
            self._ray.shutdown()


def _reach(address: str) -> None:
    """Errors: OSError, at once where nobody listens; Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "://" not in address:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()


def _called(fn: Any, *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def _check_ray(addresses: list[str]) -> None:
    """Errors: a node of Ray is neither of this machine nor reached by TLS."""
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    for address in addresses:
        if not _is_here(address):
            raise UsageError(
                f"Ray's messages are pickles, which whoever can write them runs as code; {address} is not of this "
                "machine, and RAY_USE_TLS is not 1; give Ray certificates, or use ray:127.0.0.1:6379",
                code="addresses",
            )


def _is_here(address: str) -> bool:
    """Whether this is a host of this machine, with a port or without."""
    host = address.rpartition(":")[0].strip("[]") or address
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_way(address: str, what: str = "") -> None:
    """Errors: the address is neither of this machine nor of TLS. `what`: who listens there."""
    kind, _, rest = address.rpartition("://")
    if kind != "tls" and not (_is_here(rest) and kind in ("", "tcp")):
        start = "start it with --host 127.0.0.1, or with certificates"
        way = start if what else "use dask:tls://HOST:PORT, or tcp://127.0.0.1:PORT"
        raise UsageError(
            f"Dask's messages are pickles, which whoever can write them runs as code; {what or address} is neither "
            f"tls:// nor of this machine{' alone' if what else ''}; {way}",
            code="addresses",
        )


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"<<executor>> needs the package {package}; {error}; install it", code="usage") from None


def _checked(name: str, executor: Any) -> Executor:
    if not all(callable(getattr(executor, method, None)) for method in ("submit", "shutdown")):
        raise UsageError(
            f"<<executor>> {name} must give an Executor; got {type(executor).__name__}; mend the function", code="type"
        )
    made: Executor = executor
    return made
