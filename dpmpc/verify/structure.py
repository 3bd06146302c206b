"""First line of evidence: the parties' transcripts of a run, held against the protocol and against each other.

A transcript is written by the party itself. What that can show and what not is in docs/verify.md; in short: an event
that involves a message is told by both of its ends, and one that does not (a local addition) by nobody but the party.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpmpc.aggregation.active import ABORT, CHECKED, batches_due
from dpmpc.aggregation.agreement import message_bytes
from dpmpc.aggregation.asked import Attempt as PlanAttempt
from dpmpc.aggregation.checks import count_checks, security_line
from dpmpc.aggregation.frames import tagged_presence_bytes
from dpmpc.aggregation.owners import REJECTED
from dpmpc.mpc.backend import BACKENDS, Counts, Spares
from dpmpc.mpc.channels import AGAIN, NOISE, OPENING, OWNERS, OWNERS_EACH, PRESENCE
from dpmpc.mpc.security import Checks
from dpmpc.verify.owners import check_owners_events
from dpmpc.verify.records import Attempt, Event, Records, read_records
from dpmpc.verify.verdict import Check, Evidence, of_problems

_STEPS = {"input", "sum", "noise", "add", "ledger", "send", "open", "traffic"}
_KINDS = _STEPS | {ABORT, CHECKED, REJECTED, "present", "lost", "told"}


def check_structure(out: Path) -> Evidence:
    """The verdicts on the run in `out`. Errors: as `read_records`."""
    records = read_records(out)
    checks: tuple[Check, ...] = (
        _one_run(records),
        _inputs(records),
        _one_noise(records),
        _order(records),
        _ledger(records),
        _openings(records),
        _channels(records),
        _noise_traffic(records),
    )
    alone = records.plan.parties - len(records.elsewhere) == 1 < records.plan.parties
    if not alone:  # one end of a connection, and one party, agree with themselves
        checks = (*checks, _both_ends(records), _agreement(records))
    if isinstance(BACKENDS[records.plan.backend], Checks):
        checks = (*checks, _checked(records))
    if records.plan.checks_owners:
        checks = (*checks, check_owners_events(records))
    unfinished = [a.name for a in records.all if not a.ended]
    note = f"{len(records.all)} transcripts"
    if unfinished:
        note += f"; cut short, so that their noise traffic is not counted: {', '.join(unfinished)}"
    if records.elsewhere:
        who = ", ".join(map(str, records.elsewhere))
        note += f"; part of the run: the files of party {who} are elsewhere, and what they say was not compared"
    return Evidence("structure", checks, 0.0, note)


def _releases(records: Records) -> Iterator[tuple[Attempt, int, list[Event], bool]]:
    """(attempt, release, its events, whether it must be complete): only the last one of a cut attempt need not be."""
    for attempt in records.all:
        releases = attempt.releases()
        for number, events in releases.items():
            sent = any(event["event"] in ("send", "open") for event in events)
            yield attempt, number, events, sent or attempt.ended or number != max(releases)


def _count(events: list[Event], kind: str) -> int:
    return sum(event["event"] == kind for event in events)


def _first(events: list[Event], kind: str, default: int) -> int:
    return next((k for k, event in enumerate(events) if event["event"] == kind), default)


def _last(events: list[Event], kind: str) -> int:
    return max((k for k, event in enumerate(events) if event["event"] == kind), default=-1)


def _one_run(records: Records) -> Check:
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


def _inputs(records: Records) -> Check:
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
        if not whole or not once or _count(events, "sum") > 1:
            problems.append(f"{attempt.name}, release {number}: input from owners {ranges} of {m}")
    who = f"{records.plan.fewest} of {m} owners at least" if records.plan.dropouts else f"{m} owners"
    return of_problems("every owner's input once", problems, f"{who} in every release")


def _one_noise(records: Records) -> Check:
    problems = [] if records.plan.derived.mechanism.scale else ["the plan has no noise"]
    for attempt in records.all:
        used: Counter[int] = Counter()
        for number, events in attempt.releases().items():
            taken = [event["index"] for event in events if event["event"] == "noise"]
            used.update(taken)
            adds, sent = _count(events, "add"), _count(events, "send") > 0
            if len(taken) > 1 or adds > 1 or (sent and (len(taken) != 1 or adds != 1)):
                problems.append(f"{attempt.name}, release {number}: {len(taken)} noise vectors taken, {adds} added")
            elif taken and taken != [number]:
                problems.append(f"{attempt.name}, release {number}: noise vector {taken[0]} used")
        problems += [f"{attempt.name}: noise vector {k} used {c} times" for k, c in used.items() if c > 1]
    return of_problems("one noise vector per release, never used twice", problems, "one each")


def _order(records: Records) -> Check:
    problems = []
    for attempt, number, events, _ in _releases(records):
        last = _last(events, "input")
        for kind in ("sum", "noise", "add"):
            if _first(events, kind, len(events)) < last:
                problems.append(f"{attempt.name}, release {number}: {kind} before the last owner's input")
        if _first(events, "add", len(events)) < _first(events, "noise", -1):
            problems.append(f"{attempt.name}, release {number}: added before noise was taken")
    return of_problems("noise after the last owner's input", problems, "in every release")


def _ledger(records: Records) -> Check:
    plan, problems = records.plan, []
    mechanism = plan.derived.mechanism
    for party, (book, lines) in enumerate(zip(records.books, records.ledger_lines, strict=True)):
        spent = Counter(entry.release for entry in book.entries if entry.run == plan.run_id)
        known = set(lines)
        opened: Counter[int] = Counter()
        for attempt in records.attempts[party]:
            for number, events in attempt.releases().items():
                sends = _count(events, "send")
                opened[number] += sends
                if sends and not _first(events, "ledger", len(events)) < _first(events, "send", len(events)):
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
    fine = f"{written} lines of this run, chains unbroken"
    return of_problems("ledger line before every opening", problems, fine)


def _openings(records: Records) -> Check:
    problems = []
    for attempt in records.all:
        due = int(attempt.start.get("first_release", 0))
        for number, events in attempt.releases().items():
            sends, opens = _count(events, "send"), _count(events, "open")
            if number != due:
                problems.append(f"{attempt.name}: release {number} where {due} was due")
            if sends > 1 or opens > 1 or opens > sends:
                problems.append(f"{attempt.name}, release {number}: sent {sends} times, opened {opens} times")
            due = number + 1
        if attempt.ended and due != records.plan.releases:
            problems.append(f"{attempt.name}: ended after {due} of {records.plan.releases} releases")
    return of_problems("each release opened once, in order", problems, f"{records.plan.releases} releases planned")


def _channels(records: Records) -> Check:
    plan, problems = records.plan, []
    due = BACKENDS[plan.backend].count_opening(plan.dimension, plan.parties, plan.threshold)
    checks, none = count_checks(plan), (0,) * plan.parties
    for attempt in records.all:
        seen: Counter[int] = Counter()
        opened = {r for r, events in attempt.releases().items() if _count(events, "open")}
        for event in attempt.traffic:
            channel = event["channel"]
            seen[channel] += 1
            if NOISE <= channel < OWNERS:
                continue  # noise: counted by the next check
            if OWNERS <= channel < PRESENCE:
                release, k = divmod(channel - OWNERS, OWNERS_EACH)
                counts = checks[k] if k < len(checks) and release < plan.releases else Counts()
                wanted = (counts.messages_sent or none)[attempt.party], (counts.bytes_sent or none)[attempt.party]
                if _sent(event) != wanted and attempt.ended:
                    problems.append(f"{attempt.name}, release {release}: other frames than the checks of owners")
                continue
            if plan.dropouts and channel - PRESENCE in range(plan.releases):
                frames, size = _sent(event)
                each = (message_bytes(plan), tagged_presence_bytes(plan))
                if size not in [frames * one for one in each]:
                    problems.append(f"{attempt.name}, release {channel - PRESENCE}: other frames than who is present")
                continue
            if _lost(attempt) and (release := channel - AGAIN - OPENING) in opened:
                if not _again(records, attempt, event, due):
                    problems.append(f"{attempt.name}, release {release}: other frames than the shares")
                continue
            if channel - OPENING not in opened:
                problems.append(f"{attempt.name}: frames on channel {channel}, which no protocol uses")
                continue
            wanted = due.messages_sent[attempt.party], due.bytes_sent[attempt.party]
            if _sent(event) != wanted and not _without_lost(records, attempt, event, wanted):
                problems.append(f"{attempt.name}, release {channel - OPENING}: other frames than the shares")
        problems += [
            f"{attempt.name}, release {r}: {len(checks)} channels of the checks of owners were due"
            for r in sorted(opened)
            if attempt.ended and any(OWNERS + OWNERS_EACH * r + k not in seen for k in range(len(checks)))
        ]
        problems += [f"{attempt.name}: channel {c} used {k} times" for c, k in seen.items() if k > 1]
        problems += [
            f"{attempt.name}, release {r}: opened without a record of its frames"
            for r in sorted(opened)
            if not seen[OPENING + r]
        ]
    fine = f"each party sent at most {max(due.bytes_sent)} bytes of shares a release"
    return of_problems("nothing opened besides the release", problems, fine)


def _lost(attempt: Attempt) -> set[int]:
    """The parties without which it went on."""
    return {int(event["party"]) for event in attempt.events if event["event"] == "lost"}


def _without_lost(records: Records, attempt: Attempt, event: Event, wanted: tuple[int, int]) -> bool:
    """Whether an opening's frames are those that are due, but for parties that have left and are not needed."""
    plan, missing = records.plan, _lost(attempt)
    backend = BACKENDS[plan.backend]
    if not isinstance(backend, Spares) or not wanted[0] or not missing:
        return False
    ended = {i for i in range(plan.parties) if (a := records.attempt(i, attempt.number)) is not None and a.ended}
    frames, size = _sent(event)[0], wanted[1] // wanted[0]
    return (
        not missing & ended
        and len(missing) <= backend.spare(plan.parties, plan.threshold)
        and wanted[0] - len(missing) <= frames <= wanted[0]
        and _sent(event)[1] == frames * size
    )


