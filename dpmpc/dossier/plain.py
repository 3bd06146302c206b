"""The first pages of a report, in plain words: for who answers for the records, and reads no formula."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from dpmpc.aggregation.plan.derive import spent_before
from dpmpc.aggregation.plan.guarantee import ideal
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.dossier.facts import FinishedRun
from dpmpc.dossier.words import before, caught, tls_of
from dpmpc.privacy.composition import spending_of

FALSE_ALARMS = (1.0, 5.0)  # in 100
MOST = 12  # names, numbers and questions that are shown
FEW = 30  # records; of an owner with fewer nobody should say that nothing can be learned about it
_UNITS = {"record": "record", "presence": "record", "person": "person", "owner": "owner", "stated": "unit"}
_CLAIMS = {
    "record": "this person's record was in the data",
    "person": "this person's records were in the data",
    "owner": "this owner took part with these data",
    "unit": "this unit was in the data",
}
_OF = {
    "record": ("one whose record was there", "one whose record was not"),
    "person": ("one whose records were there", "one whose records were not"),
    "owner": ("one who took part so", "one who did not"),
    "unit": ("one that was there", "one that was not"),
}
CHECKED = {
    "structure": "what the parties did",
    "statistics": "the law of the noise",
    "audit": "whether an attack does better than promised",
}
_DELTAS = (*(k / 40 for k in range(39, 4, -1)), *(10.0 ** (-k / 4) for k in range(4, 53)))  # down to 1e-13


def hits(plan: Plan, wrongly: float) -> float:
    """How often, in 100 cases, the best test for one change is right that is wrong in `wrongly` of 100.

    Guarantees: for every delta the run keeps (epsilon(delta), delta), each of which bounds every test (`caught`); the
    least of these bounds holds. It is the run's own trade-off curve, read at one place, from above.
    """
    return hits_together(plan, 1, wrongly)


def hits_together(plan: Plan, count: int, wrongly: float) -> float:
    """As `hits`, of the best test for changes of up to `count` records (persons, owners) together."""
    spending = spent_before(plan) + spending_of(ideal(plan), plan.releases)
    pure = spending.pure + 2 * spending.log_ratio if not spending.rho else None
    return least(spending.epsilon, wrongly, pure, count)


def least(epsilon: Callable[[float], float], wrongly: float, pure: float | None = None, count: int = 1) -> float:
    """The least bound over all deltas of a curve epsilon(delta). `pure`: its epsilon at delta 0, if it has one.

    Guarantees: `count` changes, one after the other, keep (count epsilon, delta (1 + e^epsilon + ...)), count terms:
    each is (epsilon, delta), and what fails at one is carried on by those after it.
    """
    found = [100.0] if pure is None else [caught(count * pure, 0.0, wrongly)]
    for delta in _DELTAS:
        value = epsilon(delta)
        if math.isfinite(value):
            one = max(value, 0.0)
            fails = delta * math.fsum(math.exp(min(k * one, 700.0)) for k in range(count))
            found.append(caught(count * one, min(fails, 1.0), wrongly))
    return min(found)


def readings(facts: FinishedRun) -> list[tuple[str, str, str]]:
    """(false alarms, hits at most, hits by guessing) rows; () without noise."""
    if facts.report["privacy"]["epsilon"] is None:
        return []
    return [
        (f"{wrongly:g} of 100", f"{hits(facts.plan, wrongly):.3g} of 100", f"{wrongly:g} of 100")
        for wrongly in FALSE_ALARMS
    ]


def unit(facts: FinishedRun) -> str:
    """What one test is about: whose data the promise hides."""
    if not facts.of_records:
        return "unit" if facts.plan.neighbours == "stated" else _UNITS[facts.plan.neighbours]
    return _UNITS[facts.plan.neighbours]


def answer(facts: FinishedRun) -> list[str]:
    """What somebody with one minute reads: what for, for whom the promise is, what was checked, what was unusual."""
    report, of = facts.report, unit(facts)
    whose = {"owner": "every owner", "unit": "every unit that the run's caller named"}.get(
        of, f"every single {of} of every owner"
    )
    said = [f"What was computed: {_purpose(facts)}."]
    if report["privacy"]["epsilon"] is not None:
        said.append(
            f"For whom the promise is: {whose}. With 1 false alarm in 100, the best test for one {of} hits in at most "
            f"{hits(facts.plan, 1.0):.3g} of 100."
        )
    if facts.tries > 1:
        said.append(
            f"The run was stopped and carried on: it took {facts.tries} attempts. What each of them opened is counted."
        )
    checked = [f"{kind} {'holds' if value['holds'] else 'FAILS'}" for kind, value in facts.evidence.items()]
    said.append(f"What was checked: {', '.join(checked)}." if checked else "What was checked: nothing yet.")
    if facts.one_machine and report["engine"] == "mpc" and not facts.flower:
        said.append("All ran on one machine, which could see all records: a trial.")
    return said


def what_happened(facts: FinishedRun) -> list[str]:
    """Who computed where and for what, what was opened, who brought how many records, whether TLS was on."""
    report = facts.report
    said = [f"What for: {_purpose(facts)}.", _owners(facts)]
    if report["engine"] == "mpc":
        said.append(_parties(facts))
        said.append(
            "The parties added up what the owners sent, in shares that look random. Together they made one copy of "
            f"noise{' for each sum' * (_sums(facts) > 1)}, which nobody knows, and added it before the sum was opened."
        )
    else:
        said.append("No parties took part: one process saw everything, and added the noise.")
    return [*said, _opened(facts), *_beside(facts), _tls(facts)]


def _purpose(facts: FinishedRun) -> str:
    report = facts.report
    if facts.synthetic:
        return f"a synthetic table ('{report['data']}')"
    if facts.flower and not facts.of_records:
        return f"one model, from the clients' updates by Flower's {report['flower']['strategy']} ('{report['data']}')"
    return facts.plan.source.purpose(report["data"], facts.schema)


def _owners(facts: FinishedRun) -> str:
    report, plan = facts.report, facts.plan
    names = report.get("owner_names") or (plan.names.owners if plan.names is not None else ())
    if facts.flower:
        return f"Who brought data: {_some(report['owners'], 'client')} of Flower, each where Flower ran it."
    if not facts.of_records:
        return f"Who brought data: {_some(report['owners'], 'owner')}, each with vectors of its own{_listed(names)}."
    rows = 1 if plan.persons is None else plan.persons.rows
    what = "person" if plan.persons is not None else "record"
    sizes = [f"{size // rows:,}" for size in report["owner_sizes"]]
    each = [f"{name} {size}" for name, size in zip(names, sizes, strict=True)] if names else sizes
    said = f"Who brought data: {_some(report['owners'], 'owner')}, each with {what}s of its own."
    if plan.capacity:
        return f"{said} How many is private. Public are only the places, at least as many: {_shown(each)}."
    if _held_out(facts):
        return f"{said} How many the model learnt from is public: {_shown(each)}. {_tried(facts)}"
    return f"{said} How many is public: {_shown(each)}."


def _held_out(facts: FinishedRun) -> bool:
    """Whether owners brought more than the model learnt from."""
    if not facts.trains:
        return False
    return bool(facts.report.get("figures")) or facts.plan.source.parted(facts.plan.data_id) is not None


def _tried(facts: FinishedRun) -> str:
    tried = facts.report.get("figures")
    count = tried.get("records") if tried else None
    return f"{count:,} more were held out to try it on." if count else "Others were held out to try it on."


def _parties(facts: FinishedRun) -> str:
    report, plan = facts.report, facts.plan
    n = report["parties"]
    names = plan.names.parties if plan.names is not None else tuple(f"party {i}" for i in range(n))
    if facts.one_machine:
        where = "the Flower server's machine, which can read every update" if facts.flower else (
            "this one machine, with the owners")  # fmt: skip
        return f"Who computed: {_some(n, 'party')}, all on {where}. So it was a trial."
    if facts.site is not None:
        names = tuple(f"{name} at {where}" for name, where in zip(names, facts.site.addresses, strict=True))
    both = " Every owner is a party too, in one process." if plan.role == "both" else ""
    return f"Who computed: {_some(n, 'party')}{_listed(names)}.{both}"


def _sums(facts: FinishedRun) -> int:
    """How many sums were opened, or 2 for several."""
    figures = facts.report.get("figures")
    return int(facts.report["privacy"]["releases"]) + any(before(facts.plan)) + bool(figures and figures["inside"])


def _opened(facts: FinishedRun) -> str:
    plan, releases = facts.plan, facts.report["privacy"]["releases"]
    opened = f"{_some(releases, 'noisy sum')} of {plan.dimension:,} numbers{' each' * (releases > 1)}"
    asked, earlier = before(plan)
    said = ["one that answers the questions"] * bool(asked)
    said += [plan.source.BEFORE] * bool(earlier)
    said = [f"before {'them' if releases > 1 else 'it'} {' and '.join(said)}"] if said else []
    figures = facts.report.get("figures")
    if figures is not None and figures["inside"]:
        said.append("after them one that says how good the model is")
    return f"Opened, and seen by all who took part: {', '.join([opened, *said])}. Nothing else."


def _beside(facts: FinishedRun) -> list[str]:
    if not _outside(facts):
        return []
    return [
        "This page also has figures that the promise does not cover: how good the model is was computed from plain "
        "records. Keep the page where the records are."
    ]


def _outside(facts: FinishedRun) -> bool:
    """Whether there are figures from plain records."""
    figures = facts.report.get("figures")
    return facts.report["utility"] is not None or (figures is not None and not figures["inside"])


def _tls(facts: FinishedRun) -> str:
    if facts.report["engine"] != "mpc":
        return "Nothing crossed a network."
    if facts.flower:
        return (
            "What clients sent crossed Flower's connections, sealed for each party. Whether Flower used TLS is set at "
            "its own server, and this page does not know."
        )
    if facts.one_machine:
        return "All processes ran on one machine, for study: nothing crossed a network, and TLS was off."
    on = tls_of(facts)
    if on is None:
        return "This report does not say whether TLS was on: the folder was written without a word on it."
    if not on:
        return "TLS was OFF in this run: who could read the network saw the shares."
    if facts.listed is None:
        return (
            "TLS was on in this run. Its sites compared no list of their keys: whoever signed their certificates could "
            "have been every other site, and read this owner's vectors."
        )
    return (
        "TLS was on in this run, and every site was known by its own key, of a list that all compared: "
        f"{facts.listed}. If its people read that number to each other, whoever signed certificates could be none of "
        "them."
    )


def at_worst(facts: FinishedRun) -> list[str]:
    """What an outsider could learn, in the words of a study or a lawsuit."""
    if facts.report["privacy"]["epsilon"] is None:
        return ["Anything: no noise was added."]
    said = [
        f"Suppose that a study or a lawsuit claims: {_CLAIMS[unit(facts)]}, and here is a test that shows it. A hit: "
        f"the test says so of {_OF[unit(facts)][0]}. A false alarm: it says so of {_OF[unit(facts)][1]}.",
        "The table says how often the best test can hit, whatever else is known. It holds as long as nobody breaks "
        "today's encryption, and if those whom the table under Trust names do as it says.",
        f"Its first line says: with 1 false alarm in 100, at most {hits(facts.plan, 1.0):.3g} hits in 100. Throwing "
        "dice gives 1.",
    ]
    said += [f"This holds if {assumption}." for assumption in facts.report["privacy"]["assumptions"]]
    said += [f"The table is about this run alone; {each}." for each in facts.report["privacy"].get("earlier", ())]
    if not facts.of_records or facts.plan.neighbours == "owner":
        return said
    rows = 1 if facts.plan.persons is None else facts.plan.persons.rows
    if unit(facts) == "record":
        said.append("Somebody with several records is hidden less: the table is about one of them.")
    few = [size // rows for size in facts.report["owner_sizes"] if size < FEW * rows]
    return said if facts.plan.capacity or not few else [*said, _few(facts, few)]


def _few(facts: FinishedRun, few: Sequence[int]) -> str:
    """What is so of owners that have few records: as a whole they are hidden less, and how much less."""
    of, most = f"{unit(facts)}s", max(few)
    said = f"{_some(len(few), 'owner')} {'have' if len(few) > 1 else 'has'} fewer than {FEW} {of}. Each {unit(facts)} "
    said += "is hidden as said, one by one. "
    if most < 2:
        return said + "So what is said of one is said of all that such an owner has."
    together = hits_together(facts.plan, most, FALSE_ALARMS[0])
    if together > 99:
        return f"{said}Of all {most} together nothing is promised: such an owner's data may show."
    return f"{said}A test for all {most} together can hit in up to {together:.3g} of 100, with 1 false alarm in 100."


def trust(facts: FinishedRun) -> list[tuple[str, str, str]]:
    """(who, what for, what happens else) rows."""
    report = facts.report
    owners = ("each owner", "computing as the program does", "its own records are less hidden; others' are not")
    rows = [("each site", "a program that is the one it says", "nothing on this page holds"), owners]
    if facts.one_machine or report["engine"] != "mpc":
        who, saw = ("the Flower server's machine", "can read every update") if facts.flower else (
            "who runs this machine", "saw all records")  # fmt: skip
        rows.append((who, f"everything: it {saw}", "nothing was hidden from it"))
    if report["engine"] != "mpc":
        return rows
    t = report["threshold"]
    if t:
        hold = f"that no {t + 1} of them put together what they hold"
        rows.append((f"the {report['parties']} parties", hold, "those together read what owners sent"))
    else:
        rows.append(
            (f"each of the {report['parties']} parties", "all that owners sent: it can read it", "it tells others")
        )
    active = (report.get("security") or {}).get("mode") == "active"
    rows.append(
        ("the parties", "nothing more: a wrong message ends the run", "no result")
        if active
        else ("the parties", "following the protocol", "noise may be left out, or the result spoiled")
    )
    if not facts.one_machine and tls_of(facts):
        rows.append(("who signed the keys", "signing each site's key for that site", "somebody poses as a site"))
    return rows


def verdicts(facts: FinishedRun) -> list[str]:
    """What was verified, and by whom."""
    names = (
        facts.plan.names.parties if facts.plan.names is not None else [f"party {i}" for i in range(facts.plan.parties)]
    )
    seen = [names[i] for i in facts.seen]
    whose = "all parties" if len(seen) == len(names) else f"{', '.join(seen)} alone" if seen else "no party"
    found = [
        f"{kind}, {CHECKED[kind]}: {'holds' if value['holds'] else 'FAILS'}, checked by the holder of this folder, on "
        + (f"the files of {whose}" if kind == "structure" else "fresh releases of the same kind")
        for kind, value in facts.evidence.items()
    ]
    found += [
        f"{', '.join(names[i] for i in one.parties) or 'unknown'} sent: {'; '.join(one.lines)} ({_when(one.made)})"
        for one in facts.sent
    ]
    told = {i for one in facts.sent for i in one.parties} | set(facts.seen)
    if missing := [name for i, name in enumerate(names) if i not in told]:
        found.append(f"No verdict came from {_shown(missing)}. Each can run dpmpc verify and send what it writes.")
    return found or ["Nothing was verified: no parties took part."]


def _when(text: str) -> str:
    """A time as the page writes times; what is none stays as it came."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def _some(count: int, what: str) -> str:
    many = "parties" if what == "party" else f"{what}s"
    return f"{count:,} {what if count == 1 else many}"


def _listed(names: Sequence[str]) -> str:
    return f": {_shown(names)}" if names else ""


def _shown(values: Sequence[str]) -> str:
    return ", ".join(values[:MOST]) + (f" and {len(values) - MOST} more" if len(values) > MOST else "")
