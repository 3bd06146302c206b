"""One party of a run: connect, make noise ahead, then one release after another (`release`). Semi-honest.

A party process sees shares, public parameters and opened releases; never an owner's vector, a noise value or the plain
sum. Everything it does to a release is in its transcript, and the ledger line is on disk before the first message of
the opening is sent.
"""

import asyncio
import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from dpmpc.aggregation.party.behind import behind
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.noise_source import about_noise, noise_source
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.release import MakeStep, Observer, ReleaseSteps, Skipped, Step, release, unobserved
from dpmpc.aggregation.party.resume import check_attempt
from dpmpc.aggregation.party.resuming_gate import ResumingGate
from dpmpc.aggregation.party.start import PartyStart, reserved_for, standing_of
from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT
from dpmpc.aggregation.plan.barrier import count_barrier
from dpmpc.aggregation.plan.check_figures import count_checks, owners_line
from dpmpc.aggregation.plan.decided import count_decisions
from dpmpc.aggregation.plan.identities import greeting
from dpmpc.aggregation.plan.names import named_errors, noted
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of, reservation_of
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.aggregation.wire.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.wire.traffic import Traffic
from dpmpc.aggregation.wire.transcript import ABORT, OpenedVectors, Transcript
from dpmpc.errors import CheatError, PeerError, UsageError
from dpmpc.mpc.contract.backend import BACKENDS, Holder, Remembers, Share, Spares, ToleratesLoss
from dpmpc.mpc.transport.abort_reason import public_reason, was_away
from dpmpc.mpc.transport.addresses import inherited
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.in_memory import InMemory
from dpmpc.mpc.transport.link import LINKS, part
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import FRAME_COST, Peer
from dpmpc.noise.draw import batches_of
from dpmpc.noise.pool import CAPACITY, fills
from dpmpc.privacy.budget import reserved
from dpmpc.privacy.heads import Memory
from dpmpc.privacy.ledger import Ledger
from dpmpc.processes.logs import heard
from dpmpc.processes.memory import peak_memory
from dpmpc.processes.status import LEFT_OUT, Status, status_path
from dpmpc.processes.supervisor import run_here
from dpmpc.processes.worker import Emit, Log

NO_COST = PartyCost(0, 0, 0, 0, 0, 0.0, 0.0, 0)
_KEPT = 4  # plans that are worked out
worked_out: dict[str, Plan] = {}  # by their text: by `work_out`, here or in the process that this one was forked from
_BESIDES = 1 << 22  # bytes that a backend may send besides what it counts: keys, their proofs, ends


def serve(*, job: dict[str, Any], emit: Emit, log: Log) -> None:
    """The role of a party's process."""
    run_here(lambda: run_party(PartyJob.from_json(job, worked_out), log, emit))


async def run_party(
    job: PartyJob,
    log: Log,
    emit: Emit,
    observe: Observer = unobserved,
    make_step: MakeStep = release,
    within: InMemory | None = None,
    make_gate: Callable[..., OwnerGate] | None = None,
) -> None:
    """Returns when the run is over. `observe` is told of every stage of every release; `make_step` makes what does a
    release. `within`: the connection with the owner of this process, if there is one. `make_gate` makes the end of the
    connections with owners, by default the one that suits the plan. How far the run is stands in `job.out`, for
    `dpmpc status`.

    Errors: PeerError when another process leaves, UsageError for a taken port or ledger, or an exceeded budget. The
    others are told why, as far as it is public."""
    called = job.plan.called
    path, name = status_path(job.out, f"party_{job.index}"), called(f"party {job.index}")
    with Status(path, name, job.plan.run_id, job.plan.releases) as status, named_errors(called):
        lines, events = noted(status, log, emit, called)
        await _run(job, lines, events, observe, make_step, within, make_gate, status.refresh)