def _again(records: Records, attempt: Attempt, event: Event, due: Counts) -> bool:
    """Whether these are a party's shares of one opening for those that had not got them: one each at most."""
    plan = records.plan
    size = due.bytes_sent[attempt.party] // max(1, due.messages_sent[attempt.party])
    others = {str(i) for i in range(plan.parties)} - {str(attempt.party)}
    return event["sent"].keys() <= others and all(record[:2] == [1, size] for record in event["sent"].values())


def _sent(event: Event) -> tuple[int, int]:
    """(frames, bytes) that a party's record of a channel says it sent."""
    return sum(record[0] for record in event["sent"].values()), sum(record[1] for record in event["sent"].values())


def _noise_traffic(records: Records) -> Check:
    plan, problems = records.plan, []
    name = "noise made once: its frames as many as prescribed"
    costs: dict[int, Counts] = {}
    batches = 0
    for attempt in records.all:
        if not attempt.ended or plan.parties == 1:
            continue
        due = batches_due(plan, plan.releases - int(attempt.start["first_release"]))
        found = {e["channel"] - NOISE: e for e in attempt.traffic if NOISE <= e["channel"] < OWNERS}
        if sorted(found) != list(range(len(due))):
            problems.append(f"{attempt.name}: {len(found)} noise batches where {len(due)} were due")
            continue
        batches = max(batches, len(due))
        for k, size in enumerate(due):
            if size not in costs:
                costs[size] = BACKENDS[plan.backend].count_noise(
                    plan.derived.sampler, size, plan.parties, plan.threshold
                )
            got = _sent(found[k])
            wanted = costs[size].messages_sent[attempt.party], costs[size].bytes_sent[attempt.party]
            if got != wanted:
                problems.append(f"{attempt.name}, batch {k}: sent {got[0]} frames, {got[1]} bytes; due {wanted}")
    fine = f"{batches} batch(es), frames and bytes as the circuit has it"
    return of_problems(name, problems, fine)


