"""Where the parties of a Flower run are, and where the server keeps what it says of it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from dpmpc.aggregation.owner.sites import endpoints
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.flower.courier import Courier
from dpmpc.flower.prepared import Prepared
from dpmpc.folders import OUT, make_folder, write_file
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.privacy.budget import Budget
from dpmpc.processes.provenance import software

REPORT = "report.json"
HERE = "all parties ran on the server's machine: whoever commands it can read every update; this is for study"


class Places:
    """As `PrivateStrategy` is told."""

    def __init__(
        self,
        prepared: Prepared,
        out: Path | None,
        addresses: list[str] | None,
        tls: Path | None,
        keys: Path | None,
        budget: tuple[float, float] | None,
        wait: float,
        stall: float,
    ) -> None:
        """`keys`: the folder with the parties' private keys, where they are here. Errors: UsageError."""
        self._prepared, self.out, self._tls, self._keys, self._wait, self._stall = prepared, out, tls, keys, wait, stall
        self.here = addresses is None
        if out is not None and not self._is_free(out):
            raise UsageError(f"out must be a new or empty directory; {out} is not; name another")
        self._addresses = None if addresses is None else owner_endpoints(endpoints(prepared.plan, addresses, tls))
        self._budget = None
        if budget is not None:
            if out is None or addresses is not None:
                raise UsageError("a budget is held against ledgers of parties here; give out too, and no addresses")
            self._budget = Budget.below(budget, None, out)

    @classmethod
    def of(cls, given: Prepared | Path | str, prepared: Prepared, keys: Path | str | None, **settings: Any) -> Self:
        """With `keys`, or those in the folder that was given in place of the plan. Errors: as this, and neither."""
        if keys is None and settings["addresses"] is None:
            if isinstance(given, Prepared):
                raise UsageError("parties here need their keys; none were named; give keys=FOLDER, the one of prepare")
            keys = given if Path(given).is_dir() else Path(given).parent
        for name in ("out", "tls"):
            settings[name] = None if settings[name] is None else Path(settings[name])
        return cls(prepared, keys=None if keys is None else Path(keys), **settings)

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
        places: dict[str, Any] = {"addresses": self._addresses, "tls": self._tls}
        if self._addresses is None:
            places = {} if self._budget is None else {"budget": self._budget}
        keys = self._keys if self.here else None
        return Courier.between(self._prepared, keys, out=self.out, wait=self._wait, stall=self._stall, **places)

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
