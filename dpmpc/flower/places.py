"""Where the parties of a Flower run are, and where the server keeps what it says of it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.plan.here import Here
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.flower.courier import Courier
from dpmpc.flower.prepared import Prepared
from dpmpc.folders import OUT, make_folder, not_new, write_file
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.privacy.budget import Budget
from dpmpc.processes.provenance import software
from dpmpc.settings import said

REPORT = "report.json"
HERE = "all parties ran on the server's machine: whoever commands it can read every update; this is for study"


class Places:
    """As `PrivateStrategy` is told."""

    def __init__(self, prepared: Prepared, here: Here, keys: Path | None, budget: tuple[float, float] | None) -> None:
        """`keys`: the folder with the parties' private keys, where they are here. Errors: UsageError."""
        self._prepared, self._keys, self._process, self.out = prepared, keys, here, here.out
        self.here = here.index is None
        if self.out is not None and not self._is_free(self.out):
            raise not_new(self.out)
        self._addresses = None if self.here else owner_endpoints(here.endpoints(prepared.plan.parties))
        self._books = NO_BOOKS
        if budget is not None:
            if self.out is None or not self.here:
                raise UsageError("a budget is held against ledgers of parties here; give out too, and no addresses")
            self._books = Books(Budget.below(budget, None, self.out))

    @classmethod
    def of(
        cls,
        given: Prepared | Path | str,
        prepared: Prepared,
        keys: Path | str | None,
        budget: tuple[float, float] | None,
        addresses: Sequence[str] | None,
        own: Mapping[str, Any],
    ) -> Self:
        """With `keys`, or those in the folder that was given in place of the plan; `own`: settings of `Here`. Errors:
        as this, and neither."""
        if keys is None and addresses is None:
            if isinstance(given, Prepared):
                raise UsageError("parties here need their keys; none were named; give keys=FOLDER, the one of prepare")
            keys = given if Path(given).is_dir() else Path(given).parent
        where: dict[str, Any] = {} if addresses is None else {"addresses": tuple(addresses), "index": "owners"}
        return cls(prepared, Here(**where, **said(own)), None if keys is None else Path(keys), budget)

    def _is_free(self, out: Path) -> bool:
        """Whether a report may go there: nothing is there, or with parties elsewhere the report of the same run."""
        found = {path.name for path in out.iterdir()} if out.exists() else set()
        if not found or self.here or found != {REPORT}:
            return not found
        try:
            said = loads((out / REPORT).read_text(encoding="utf-8"))["flower"]["plan_digest"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return bool(said == self._prepared.digest.hex())

    def courier(self) -> Courier:
        """Who carries shares to the parties; they are started, where they are here."""
        keys = self._keys if self.here else None
        return Courier.between(self._prepared, keys, self._process, addresses=self._addresses, books=self._books)

    def report(
        self, courier: Courier, about: dict[str, Any], presence: Mapping[int, Sequence[int]], warnings: Sequence[str]
    ) -> dict[str, Any]:
        """The promise and everything it rests on, who was there, cost, warnings: JSON values."""
        base = courier.report()
        return {
            **base,
            "releases_made": len(presence),  # those that were lost are none
            "flower": {
                **about,
                "plan_digest": self._prepared.digest.hex(),
                "sealed_bytes_an_owner": sum(self._prepared.sealed_bytes),
                "parties_here": self.here,
            },
            "presence": {
                "min_owners": self._prepared.plan.fewest,
                "owners": {str(release): list(who) for release, who in sorted(presence.items())},
            },
            "warnings": [*base["warnings"], *warnings, *([HERE] if self.here else [])],
            "software": software(),
        }

    def write(self, report: dict[str, Any]) -> None:
        """The report into `out`, where there is one."""
        if self.out is not None:
            make_folder(self.out, OUT, private=True)
            text = json.dumps(report, indent=2, sort_keys=True)
            write_file(self.out / REPORT, text + "\n")
