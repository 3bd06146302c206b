"""The ledger of a process that sends vectors, or adds them up, and has no party of its own that would write one.

A line is on disk before anything of a release leaves, so what is sent counts here whatever becomes of it. Of several
releases one that was sent and never opened is left out of the run, and its line stays. A run of one release would be
lost with it, also where an owner or a party died before anybody could open a sum. So there what is on disk first says
that the parties may make the release (`Ledger.goes_on`): it counts as spent until another attempt begins, which all
parties begin together. That attempt has the release again only where no party has a line of it; and to open a sum takes
the shares of more parties than may conspire, each of which has a line before its share leaves. Where it was opened, its
own line follows when the sum is here, or the next attempt begins after it and says so.
"""

import contextlib
import secrets
from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of, held_against, reservation_of
from dpmpc.aggregation.wire.frames import TOKEN_BYTES
from dpmpc.errors import UsageError
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget, reserved
from dpmpc.privacy.ledger import Ledger
from dpmpc.processes.closing import Closing


class OwnLedger(Closing):
    """An open ledger with what is reserved in it for one attempt at a plan: a line on disk before a share leaves."""

    def __init__(
        self, path: Path, plan: Plan, attempt: Attempt, budget: Budget | None, account: Account | None, who: str = ""
    ) -> None:
        """`attempt` AGREED: it is agreed on later; `spent` releases have a line by now. Errors: UsageError for a ledger
        in use, one that has the attempt's releases already, a budget that does not suffice."""
        self._plan, self._stack, self.account = plan, contextlib.ExitStack(), account
        self._attempt: Attempt | None = None
        self._last = -1  # the last release that has a line
        self._alone = attempt == AGREED and plan.releases == 1 and not plan.dropouts
        self._before = -1  # the last attempt that may have made its one release, by what is known here
        with contextlib.ExitStack() as opening:
            self._ledger = opening.enter_context(Ledger(path, who or None))
            known = min(spent_releases(path, plan.run_id), plan.releases)
            self.spent = known if attempt == AGREED else 0
            mine = replace(attempt, first_release=max(self.spent, attempt.first_release))
            held = reserved(self._ledger, reservation_of(plan, mine), held_against(budget, account), account)
            self._held = opening.enter_context(held)
            known_of = [span.entry for span in Ledger.read(path).open if span.entry.run == plan.run_id]
            self._before = max((entry.attempt for entry in known_of), default=-1)
            self._stack = opening.pop_all()

    def spend(self, attempt: Attempt, release: int, token: str = "") -> None:
        """A line for the release, once; on disk when this returns. Before the first one the attempt is noted, with the
        `token` of its parties, or a new one. Errors: UsageError for a release beyond the budget."""
        self._begin(attempt, release, token)
        if release > self._last:  # else its vectors were refused, and come again
            self._ledger.append(entry_of(self._plan, attempt, release))
            self._last = release

    def sends(self, attempt: Attempt, release: int, token: str) -> None:
        """Vectors of the release are about to go to the parties: it counts from now on. Errors: as of `spend`; parties
        that know less of the run than is known here."""
        if not self._alone:
            self.spend(attempt, release, token)
        elif self._attempt is None:
            if attempt.number <= self._before:
                raise UsageError(
                    f"an attempt is made once; {self._ledger.path} knows of number {self._before} of run "
                    f"{self._plan.run_id}, and the parties begin number {attempt.number}; restore their folders",
                    code="over",
                )
            self._begin(attempt, release, token)
            entry = entry_of(self._plan, attempt, release)
            self._held.check(entry)
            self._ledger.goes_on(entry, range(self._plan.parties))

    def opened(self, release: int) -> None:
        """The release whose vectors were sent is opened: it has its line when this returns."""
        if self._alone and self._attempt is not None and release > self._last:
            self._ledger.append(entry_of(self._plan, self._attempt, release), checked=True)
            self._last = release

    def _begin(self, attempt: Attempt, release: int, token: str) -> None:
        if self._attempt is None:
            self._attempt = attempt
            self._held.begin(entry_of(self._plan, attempt, release, token=token or secrets.token_hex(TOKEN_BYTES)))

    def end(self) -> None:
        """All releases are made: the account has what was spent, so that its head can be shown."""
        self._held.end()

    def close(self) -> None:
        """Gives back what is not used; the account has what was."""
        self._stack.close()