def _checked(records: Records) -> Check:
    """Whether every batch of noise was checked before a vector of it was taken, with one verdict of all parties, and no
    party saw a check fail. The frames of the checks are counted with those of the noise, their digests by both ends."""
    problems, batches = [], 0
    verdicts: dict[tuple[int, int], set[tuple[int, str]]] = {}
    for attempt in records.all:
        judged = [event for event in attempt.events if event["event"] == CHECKED]
        held = [event for event in judged if event["channel"] < OWNERS]  # of noise; the others are of owners' norms
        for event in judged:
            verdicts.setdefault((attempt.number, event["channel"]), set()).add((event["words"], event["digest"]))
        problems += [
            f"{attempt.name}: a check failed: {event.get('why', '')}"
            for event in attempt.events
            if event["event"] == ABORT
        ]
        if not attempt.ended or not records.plan.derived.mechanism.scale:
            continue
        due = batches_due(records.plan, records.plan.releases - int(attempt.start["first_release"]))
        batches = max(batches, len(due))
        if sorted(event["channel"] for event in held) != [NOISE + k for k in range(len(due))]:
            problems.append(f"{attempt.name}: {len(held)} batches were checked where {len(due)} were due")
        first = _first(list(attempt.events), "noise", len(attempt.events))
        if not any(event["event"] == CHECKED and event["channel"] < OWNERS for event in attempt.events[:first]):
            problems.append(f"{attempt.name}: noise taken before a batch was checked")
    problems += [f"channel {c}: parties differ on the verdict" for (_, c), seen in verdicts.items() if len(seen) > 1]
    fine = f"{batches} batch(es), one verdict each; {security_line(records.plan)}"
    return of_problems("parties were checked", problems, fine)


