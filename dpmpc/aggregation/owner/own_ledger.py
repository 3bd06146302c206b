"""The ledger of a process that sends vectors, or adds them up, and has no party of its own that would write one."""

import contextlib
import secrets
from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.party.resume import spent_releases
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of, held_against, reservation_of
from dpmpc.aggregation.wire.frames import TOKEN_BYTES
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
        with contextlib.ExitStack() as opening:
            self._ledger = opening.enter_context(Ledger(path, who or None))
            known = min(spent_releases(path, plan.run_id), plan.releases)
            self.spent = known if attempt == AGREED else 0
            mine = replace(attempt, first_release=max(self.spent, attempt.first_release))
            held = reserved(self._ledger, reservation_of(plan, mine), held_against(budget, account), account)
            self._held = opening.enter_context(held)
            self._stack = opening.pop_all()

    def spend(self, attempt: Attempt, release: int, token: str = "") -> None:
        """A line for the release, once; on disk when this returns. Before the first one the attempt is noted, with the
        `token` of its parties, or a new one. Errors: UsageError for a release beyond the budget."""
        if self._attempt is None:
            self._attempt = attempt
            self._held.begin(entry_of(self._plan, attempt, release, token=token or secrets.token_hex(TOKEN_BYTES)))
        if release > self._last:  # else its vectors were refused, and come again
            self._ledger.append(entry_of(self._plan, attempt, release))
            self._last = release

    def end(self) -> None:
        """All releases are made: the account has what was spent, so that its head can be shown."""
        self._held.end()

    def close(self) -> None:
        """Gives back what is not used; the account has what was."""
        self._stack.close()