async def _run(
    job: PartyJob,
    log: Log,
    emit: Emit,
    observe: Observer,
    make_step: MakeStep,
    within: InMemory | None,
    make_gate: Callable[..., OwnerGate] | None,
    each_beat: Callable[[], None],
) -> None:
    plan, attempt, i = job.plan, job.attempt, job.index
    sockets = (None, None) if job.sockets is None else tuple(inherited(number) for number in job.sockets)
    traffic = Traffic()
    holder = BACKENDS[plan.backend].holder(i, plan.parties, plan.threshold, plan.session_id(attempt), traffic)
    holder.use_threads(job.here.threads or 1)
    if isinstance(holder, Remembers):
        holder.remember(job.out)

    def say(text: str) -> None:
        log(text)
        emit("stage", text=text)

    # A process that somebody starts on a machine of its own waits for what that machine lacks yet; of one command's
    # processes none does, as who gave it looks on.
    patience = job.here.patience if job.tolerates_loss else 0.0
    heartbeat = Heartbeat(job.here.stall, say)
    heartbeat.each_beat = each_beat
    tls = None if job.here.tls is None else await Tls.valid(job.here.tls, f"party{i}", patience, heartbeat.lack)
    make_gate = make_gate or (ResumingGate if plan.dropouts else OwnerGate)
    memory = None if job.account is None else Memory(job.account.folder / "peers", plan.data_id)
    gate = make_gate(plan, attempt, holder, heartbeat=heartbeat, log=say, secret=job.secret, memory=memory)
    sites = b"" if tls is None else tls.digest
    gate.behind = behind(plan, job.out, i, memory, sites) if attempt == AGREED else {}
    beside = [] if within is None else [within.name]
    emit("connections", of=lambda: list(map(plan.called, [*heartbeat.connected, *beside])))
    try:
        gate.says = job.says
        if within is not None:
            gate.join(within)
        await gate.listen(job.owner_addresses[i], tls, sockets[1], patience)
        log(
            f"party {i} of {plan.parties}, threshold {plan.threshold}, run {plan.run_id}, "
            f"{'' if attempt == AGREED else f'attempt {attempt.number}, '}plan {plan.digest(attempt).hex()[:16]}"
        )
        if plan.checks_owners:
            log(owners_line(plan))
        link = LINKS[job.link](i, job.addresses, tls=tls, bound=sockets[0], heartbeat=heartbeat)
        if isinstance(link, TcpLink):
            link.says, link.patience = job.says + ("" if tls is None else tls.says), patience
        beginning = PartyStart(
            job, holder, gate, link, greeting(plan, attempt, job.secret, sites), tls, log, heartbeat, say
        )
        body = _serve(beginning, traffic, emit, observe, make_step)
        await first_of(body, holder.lost, gate.lost)
    except BaseException as error:
        gate.turn_away()
        why = was_away(f"party {i}", error, heartbeat.away, job.here.stall)
        await part([*holder.connections(), *gate.connections()], public_reason(f"party {i}", why))
        if why is not error:
            raise why from None
        raise
    finally:
        heartbeat.stop()
        gate.abandon()
        holder.abandon()
        for bound in sockets:
            if bound is not None:
                bound.close()  # nobody listened on it, where a run ended early or has one party
        await asyncio.sleep(0)


