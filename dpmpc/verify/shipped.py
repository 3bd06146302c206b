"""What a verdict is of, so that it can be sent to others; and the verdicts that others have sent.

A party verifies its own folder and sends the JSON file to the owners; in an owner's run folder, under a name such as
`verify_party_1.json`, the report shows it. Nothing is signed: it is that party's word, as its transcript is.
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import matching
from dpmpc.lazy import dataclass
from dpmpc.processes.provenance import software
from dpmpc.verify.run_files import RunFiles, places

SENT = "verify_*.json"
_FILES = ("party_*.transcript.jsonl", "ledger_*.jsonl")


def about(out: Path, records: RunFiles) -> dict[str, Any]:
    """The run, the digest of its plan, whose files were seen and their digests, when and by which software."""
    seen = [i for i in range(records.plan.parties) if i not in records.elsewhere]
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for place in places(out)
        for pattern in _FILES
        for path in matching(place, pattern)
    }
    return {
        "run": records.plan.run_id,
        "plan": records.plan.digest(FIRST_ATTEMPT).hex(),
        "parties_seen": seen,
        "files": files,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "software": software(),
    }


@dataclass(frozen=True)
class Sent:
    """A verdict that somebody sent. `parties`: whose files were seen; `lines`: each line of evidence, in words."""

    file: str
    parties: tuple[int, ...]
    made: str
    holds: bool
    lines: tuple[str, ...]


def sent_to(folder: Path, plan: Plan, kinds: tuple[str, ...]) -> list[Sent]:
    """The verdicts in `folder` that others have sent, of this run. Errors: UsageError for one of another run, or a file
    that `dpmpc verify` did not write."""
    found = []
    for path in matching(folder, SENT):
        try:
            value = loads(path.read_text(encoding="utf-8"))
            lines = tuple(_line(kind, value[kind]) for kind in kinds if kind in value)
            one = Sent(
                path.name, tuple(map(int, value["parties_seen"])), str(value["made"]), bool(value["holds"]), lines
            )
            of = value["run"], value["plan"]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(
                f"a verdict that was sent is what dpmpc verify wrote; {path} is not; ask for it again",
                code="file",
            ) from None
        if of != (plan.run_id, plan.digest(FIRST_ATTEMPT).hex()):
            raise UsageError(
                f"a verdict that was sent is of this run, {plan.run_id}; {path} is of another run or plan; take it "
                "away",
                code="file",
            )
        found.append(one)
    return found


def _line(kind: str, evidence: dict[str, Any]) -> str:
    checks = evidence["checks"]
    held = sum(bool(check["holds"]) for check in checks)
    return f"{kind} {'holds' if evidence['holds'] else 'FAILS'}: {held} of {len(checks)} checks"
