"""First line of evidence: the parties' transcripts of a run, held against the protocol and against each other.

A transcript is written by the party itself. What that can show and what not is in docs/verify.md; in short: an event
that involves a message is told by both of its ends, and one that does not (a local addition) by nobody but the party.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dpmpc.aggregation.plan.asked import Attempt as PlanAttempt
from dpmpc.aggregation.plan.barrier import has_barrier
from dpmpc.aggregation.plan.owner_bounds import REJECTED
from dpmpc.aggregation.wire.transcript import ABORT, CHECKED, SKIPPED, STAND
from dpmpc.errors import as_written, number_of
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.security import Checks
from dpmpc.verify.agreement import check_agreement, check_both_ends
from dpmpc.verify.events import count_of, first_in, kinds_of, last_in
from dpmpc.verify.owner_checks import check_owners_events
from dpmpc.verify.run_files import AttemptEvents, Event, RunFiles, read_records
from dpmpc.verify.traffic import check_channels, check_noise_traffic, check_verdicts
from dpmpc.verify.verdict import Check, Evidence, of_problems

_STEPS = {"input", "sum", "noise", "add", STAND, "ledger", "send", "open", "traffic"}
_KINDS = _STEPS | {ABORT, CHECKED, REJECTED, "present", "lost", "told", SKIPPED}


def check_structure(out: Path) -> Evidence:
    """The verdicts on the run in `out`. Errors: as `read_records`."""
    return structure_of(read_records(out))


UNSEEN = (
    "what a party does in its own memory and tells nobody, what owners did, and what all parties did alike in silence"
)


@as_written("a transcript", "restore the parties' files")
def structure_of(records: RunFiles) -> Evidence:
    """The verdicts on a run."""
    checks: tuple[Check, ...] = (
        _one_run(records),
        _inputs(records),
        _one_noise(records),
        _order(records),
        _ledger(records),
        _openings(records),
        check_channels(records),
        check_noise_traffic(records),
    )
    alone = records.plan.parties - len(records.elsewhere) == 1 < records.plan.parties
    if not alone:  # one end of a connection, and one party, agree with themselves
        checks = (*checks, check_both_ends(records), check_agreement(records))
    if isinstance(BACKENDS[records.plan.backend], Checks):
        checks = (*checks, check_verdicts(records))
    if records.plan.checks_owners:
        checks = (*checks, check_owners_events(records))
    unfinished = [a.name for a in records.all if not a.ended]
    note = number_of(len(records.all), "transcript") + _how_far(records)
    if unfinished:
        note += f"; cut short, so that their noise traffic is not counted: {', '.join(unfinished)}"
    if records.elsewhere:
        who = f"{'party' if len(records.elsewhere) == 1 else 'parties'} {', '.join(map(str, records.elsewhere))}"
        note += f"; part of the run: the files of {who} are elsewhere, and what they say was not compared"
    return Evidence("structure", checks, 0.0, note, UNSEEN)


def _how_far(records: RunFiles) -> str:
    """What of a run the verdict is not on: releases that were not opened, and those that follow a stage."""
    plan, (_, stage, name) = records.plan, records.plan.run_id.partition("+")
    seen = {
        number
        for attempt in records.all
        for number, events in attempt.releases.items()
        if any(event["event"] == "open" for event in events)
    }
    note = f"; of the {name} alone, no other release of the run" if stage else ""
    return note + (f"; {len(seen)} of {plan.releases} releases were opened" if len(seen) < plan.releases else "")


def _releases(records: RunFiles) -> Iterator[tuple[AttemptEvents, int, list[Event], bool]]:
    """(attempt, release, its events, whether it must be complete): only the last one of a cut attempt need not be."""
    for attempt in records.all:
        releases = attempt.releases
        for number, events in releases.items():
            sent = any(event["event"] in ("send", "open") for event in events)
            yield attempt, number, events, sent or attempt.ended or number != max(releases)


def _one_run(records: RunFiles) -> Check:
    plan, problems = records.plan, list(records.strays)
    for attempt in records.all:
        start = attempt.start
        theirs = PlanAttempt(attempt.number, start.get("first_release", -1))
        if start.get("run") != plan.run_id or start.get("party") != attempt.party:
            problems.append(f"{attempt.name} belongs to run {start.get('run')}, party {start.get('party')}")
        elif start.get("plan") != plan.digest(theirs).hex():
            problems.append(f"{attempt.name} followed another plan")
        unknown = {str(event.get("event")) for event in attempt.events} - _KINDS
        if unknown:
            problems.append(f"{attempt.name} has events of unknown kinds: {', '.join(sorted(unknown))}")
    for i, attempts in enumerate(records.attempts):
        counted = Counter(attempt.number for attempt in attempts)
        problems += [
            f"party {i} began attempt {number} {times} times" for number, times in counted.items() if times > 1
        ]
    problems += [
        f"party {i} has no transcript"
        for i, attempts in enumerate(records.attempts)
        if not attempts and i not in records.elsewhere
    ]
    fine = f"{plan.parties} parties, {len(records.numbers)} attempt(s), one plan"
    return of_problems("one run, one plan", problems, fine)


def _inputs(records: RunFiles) -> Check:
    problems, m = [], records.plan.owners
    sets: dict[tuple[int, int], tuple[int, ...]] = {}
    for attempt, number, events, complete in _releases(records):
        ranges = sorted((*event["owners"],) for event in events if event["event"] == "input")
        edges = [0, *(end for _, end in ranges)]
        if records.plan.dropouts:
            agreed = [tuple(event["owners"]) for event in events if event["event"] == "present"]
            used = tuple(j for first, end in ranges for j in range(first, end))
            once = used == tuple(sorted(set(used)))
            whole = not complete or (agreed == [used] and len(used) >= records.plan.fewest)
            if complete and agreed and sets.setdefault((attempt.number, number), agreed[0]) != agreed[0]:
                problems.append(f"{attempt.name}, release {number}: other owners than at other parties")
        else:
            once = all(first == edge for (first, _), edge in zip(ranges, edges, strict=False))
            whole = not complete or edges[-1] == m
        if not whole or not once or count_of(events, "sum") > 1:
            problems.append(f"{attempt.name}, release {number}: input from owners {ranges} of {m}")
    who = f"{records.plan.fewest} of {m} owners at least" if records.plan.dropouts else f"{m} owners"
    return of_problems("every owner's input once", problems, f"{who} in every release")


def _one_noise(records: RunFiles) -> Check:
    problems = [] if records.plan.derived.mechanism.scale else ["the plan has no noise"]
    for attempt in records.all:
        used: Counter[int] = Counter()
        for number, events in attempt.releases.items():
            taken = [event["index"] for event in events if event["event"] == "noise"]
            used.update(taken)
            kinds = kinds_of(events)
            adds, sent = kinds.count("add"), "send" in kinds
            if len(taken) > 1 or adds > 1 or (sent and (len(taken) != 1 or adds != 1)):
                problems.append(f"{attempt.name}, release {number}: {len(taken)} noise vectors taken, {adds} added")
            elif taken and taken != [number]:
                problems.append(f"{attempt.name}, release {number}: noise vector {taken[0]} used")
        problems += [f"{attempt.name}: noise vector {k} used {c} times" for k, c in used.items() if c > 1]
    return of_problems("one noise vector per release, never used twice", problems, "one each")


def _order(records: RunFiles) -> Check:
    problems = []
    for attempt, number, events, _ in _releases(records):
        kinds, end = kinds_of(events), len(events)
        last = last_in(kinds, "input")
        for kind in ("sum", "noise", "add"):
            if first_in(kinds, kind, end) < last:
                problems.append(f"{attempt.name}, release {number}: {kind} before the last owner's input")
        if first_in(kinds, "add", end) < first_in(kinds, "noise", -1):
            problems.append(f"{attempt.name}, release {number}: added before noise was taken")
        spent = min(first_in(kinds, kind, end) for kind in ("ledger", "send"))
        if has_barrier(records.plan) and spent < end and not last < first_in(kinds, STAND, spent) < spent:
            problems.append(f"{attempt.name}, release {number}: the ledger line before all parties had all inputs")
    return of_problems("noise after the last owner's input", problems, "in every release")


def _ledger(records: RunFiles) -> Check:
    plan, problems = records.plan, []
    mechanism = plan.derived.mechanism
    for party, (book, lines) in enumerate(zip(records.books, records.ledger_lines, strict=True)):
        spent = Counter(entry.release for entry in book.entries if entry.run == plan.run_id)
        known = set(lines)
        opened: Counter[int] = Counter()
        for attempt in records.attempts[party]:
            for number, events in attempt.releases.items():
                kinds, end = kinds_of(events), len(events)
                sends = kinds.count("send")
                opened[number] += sends
                if sends and not first_in(kinds, "ledger", end) < first_in(kinds, "send", end):
                    problems.append(f"{attempt.name}, release {number}: opened before its ledger line")
                for event in events:
                    if event["event"] == "ledger" and event["line"] not in known:
                        problems.append(f"{attempt.name}, release {number}: its ledger line is not in the ledger")
        for number, count in opened.items():
            if count > spent[number]:
                problems.append(f"party {party}, release {number}: opened {count} times, {spent[number]} ledger lines")
        if any(entry.run == plan.run_id and entry.mechanism != mechanism for entry in book.entries):
            problems.append(f"party {party}: its ledger names another mechanism than the plan")
    written = max(sum(entry.run == plan.run_id for entry in book.entries) for book in records.books)
    fine = f"{number_of(written, 'line')} of this run, chains unbroken"
    return of_problems("ledger line before every opening", problems, fine)


def _openings(records: RunFiles) -> Check:
    problems = []
    for attempt in records.all:
        skipped = {event["of"] for event in attempt.events if event["event"] == SKIPPED}
        skipped -= attempt.releases.keys()  # what was made was not
        due = _next(int(attempt.start.get("first_release", 0)), skipped)
        for number, events in attempt.releases.items():
            kinds = kinds_of(events)
            sends, opens = kinds.count("send"), kinds.count("open")
            if number != due:
                problems.append(f"{attempt.name}: release {number} where {due} was due")
            if sends > 1 or opens > 1 or opens > sends:
                problems.append(f"{attempt.name}, release {number}: sent {sends} times, opened {opens} times")
            due = _next(number + 1, skipped)
        if attempt.ended and due != records.plan.releases:
            problems.append(f"{attempt.name}: ended after {due} of {records.plan.releases} releases")
    return of_problems(
        "each release opened once, in order",
        problems,
        number_of(records.plan.releases, "release planned", "releases planned"),
    )


def _next(release: int, skipped: set[int]) -> int:
    while release in skipped:
        release += 1
    return release