async def first_of(body: Coroutine[Any, Any, None], *lost: "asyncio.Future[None]") -> None:
    """Runs `body` to its end, or until one of the futures `lost` fails; then its error is raised and `body`
    cancelled."""
    task = asyncio.ensure_future(body)
    try:
        await asyncio.wait([task, *lost], return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:  # its files are closed before whoever cancelled goes on
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    if not task.done():
        failed = [each.exception() for each in lost if each.done() and not each.cancelled()]
        task.cancel(failed[0] if failed else None)  # what it tells those it has just met is this
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for future in lost:
            if future.done():
                future.result()
    task.result()


async def _serve(beginning: PartyStart, traffic: Traffic, emit: Emit, observe: Observer, make_step: MakeStep) -> None:
    job, holder, gate, log = beginning.job, beginning.holder, beginning.gate, beginning.log
    plan, i = job.plan, job.index
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger(ledger_path(job.out, i)))
        found = standing_of(job)
        coming = reserved_for(job, found)
        mine = reservation_of(plan, coming)
        held = stack.enter_context(reserved(ledger, mine, None if found.over else job.budget, job.account))
        check_attempt(plan, coming, transcript_path(job.out, i))
        transcript = stack.enter_context(contextlib.closing(Transcript(transcript_path(job.out, i))))
        stack.push(functools.partial(_note_abort, transcript, holder))
        opened = stack.enter_context(contextlib.closing(OpenedVectors(opened_path(job.out, i))))
        if found.over:
            emit("begin", phase="over", first=plan.releases)
            emit("stage", text="the run is over; owners that missed its end can have it here")
            await beginning.attend(found.attempts - 1, NO_COST, set(found.delivered), transcript)
            return
        emit("begin", phase="connecting")

        def left_out(others: list[int]) -> None:
            ledger.goes_on(entry_of(plan, coming, coming.first_release), others)
            text = (
                f"left out: parties {', '.join(map(str, others))} go on with the run, or have finished it, without this"
                " party, which was away; nothing is to be done: it waits for the end, and takes part again when all are"
                " started again"
            )
            log(text)
            emit("stage", text=text, phase=LEFT_OUT)

        beginning.goes_on = left_out
        attempt = await beginning.meet(found, transcript, opened)
        if attempt is None:
            await beginning.ended_without(found, transcript, opened)
            return
        emit("begin", phase="connecting", first=attempt.first_release)
        held.begin(entry_of(plan, attempt, attempt.first_release, token=gate.token.hex()))
        left = plan.releases - attempt.first_release
        largest, room = frames_due(plan, left)
        for connection in holder.connections():
            if isinstance(connection, Peer):
                connection.admit(largest, room)
        log(f"connected with all {plan.owners} owners" if not plan.dropouts else "connected with enough owners")
        steps = ReleaseSteps(
            plan, attempt, holder, gate, noise_source(plan, holder, left), ledger, transcript, opened, traffic, observe,
            log,
        )  # fmt: skip
        if isinstance(holder, ToleratesLoss):
            holder.on_gone = partial(_note_loss, steps, log, beginning.heartbeat)
            stack.callback(setattr, holder, "on_gone", _nobody_told)  # others leave when this party's files are closed
        cost = await _release_all(steps, make_step(steps), job.tolerates_loss, emit, log)
        held.end()  # before owners show the heads of their accounts, which are this one at a site
        if job.attempt == AGREED:
            await _close(holder, job.here.stall, beginning.say)  # each then waits for whom it has to
            await beginning.attend(attempt.number, cost, set(), transcript)
        else:
            await gate.finish(cost)
            await _close(holder, job.here.stall, beginning.say)
        log("end")


async def _close(holder: Holder[Share], stall: float, say: Callable[[str], None]) -> None:
    """Parts with the other parties; says which of them did not."""
    if silent := await holder.close(stall):
        whom = f"{'party' if len(silent) == 1 else 'parties'} {', '.join(map(str, silent))}"
        say(
            f"{whom} did not say that all is there: ended, or not heard of for {stall:g} s, stall; all releases were "
            "opened, and the end does not wait for more"
        )


async def _release_all(steps: ReleaseSteps, step: Step, tolerates_loss: bool, emit: Emit, log: Log) -> PartyCost:
    """Makes the noise, then every release that is left; what that cost. `tolerates_loss`: whether parties may be lost
    once
    the noise is there."""
    plan, holder, gate, first = steps.plan, steps.holder, steps.gate, steps.attempt.first_release
    left = plan.releases - first
    about = f", {text}" if (text := about_noise(plan, left)) else ""
    emit("stage", text=(f"making noise for {left} releases" if plan.pool else "ready") + about, phase="making noise")
    begin = time.perf_counter()
    if plan.pool:
        await steps.source.fill()
    offline = time.perf_counter() - begin
    log(f"noise made ahead for {steps.source.made} releases in {offline:.3f} s")
    needs_all = plan.checks_owners or plan.derived.decision is not None
    if tolerates_loss and isinstance(holder, ToleratesLoss) and not needs_all:
        holder.tolerate_loss()
    gate.announce(holder.bytes_sent + gate.bytes_sent)
    emit("begin", phase="releasing")
    debugs = heard("debug")
    begin = time.perf_counter()
    for number in range(first, plan.releases):
        try:
            opened = await step(number)
        except Skipped:
            await steps.skip(number)
            log(f"release {number} is skipped: nobody's shares came")
        else:
            steps.publish(number, opened)
        emit("release", done=number + 1)
        if debugs:
            log(f"debug: release {number} opened")
    online = time.perf_counter() - begin
    steps.end(left)
    log(f"{left} releases opened in {online:.3f} s")
    emit("stage", text=f"{left} release{'s' if left != 1 else ''} opened")
    return PartyCost(
        bytes_to_parties=holder.bytes_sent,
        bytes_to_owners=gate.bytes_sent,
        bytes_received=holder.bytes_received + gate.bytes_received,
        offline_rounds=holder.rounds - steps.rounds,
        online_rounds=steps.rounds,
        offline_s=offline,
        online_s=online,
        peak_memory=peak_memory(),
    )


