"""Of the parties' transcripts: are frames and bytes those of the plan, and was noise checked where parties are."""

from collections import Counter

from dpmpc.aggregation.party.agreement import message_bytes
from dpmpc.aggregation.plan.active import batches_due
from dpmpc.aggregation.plan.barrier import count_barrier
from dpmpc.aggregation.plan.check_figures import count_checks, security_line
from dpmpc.aggregation.plan.decided import count_decisions
from dpmpc.aggregation.wire.frames import tagged_presence_bytes
from dpmpc.aggregation.wire.transcript import ABORT, CHECKED
from dpmpc.mpc.contract.backend import BACKENDS, Counts, Spares
from dpmpc.mpc.transport.channels import AGAIN, BARRIER, DECIDED, NOISE, OPENING, OWNERS, OWNERS_EACH, PRESENCE
from dpmpc.verify.events import count_of, first_of
from dpmpc.verify.run_files import AttemptEvents, Event, RunFiles
from dpmpc.verify.verdict import Check, of_problems


def check_channels(records: RunFiles) -> Check:
    """Whether every channel but the noise's has the frames and bytes that the plan gives it."""
    plan, problems = records.plan, []
    due = BACKENDS[plan.backend].count_opening(plan.dimension, plan.parties, plan.threshold)
    barrier = count_barrier(plan)
    checks, none = count_checks(plan), (0,) * plan.parties
    decisions = count_decisions(plan, plan.derived.decision)
    for attempt in records.all:
        seen: Counter[int] = Counter()
        barriers: set[int] = set()
        opened = {r for r, events in attempt.releases.items() if count_of(events, "open")}
        for event in attempt.traffic:
            channel = event["channel"]
            seen[channel] += 1
            if NOISE <= channel < OWNERS:
                continue  # noise: counted by the next check
            if DECIDED <= channel < DECIDED + len(decisions):
                counts = decisions[channel - DECIDED]
                if _sent(event) != (counts.messages_sent[attempt.party], counts.bytes_sent[attempt.party]):
                    problems.append(f"{attempt.name}, channel {channel}: other frames than a decision's")
                continue
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
            if attempt.lost and (release := channel - AGAIN - OPENING) in opened:
                if not _again(records, attempt, event, due):
                    problems.append(f"{attempt.name}, release {release}: other frames than the shares")
                continue
            if plan.parties > 1 and (release := channel - BARRIER - OPENING) in range(plan.releases):
                barriers.add(release)
                wanted = (barrier.messages_sent or none)[attempt.party], (barrier.bytes_sent or none)[attempt.party]
                if _sent(event) != wanted and not _without_lost(records, attempt, event, wanted):
                    problems.append(f"{attempt.name}, release {release}: other frames than a barrier's")
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
        if opened and any(DECIDED + k not in seen for k in range(len(decisions))):
            problems.append(f"{attempt.name}: {len(decisions)} channels of decisions were due")
        if any(barrier.messages_sent):
            problems += [f"{attempt.name}, release {r}: opened without a barrier" for r in sorted(opened - barriers)]
        problems += [f"{attempt.name}: channel {c} used {k} times" for c, k in seen.items() if k > 1]
        problems += [
            f"{attempt.name}, release {r}: opened without a record of its frames"
            for r in sorted(opened)
            if not seen[OPENING + r]
        ]
    fine = f"each party sent at most {max(due.bytes_sent)} bytes of shares a release"
    return of_problems("nothing opened besides the release", problems, fine)


def _without_lost(records: RunFiles, attempt: AttemptEvents, event: Event, wanted: tuple[int, int]) -> bool:
    """Whether an opening's frames are those that are due, but for parties that have left and are not needed."""
    plan, missing = records.plan, attempt.lost
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


def _again(records: RunFiles, attempt: AttemptEvents, event: Event, due: Counts) -> bool:
    """Whether these are a party's shares of one opening for those that had not got them: one each at most."""
    plan = records.plan
    size = due.bytes_sent[attempt.party] // max(1, due.messages_sent[attempt.party])
    others = {str(i) for i in range(plan.parties)} - {str(attempt.party)}
    return event["sent"].keys() <= others and all(record[:2] == [1, size] for record in event["sent"].values())


def _sent(event: Event) -> tuple[int, int]:
    """(frames, bytes) that a party's record of a channel says it sent."""
    return sum(record[0] for record in event["sent"].values()), sum(record[1] for record in event["sent"].values())


def check_noise_traffic(records: RunFiles) -> Check:
    """Whether the batches of noise are as many as were due, with the frames and bytes that the backend counts."""
    plan, problems = records.plan, []
    name = "noise made once: its frames as many as prescribed"
    costs: dict[int, Counts] = {}
    batches = 0
    for attempt in records.all:
        if not attempt.ended or plan.parties == 1:
            continue
        due = batches_due(plan, plan.derived.sampler, plan.releases - int(attempt.start["first_release"]))
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


def check_verdicts(records: RunFiles) -> Check:
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
        plan = records.plan
        due = batches_due(plan, plan.derived.sampler, plan.releases - int(attempt.start["first_release"]))
        batches = max(batches, len(due))
        if sorted(event["channel"] for event in held) != [NOISE + k for k in range(len(due))]:
            problems.append(f"{attempt.name}: {len(held)} batches were checked where {len(due)} were due")
        first = first_of(list(attempt.events), "noise", len(attempt.events))
        if not any(event["event"] == CHECKED and event["channel"] < OWNERS for event in attempt.events[:first]):
            problems.append(f"{attempt.name}: noise taken before a batch was checked")
    problems += [f"channel {c}: parties differ on the verdict" for (_, c), seen in verdicts.items() if len(seen) > 1]
    fine = f"{batches} batch(es), one verdict each; {security_line(records.plan)}"
    return of_problems("parties were checked", problems, fine)
