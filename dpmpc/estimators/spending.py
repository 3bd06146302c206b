"""What fits on the same data spend together: in this process, in its workers, and by name in all runs of this user.

`cross_val_score`, grid searches and loops fit again and again on the same records. Every fit counts in the account of
its `data_id`, and at the second a warning says what all of them come to. A process says a thing once.
"""

import re
import sys
import warnings
from pathlib import Path

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import spelt
from dpmpc.estimators.errors import spelling
from dpmpc.privacy.composition import Spent, run_of, spent
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.seen import UNITS, seen


class PrivacyWarning(UserWarning):
    """Something that the guarantee does not cover, or that costs more of it than one fit."""


def spent_on(account: str | None, plan: Plan) -> tuple[int, Spent]:
    """(how many fits and other runs on the plan's data its account knows, what they have spent)."""
    chosen = Books.kept(account).account(plan)
    assert chosen is not None
    entries = [entry for entry in seen(chosen, None, [plan.data_id]).everything if plan.data_id in entry.data]
    return len({run_of(entry.run) for entry in entries}), spent(entries, plan.data_id, None, plan.neighbours)


_SAID = set[tuple[type[Warning], str]]()  # what this process has warned of: texts without their numbers


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns whoever called this package, of each kind once a process: a search fits a hundred times and would say it as
    often, each time with other numbers, which Python takes for other warnings. What is ignored has not been said."""
    kind = category, re.sub(r"\d[\d.,]*(e[-+]?\d+)?", "#", text)
    if kind in _SAID:
        return
    frame, level = sys._getframe().f_back, 2
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
    if not _ignored(text, category):
        _SAID.add(kind)


def _ignored(text: str, category: type[Warning]) -> bool:
    """Whether the filters that say nothing of modules ignore it."""
    for action, message, kind, module, line in warnings.filters:
        if module is None and not line and issubclass(category, kind) and (message is None or message.match(text)):
            return action == "ignore"
    return False


def warn_of_fits(fits: int, total: Spent, plan: Plan) -> None:
    """Warns what all fits so far have spent on this data, if there were several."""
    if fits < 2:
        return
    warn(
        f"{fits} fits on {plan.data!r} have spent epsilon = {total.epsilon:.4g}, delta = {total.delta:.3g} together "
        f"(each alone: epsilon = {plan.epsilon:.4g}; for {UNITS[plan.neighbours]}), as its account has it, if they saw "
        "the same records; give others another data_id; scores on held-out records are outside the guarantee; later "
        "fits of this process add to it without a word: spent_ of each has the sum",
        PrivacyWarning,
    )


def expect(text: str) -> None:
    """Warns whoever fits of what is to be expected: that noise will swamp the signal, or a column gives the target."""
    warn(f"before anything is spent: {spelt(text.removeprefix('warning: '), spelling)}")


def ledger_of(run: Path) -> tuple[Entry, ...]:
    """The releases that the parties' ledgers in a run directory hold, each counted once."""
    return seen(None, run, ()).everything