def _nobody_told(party: int, error: PeerError) -> None:
    """Hears that a party has left, and does nothing."""


def _note_loss(steps: ReleaseSteps, log: Log, heartbeat: Heartbeat, party: int, error: PeerError) -> None:
    steps.note_loss(party)
    if seconds := heartbeat.away:  # the others have left this one, which ends for that
        log(f"party {party} has gone on, or ended, while this party was away for {seconds:.0f} s")
    else:
        log(f"the run goes on without party {party}: {error.message}")


def _note_abort(
    transcript: Transcript, holder: Holder[Share], kind: object, error: BaseException | None, trace: object
) -> None:
    """A failed check of the parties is final: the transcript has it, and no later attempt begins, also where what ends
    this one is heard first: that the cheat has gone."""
    seen = error if isinstance(error, CheatError) else getattr(holder, "over", None)
    if seen is not None:
        transcript.note(ABORT, why=str(seen))
        transcript.flush()


def frames_due(plan: Plan, vectors: int) -> tuple[int, int]:
    """(bytes of the longest frame, bytes of all frames with what each costs) that one party may send another for the
    rest of a run: what its backend counts, and what it says besides of keys and ends."""
    backend, n, t, d = BACKENDS[plan.backend], plan.parties, plan.threshold, plan.dimension
    due = [(vectors, backend.count_opening(d, n, t))]
    if plan.derived.mechanism.scale:
        draws = Counter(fills(vectors, plan.drawn, CAPACITY if plan.pool else plan.drawn))
        batches = Counter[int]()
        for size, times in draws.items():
            for batch in batches_of(backend, plan.derived.sampler, size * plan.drawn, n, t):
                batches[batch] += times
        due += [(times, backend.count_noise(plan.derived.sampler, b, n, t)) for b, times in batches.items()]
    besides = count_barrier(plan), *count_checks(plan), *count_decisions(plan, plan.derived.decision)
    due += [(vectors, counts) for counts in besides]
    largest = max(max(counts.bytes_sent, default=0) for _, counts in due) + _BESIDES
    room = sum(times * max(counts.bytes_with_headers(FRAME_COST), default=0) for times, counts in due)
    if isinstance(backend, Spares):  # shares that are sent again for those who lost a party
        room += 2 * n * (8 * d + FRAME_COST)
    return largest, room + 4 * _BESIDES


def work_out(text: str) -> None:
    """Reads and derives the plan `text` and writes its programs, which this process then knows, and so do parties that
    are forked from it. Public numbers alone go in. Each party still compares digests with all others, owners too, who
    derive the plan themselves."""
    plan = Plan.from_text(text)
    frames_due(plan, plan.releases)
    plan.digest(FIRST_ATTEMPT)
    while len(worked_out) >= _KEPT:
        del worked_out[next(iter(worked_out))]
    worked_out[text] = plan


def check_index(plan: Plan, index: int) -> None:
    """Errors: UsageError for a number that no party of the plan has."""
    if not 0 <= index < plan.parties:
        raise UsageError(
            f"<<index>> must be below the number of parties; got {index} for {plan.parties}; mend "
            f"<<index>> or <<parties>>",
            code="range",
        )
