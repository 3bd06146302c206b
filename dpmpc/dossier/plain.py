"""The first pages of a report, in plain words: for who answers for the records, and reads no formula."""

import math
from collections.abc import Callable

from dpmpc.aggregation.plan.derive import spent_before
from dpmpc.aggregation.plan.guarantee import ideal
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.dossier.facts import Facts
from dpmpc.dossier.words import before, caught
from dpmpc.errors import number_of
from dpmpc.learning.task import TASKS
from dpmpc.privacy.composition import spending_of
from dpmpc.statistics.tables import Tables

FALSE_ALARMS = (1.0, 5.0)  # in 100
FEW = 30  # records; of an owner with fewer nobody should say that nothing can be learned about it
_DELTAS = (*(k / 40 for k in range(39, 4, -1)), *(10.0 ** (-k / 4) for k in range(4, 53)))  # down to 1e-13


def hits(plan: Plan, wrongly: float) -> float:
    """How often, in 100 cases, the best test for one change is right that is wrong in `wrongly` of 100.

    Guarantees: for every delta the run keeps (epsilon(delta), delta), each of which bounds every test (`caught`); the
    least of these bounds holds. It is the run's own trade-off curve, read at one place, from above.
    """
    spending = spent_before(plan) + spending_of(ideal(plan), plan.releases)
    return least(spending.epsilon, wrongly, pure=spending.pure + 2 * spending.log_ratio if not spending.rho else None)


def least(epsilon: Callable[[float], float], wrongly: float, pure: float | None = None) -> float:
    """The least bound over all deltas of a curve epsilon(delta). `pure`: its epsilon at delta 0, if it has one."""
    found = [100.0] if pure is None else [caught(pure, 0.0, wrongly)]
    for delta in _DELTAS:
        value = epsilon(delta)
        if math.isfinite(value):
            found.append(caught(max(value, 0.0), delta, wrongly))
    return min(found)


def readings(facts: Facts) -> list[tuple[str, str, str]]:
    """(false alarms, hits at most, hits by guessing) rows; () without noise."""
    if facts.report["privacy"]["epsilon"] is None:
        return []
    return [
        (f"{wrongly:g} of 100", f"{hits(facts.plan, wrongly):.3g} of 100", f"{wrongly:g} of 100")
        for wrongly in FALSE_ALARMS
    ]


def what_happened(facts: Facts) -> list[str]:
    """Who computed where and for what, what was opened, who brought how many records, whether TLS was on."""
    report, plan = facts.report, facts.plan
    owners, n = report["owners"], report["parties"]
    said = [f"{owners} owners computed on their own records, for this: {_purpose(facts)}"]
    if report["method"] != "vectors":
        said.append(f"Records that each owner brought, which is public: {_sizes(facts)}.")
    if report["engine"] == "mpc":
        said.append(
            f"{n} parties added up what the owners sent, in shares that look random. They made one copy of noise "
            "together, which nobody knows, and added it to the sum before it was opened."
        )
    else:
        said.append("No parties took part: one process saw everything, and added the noise.")
    releases = report["privacy"]["releases"]
    opened = f"{releases} noisy sum{'s' if releases != 1 else ''} of {plan.dimension} numbers each"
    asked, surveys = before(plan)
    survey = ", and before them one that answers the questions" * bool(asked)
    survey += f", and before {'it' if asked else 'them'} one that found how columns are spread" * bool(surveys)
    said.append(f"Opened, and seen by all who took part: {opened}{survey}. Nothing else.")
    return [*said, _tls(facts)]


def _purpose(facts: Facts) -> str:
    report, source = facts.report, facts.plan.source
    if isinstance(source, Tables):
        return f"answers to {number_of(len(source.queries), 'question')} ('{report['data']}')."
    if report["method"] == "vectors":
        return f"means or sums of vectors of their own ('{report['data']}')."
    does = "predicts" if facts.schema is None else TASKS[facts.schema.task].help
    target = f" of '{facts.schema.target.name}'" if facts.schema is not None else ""
    return f"one model that {does}{target} ('{report['data']}')."


def _sizes(facts: Facts) -> str:
    sizes = [f"{size:,}" for size in facts.report["owner_sizes"]]
    shown = ", ".join(sizes[:12])
    return shown + (f" and {len(sizes) - 12} more owners" if len(sizes) > 12 else "")


def _tls(facts: Facts) -> str:
    if facts.report["engine"] != "mpc":
        return "Nothing crossed a network."
    if facts.one_machine:
        return "All processes ran on one machine, for study: nothing crossed a network, and TLS was off."
    on = facts.report.get("tls")
    if on is None:
        return "This report does not say whether TLS was on: the folder was written without a word on it."
    return "TLS was on in this run." if on else "TLS was OFF in this run: who could read the network saw the shares."


def at_worst(facts: Facts) -> list[str]:
    """What an outsider could learn, in the words of a study or a lawsuit."""
    if facts.report["privacy"]["epsilon"] is None:
        return ["Anything: no noise was added."]
    said = [
        "Suppose that somebody claims: this person's record was in the data, and here is the test that shows it. The "
        "table says how often such a test can be right at most, whatever else is known and however long is computed."
    ]
    few = [size for size in facts.report["owner_sizes"] if size < FEW] if facts.report["method"] != "vectors" else []
    if few:
        said.append(
            f"{len(few)} owner{'s have' if len(few) > 1 else ' has'} fewer than {FEW} records. Each record is hidden "
            "as said, one by one; what those records say together may show."
        )
    return said


def trust(facts: Facts) -> list[tuple[str, str, str]]:
    """(who, what for, what happens else) rows."""
    report = facts.report
    rows = [("each owner", "computing as the program does", "its own records are less hidden; others' are not")]
    if facts.one_machine or report["engine"] != "mpc":
        rows.append(("who runs this machine", "everything: it saw all records", "nothing was hidden from it"))
    if report["engine"] != "mpc":
        return rows
    t = report["threshold"]
    rows.append(
        (
            f"the {report['parties']} parties",
            f"that no {t + 1} of them put together what they hold",
            "those together read what owners sent",
        )
    )
    active = (report.get("security") or {}).get("mode") == "active"
    rows.append(
        ("the parties", "nothing more: a wrong message ends the run", "no result")
        if active
        else ("the parties", "following the protocol", "noise may be left out, or the result spoiled")
    )
    return rows


def verdicts(facts: Facts) -> list[str]:
    """What was verified, and by whom."""
    found = [
        f"{kind}: {'holds' if value['holds'] else 'FAILS'}, checked in this folder"
        for kind, value in facts.evidence.items()
    ]
    found += [
        f"party {', '.join(map(str, one.parties)) or 'unknown'} sent: {'; '.join(one.lines)} ({one.made})"
        for one in facts.sent
    ]
    return found or ["Nothing was verified yet: a party runs dpmpc verify and sends what it writes."]