def _both_ends(records: Records) -> Check:
    problems, compared = [], 0
    for number in records.numbers:
        flows: dict[tuple[int, int, int], dict[str, list[Any]]] = {}
        cut, late = set(), set[int]()
        for party in range(records.plan.parties):
            attempt = records.attempt(party, number)
            if attempt and _lost(attempt):  # at the end nobody waits for shares that are not needed
                late |= {base + OPENING + r for base in (0, AGAIN) for r in range(records.plan.releases)[-2:]}
            if attempt is None or not attempt.ended:
                cut.add(party)
            for event in attempt.traffic if attempt else ():
                for way in ("sent", "received"):
                    for peer, record in event[way].items():
                        if not peer.isdigit():
                            problems.append(f"party {party}: frames with a process that is no party")
                            continue
                        ends = (party, int(peer)) if way == "sent" else (int(peer), party)
                        flows.setdefault((event["channel"], *ends), {})[way] = record
        for (channel, sender, receiver), record in flows.items():
            if len(record) < 2 and (cut & {sender, receiver} or (channel in late and "sent" in record)):
                continue
            compared += 1
            if record.get("sent") != record.get("received"):
                problems.append(
                    f"channel {channel}: what party {sender} says it sent is not what party {receiver} received"
                )
    return of_problems("both ends of every connection agree", problems, f"{compared} flows compared by digest")


def _agreement(records: Records) -> Check:
    problems = []
    for number in records.numbers:
        present = [a for i in range(records.plan.parties) if (a := records.attempt(i, number)) is not None]
        for field in ("inputs", "opened"):
            views: dict[int, dict[Any, list[str]]] = {}
            for attempt in present:
                for release, events in attempt.releases().items():
                    view: Any = None
                    if field == "inputs" and _count(events, "send"):
                        view = tuple(tuple(e["owners"]) for e in events if e["event"] == "input")
                    elif field == "opened" and _count(events, "open"):
                        view = tuple(e["digest"] for e in events if e["event"] == "open")
                    if view is not None:
                        views.setdefault(release, {}).setdefault(view, []).append(attempt.name)
            problems += [f"release {r}: parties differ on its {field}" for r, v in views.items() if len(v) > 1]
    told = _opened_digests(records)
    for file, digests in records.opened.items():
        for release, value in digests.items():
            if release in told and value not in told[release]:
                problems.append(f"release {release}: the vector kept by {file} is not the one that was opened")
    return of_problems("all parties agree on what was opened", problems, f"{len(told)} releases")


def _opened_digests(records: Records) -> dict[int, set[str]]:
    result: dict[int, set[str]] = {}
    for attempt in records.all:
        for event in attempt.events:
            if event["event"] == "open":
                result.setdefault(event["release"], set()).add(event["digest"])
    return result
