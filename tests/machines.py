"""Runs over several machines, whose processes are threads of the test: parties and owners apart, or sites of both."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import start
from dpmpc.errors import DpmpcError
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.planning.request import Request
from tests.forked_commands import HANG
from tests.runs import own_addresses


def followed(folder: Path) -> Path:
    """Where a process keeps the plan of its run's own releases."""
    return next(path for name in ("plan.json", "plan_*.json") for path in sorted(folder.glob(name)))


def together(parts: list[Callable[[], None]]) -> list[DpmpcError | None]:
    """What each of these processes, here threads, ended with."""
    ends: list[DpmpcError | None] = [None] * len(parts)

    def one(k: int) -> None:
        try:
            parts[k]()
        except DpmpcError as error:
            ends[k] = error

    threads = [threading.Thread(target=one, args=(k,), daemon=True, name=f"site {k}") for k in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive()
    return ends


def process(
    plan: Path,
    out: Path,
    index: str,
    addresses: list[str],
    record: Path | None,
    wait: float = 60.0,
    spelling: Spelling = PLAIN,
    **more: Any,
) -> Callable[[], None]:
    """A process of the run."""
    request = None if record is None else Request(csv=str(record), planned=True, evaluate=False, spelling=spelling)
    where = Placement(out=out / index, index=index, plan_file=plan, addresses=tuple(addresses[1::2]), wait=wait, **more)
    return lambda: start(request, where, lambda event: None)


def apart(plan: Path, out: Path, records: list[Path], wait: float = 60.0) -> list[DpmpcError | None]:
    """Owners and parties, which wait so long for one another."""
    addresses = own_addresses(3)
    parties = [process(plan, out, str(i), addresses, None, wait) for i in range(3)]
    return together([*parties, *(process(plan, out, f"owner{j}", addresses, r, wait) for j, r in enumerate(records))])


def sites(plan: Path, out: Path, records: list[Path], **more: Any) -> list[DpmpcError | None]:
    """Owners that are parties."""
    addresses = own_addresses(3)
    return together([process(plan, out, str(i), addresses, records[i], role="both", **more) for i in range(3)])
