"""Parties of a Flower run, elsewhere."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dpmpc
from dpmpc.flower import Prepared, ShareParty
from dpmpc.flower.prepared import key_path
from dpmpc.mpc.transport.addresses import owner_endpoints, parse_endpoints
from tests.runs import HANG, own_addresses


class Parties:
    """Three parties elsewhere, in threads, each with its key, its folder, and their account, by default below
    `folder`."""

    def __init__(self, given: Prepared, keys: Path, folder: Path, account: Path | None = None) -> None:
        self.addresses = own_addresses(3)[1::2]
        self.called = owner_endpoints(parse_endpoints(self.addresses))
        limits = dpmpc.Limits(epsilon=math.inf)

        def party(i: int) -> None:
            ShareParty(
                given, i, self.addresses, key=key_path(keys, i), out=folder / str(i), wait=HANG, limits=limits,
                account=account or folder / "account",
            ).run()  # fmt: skip

        self._pool = ThreadPoolExecutor(3)
        self._ends = [self._pool.submit(party, i) for i in range(3)]

    def ends(self) -> list[BaseException | None]:
        found = [each.exception(HANG) for each in self._ends]
        self._pool.shutdown()
        return found
