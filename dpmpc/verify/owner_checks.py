"""Of the parties' transcripts: were owners checked in every release, and did all parties find the same."""

from dpmpc.aggregation.plan.check_figures import owners_line
from dpmpc.aggregation.plan.owner_bounds import REJECTED, channel_of, what_is_checked
from dpmpc.aggregation.wire.transcript import CHECKED
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.owner_checks import NORMS
from dpmpc.mpc.contract.security import Checks
from dpmpc.verify.run_files import RunFiles
from dpmpc.verify.verdict import Check, of_problems


def check_owners_events(records: RunFiles) -> Check:
    """One finding a release, after the last input and before anything is added or sent; the same at all parties, and in
    the ledgers; of active parties, with verdicts on the two circuits that compare norms. The frames of the checks are
    counted with those of the release, their digests by both ends."""
    problems: list[str] = []
    verdicts: dict[tuple[int, int], set[tuple[tuple[int, ...], ...]]] = {}
    failed = 0
    judged = isinstance(BACKENDS[records.plan.backend], Checks) and NORMS in what_is_checked(records.plan)
    held: dict[tuple[int, int], set[int]] = {}
    for attempt in records.all:
        held[attempt.party, attempt.number] = {e["channel"] for e in attempt.events if e["event"] == CHECKED}
        for release, events in attempt.releases.items():
            kinds = [event["event"] for event in events]
            where = [k for k, kind in enumerate(kinds) if kind == REJECTED]
            inputs = [k for k, kind in enumerate(kinds) if kind == "input"]
            later = [k for k, kind in enumerate(kinds) if kind in ("sum", "noise", "add", "send")]
            if later and (len(where) != 1 or not max(inputs, default=-1) < where[0] < min(later)):
                problems.append(f"{attempt.name}, release {release}: owners were not checked before the sum")
            if (
                later
                and judged
                and not {channel_of(release) + k for k in (1, 2)} <= held[attempt.party, attempt.number]
            ):
                problems.append(f"{attempt.name}, release {release}: the checks of norms were not checked")
            for k in where:
                found = tuple(events[k]["inconsistent"]), tuple(events[k]["too_long"])
                verdicts.setdefault((attempt.number, release), set()).add(found)
    for (number, release), seen in verdicts.items():
        if len(seen) > 1:
            problems.append(f"attempt {number}, release {release}: parties differ on who failed")
        gone = {j for found in seen for kind in found for j in kind}
        failed += bool(gone)
        left = tuple(j for j in range(records.plan.owners) if j not in gone)
        problems += [
            f"party {party}, release {release}: its ledger names other owners"
            for party, book in enumerate(records.books)
            for entry in book.entries
            if entry.run == records.plan.run_id
            and (entry.attempt, entry.release) == (number, release)
            and entry.present != left
        ]
    fine = f"{len(verdicts)} releases, {failed} with owners that failed; {owners_line(records.plan)}"
    return of_problems("owners were checked", problems, fine)
