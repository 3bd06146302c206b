"""The releases of a plan, one after another, at the owners of this process: the one loop that opens sums.

Every way to run a plan comes here: training, questions, a survey, an evaluation, a synthetic table, a fit; with parties
of this machine, of others or beside the owner. They differ in what the owners send and in what becomes of a sum
(`Sends`), and in where the parties are (`Seat`), not in the order of steps. Each opened sum is in this process's folder
before anything is made of it, and what is made of the last one is kept before the parties hear that it is here, where
they can be asked again; so a process that dies at any point finds what was paid for when it comes again (`resume`).
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.ending import Ending
from dpmpc.aggregation.owner.opens_sums import OpensSums, Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.noise_source import about_noise
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.aggregation.wire.transcript import OpenedVectors
from dpmpc.errors import SpentError
from dpmpc.run.files import OWNERS_OPENED
from dpmpc.run.forecast import forecast_of
from dpmpc.run.opening import AsSeveral, connected
from dpmpc.run.owners import Ended, Made, Opens, Sends
from dpmpc.run.resume import Since
from dpmpc.run.seat import Seat


def releases(
    plan: Plan,
    owners: Sends,
    seat: Seat,
    since: Since,
    *,
    keeps: Callable[[Ended], None],
    ends: contextlib.ExitStack | None = None,
) -> Ended:
    """Makes the releases of a plan that are left, and returns what became of them. `since`: what earlier attempts left.
    `keeps`: writes down what comes of them. `ends`: the parties take leave while others go on, and are gone at the end
    of this stack.

    Errors: SpentError where all releases are spent and none was opened; as of `connected` and of releases."""
    emit = owners.hears
    taken, seconds, last = 0, list[float](), None
    for number in sorted(since.known):
        last = Release(number, since.known[number], 0, since.present.get(number))
        owners.takes(last, None)
        taken += 1
    _check_left(plan, since.attempt.first_release, taken)
    with contextlib.ExitStack() as outer:
        mine = None if seat.out is None else OpenedVectors(seat.out / OWNERS_OPENED)
        kept = None if mine is None else outer.enter_context(contextlib.closing(mine))
        ledger = None if seat.own_ledger is None else outer.enter_context(
            OwnLedger(
                seat.own_ledger, plan, since.attempt, seat.books.budget, seat.books.account(plan), seat.called
            )
        )  # fmt: skip
        if plan.parties:
            emit("stage", text="connecting", phase="connecting")
        with contextlib.ExitStack() as stack:
            aggregator = stack.enter_context((owners.opens or _connected(plan, seat, emit))(since, ledger))
            emit("stage", text=_noise_ahead(plan, seat, since.attempt), phase="making noise")
            aggregator.wait_for_noise()
            sent = aggregator.session.bytes_before
            emit("ready", sent=sent)
            emit("stage", text=owners.doing, phase="releasing")
            while several := aggregator.catch_up():  # others go on meanwhile
                for last in several:
                    if kept is not None:
                        kept.append(last.number, last.total)
                    owners.takes(last, None)
                    taken, sent = taken + 1, max(sent, last.bytes_sent)
            _check_left(plan, aggregator.session.next, taken)
            attempt, first = aggregator.session.attempt, aggregator.session.next
            if attempt.number:
                seat.say(f"attempt {attempt.number} goes on with release {first}; {taken} were opened before")
            for number in range(first, plan.releases):
                begin = time.perf_counter()
                last = aggregator.open(owners.vectors())
                if kept is not None:
                    kept.append(number, last.total)
                seconds.append(time.perf_counter() - begin)
                emit("release", done=number + 1)
                owners.takes(last, Made(seconds[-1], last.bytes_sent - sent))
                sent = last.bytes_sent
            assert last is not None

            def outcome(costs: Sequence[PartyCost]) -> Ended:
                session = aggregator.session
                return Ended(session.attempt, last, seconds, taken, costs, session.parties_lost)

            if ends is not None:
                assert isinstance(aggregator, Aggregator)
                result = outcome(())
                keeps(result)
                stack.enter_context(Ending(aggregator))
                ends.push(stack.pop_all())
                return result
            comes_again = since.attempt == AGREED
            if comes_again:
                keeps(outcome(aggregator.costs()))
            result = outcome(aggregator.finish())
            if seat.parties is not None:
                seat.parties.wait()
            if not comes_again:
                keeps(result)
    return result


def _connected(plan: Plan, seat: Seat, emit: Callable[..., None]) -> Opens:
    def opens(since: Since, ledger: OwnLedger | None) -> contextlib.AbstractContextManager[OpensSums[Any]]:
        if seat.processes:
            return AsSeveral(plan, seat, since.attempt)
        aggregator = connected(plan, seat, since.attempt, ledger)
        emit("connections", of=lambda: list(map(plan.called, aggregator.session.connected)))
        return aggregator

    return opens


def _check_left(plan: Plan, first: int, taken: int) -> None:
    """Errors: SpentError for a run that can open nothing more, and of which nothing is known."""
    if first >= plan.releases and not taken:
        which = "its release is" if plan.releases == 1 else f"all {plan.releases} releases are"
        none = "was not opened" if plan.releases == 1 else "none was opened"
        raise SpentError(
            f"a run goes on within its budget; {which} spent and {none}; start a new run, with a budget of its own"
        )


def _noise_ahead(plan: Plan, seat: Seat, attempt: Attempt) -> str:
    """What is said while noise is made, or the others are waited for."""
    left, alone = plan.releases - attempt.first_release, seat.addresses is None
    expected = forecast_of(plan, left, here=alone) or about_noise(plan, left)
    return f"making noise: {expected}" if expected else "starting" if alone else "meeting the others"
