"""Of the parties' transcripts, against each other: both ends of every connection, and what was opened."""

from typing import Any

from dpmpc.errors import number_of
from dpmpc.mpc.transport.channels import AGAIN, OPENING
from dpmpc.verify.events import count_of
from dpmpc.verify.run_files import RunFiles
from dpmpc.verify.verdict import Check, of_problems


def check_both_ends(records: RunFiles) -> Check:
    """Whether what a party says it sent is what the other one says it received, channel by channel, by digest."""
    problems, compared = [], 0
    for number in records.numbers:
        flows: dict[tuple[int, int, int], dict[str, list[Any]]] = {}
        cut, late = set(), set[int]()
        for party in range(records.plan.parties):
            attempt = records.attempt(party, number)
            if attempt and attempt.lost:  # at the end nobody waits for shares that are not needed
                late |= {base + OPENING + r for base in (0, AGAIN) for r in range(records.plan.releases)[-2:]}
            if attempt is None or not attempt.ended:
                cut.add(party)
            for event in attempt.traffic if attempt else ():
                for way in ("sent", "received"):
                    for peer, record in event[way].items():
                        if not peer.isdecimal():
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


def check_agreement(records: RunFiles) -> Check:
    """Whether all parties took the same owners' inputs and opened the same vectors, which are those that were kept."""
    problems = []
    for number in records.numbers:
        present = [a for i in range(records.plan.parties) if (a := records.attempt(i, number)) is not None]
        for field in ("inputs", "opened"):
            views: dict[int, dict[Any, list[str]]] = {}
            for attempt in present:
                for release, events in attempt.releases.items():
                    view: Any = None
                    if field == "inputs" and count_of(events, "send"):
                        view = tuple(tuple(e["owners"]) for e in events if e["event"] == "input")
                    elif field == "opened" and count_of(events, "open"):
                        view = tuple(e["digest"] for e in events if e["event"] == "open")
                    if view is not None:
                        views.setdefault(release, {}).setdefault(view, []).append(attempt.name)
            problems += [f"release {r}: parties differ on its {field}" for r, v in views.items() if len(v) > 1]
    told = _opened_digests(records)
    for file, digests in records.opened.items():
        for release, value in digests.items():
            if release in told and value not in told[release]:
                problems.append(f"release {release}: the vector kept by {file} is not the one that was opened")
    return of_problems("all parties agree on what was opened", problems, number_of(len(told), "release"))


def _opened_digests(records: RunFiles) -> dict[int, set[str]]:
    result: dict[int, set[str]] = {}
    for attempt in records.all:
        for event in attempt.events:
            if event["event"] == "open":
                result.setdefault(event["release"], set()).add(event["digest"])
    return result
