"""What a run promised, to whom, against whom, and what was checked, in plain sentences that follow from its figures."""

import math
from typing import Any

from dpmpc.aggregation.plan.check_figures import owners_section
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.dossier.facts import FinishedRun
from dpmpc.records.origins import WORDS

SHOWS = {
    "structure": (
        "What the parties did, from their own transcripts: each owner's input once, one noise vector a release and "
        "none used twice, noise after the last input, a ledger line before every opening, nothing opened beside the "
        "release.",
        "What a party does in its own memory and tells nobody; what the owners did; anything that all parties did "
        "alike in silence. Transcripts are the parties' own word, held against each other; they are not signed.",
    ),
    "statistics": (
        "That fresh releases of the same kind, with known inputs, carry noise of the claimed law and width, "
        "independent of data, owners and each other.",
        "This run's own noise, which nobody may see; when noise was added; openings beside the release.",
    ),
    "audit": (
        "That an attack by thresholds on fresh releases does not succeed more often than the promise allows.",
        "That no other attack does better: it bounds the loss of privacy from below. It can refute a claim, never "
        "prove it.",
    ),
}
NEVER = (
    "No check can show that owners' records are true, that owners clipped their vectors as the program does, that no "
    "more parties than stated put together what they saw, or that nobody read a process's memory."
)


def figures(facts: FinishedRun) -> str:
    """The promise in a line."""
    privacy = facts.report["privacy"]
    if privacy["epsilon"] is None:
        return "No promise: no noise was added"
    return f"epsilon = {privacy['epsilon']:.6g}, delta = {privacy['delta']:.3g}"


def held_out(facts: FinishedRun) -> str:
    """ " and 1,600 held out to try it on", where the report has how many."""
    tried = facts.report.get("figures") if facts.trains else None
    count = tried.get("records") if tried else None
    return f" to learn from, {count:,} held out to try it on" if count else ""


def promise(facts: FinishedRun) -> list[str]:
    """The promise in sentences, each with its figures."""
    privacy = facts.report["privacy"]
    epsilon, delta = privacy["epsilon"], privacy["delta"]
    if epsilon is None:
        return ["None. No noise was added, so whoever sees what this run published may learn about single records."]
    unit = privacy["neighbours"].split(";")[0]
    factor = math.exp(min(epsilon, 700.0))
    asked, survey = before(facts.plan)
    surveyed = " and the answers to its questions" * bool(asked) + (
        " and what its survey found" if facts.trains else " and the releases before it"
    ) * bool(survey)
    from_them = "every intermediate model and the final one" if facts.trains else "all that is computed from them"
    releases = privacy["releases"]
    opened = "the opened vector" if releases == 1 else f"all {releases} opened vectors"
    said = [
        f"Whoever sees all that this run published ({opened}{surveyed}, hence {from_them}) can hardly tell whether "
        f"its data were changed by this: {unit}.",
        f"Exactly: for any such change, and for any set of outcomes, its probability before and after differ by a "
        f"factor of at most e^{epsilon:.4g} = {factor:.4g}, but for a probability of {delta:.3g} (epsilon = "
        f"{epsilon:.6g}, delta = {delta:.3g}, for the whole run).",
        f"By epsilon and delta alone: somebody who tests whether a certain change was made, and who says so wrongly in "
        f"1 of 100 cases, says so rightly in at most {caught(epsilon, delta):.3g} of 100. Part 1 has a closer "
        "figure, by this run's own noise.",
    ]
    said += [f"This holds if {assumption}." for assumption in privacy["assumptions"]]
    said += [f"{each[0].upper()}{each[1:]}." for each in privacy.get("earlier", ())]  # older runs have none
    if "paper" in privacy:
        claims = privacy["paper"]["claims"]
        said.append(
            f"The noise was set by a printed formula that claims epsilon = {claims['epsilon']:g}; the figures above "
            "are what it really gives."
        )
    return said


def caught(epsilon: float, delta: float, wrongly: float = 1.0) -> float:
    """How often, in 100 cases, a test is right that is wrong in `wrongly` of 100.

    Guarantees: the smaller of two consequences of (epsilon, delta): right <= e^epsilon wrong + delta, and
    1 - wrong <= e^epsilon (1 - right) + delta.
    """
    factor = math.exp(min(epsilon, 700.0))
    first = factor * wrongly / 100 + delta
    second = 1 - (1 - wrongly / 100 - delta) / factor
    return 100 * max(0.0, min(1.0, first, second))


def vectors(facts: FinishedRun) -> list[tuple[str, str]]:
    """(what, value) rows on vectors that the run's caller brought."""
    report, plan = facts.report, facts.plan
    return [
        ("Data", report["data"]),
        ("Owners", f"{report['owners']:,}, each with one vector a release"),
        ("Numbers of a vector", f"{plan.dimension:,}"),
        ("Clipped to L2 norm", f"{report['clip']:g}, by each owner"),
        ("Weights of owners", report["weights"] if isinstance(report["weights"], str) else "given with the plan"),
        ("Releases made, and planned", f"{report['iterations']:,} of {plan.releases:,}"),
        ("Where they come from", "a program of the run's caller: of what it does to records, this page says nothing"),
    ]


def not_promised(facts: FinishedRun) -> list[str]:
    """What the promise leaves out."""
    left = [
        "What holds of the people as a group can be learned: that is what the run is for.",
        _public(facts),
    ]
    if facts.report["utility"] is not None:
        left.append("The utility figures on this page were computed from plain records. They are outside the promise.")
    if read := facts.report["privacy"].get("read_off_records"):
        words = ", ".join(WORDS[each] for each in read)
        left.append(f"These were read off the records, and are outside the promise: {words}.")
    return left


def _public(facts: FinishedRun) -> str:
    if not facts.of_records:
        return "The number of owners is public, and so is everything in the plan."
    plan, of = facts.plan, "persons" if facts.plan.persons is not None else "records"
    number = "places" if plan.capacity else of
    private = f" How many {of} fill them is private." if plan.capacity else ""
    return f"The number of {number} of each owner is public, and so is everything in the plan and the schema.{private}"


def sized(facts: FinishedRun) -> str:
    """What the owners' sizes count."""
    return "places for records" if facts.plan.capacity or facts.plan.persons is not None else "records"


def tls_of(facts: FinishedRun) -> bool | None:
    """Whether TLS was on between the run's processes; None where nothing says so."""
    found: bool | None = facts.report.get("tls")
    return facts.site.tls if found is None and facts.site is not None else found


def _network(facts: FinishedRun) -> tuple[str, str, str]:
    if facts.flower:
        return "the network", "what Flower's connections show; updates are sealed for the parties", "the updates"
    if facts.one_machine:
        return "the network", "nothing: all stayed on one machine", "everything"
    on = tls_of(facts)
    if on is None:
        return "the network", "sizes; without TLS, of which nothing is said here, the shares", "with TLS: contents"
    return ("the network", "sizes and times: TLS was on", "contents") if on else (
        "the network", "all shares: TLS was OFF", "what stays in a process")  # fmt: skip


def who_sees(facts: FinishedRun) -> list[tuple[str, str, str]]:
    """(who, what they could see, what they could not) rows."""
    report = facts.report
    if report["engine"] != "mpc":
        return [("the one process of this run", "all records, all vectors, the noise", "nothing: no parties took part")]
    t = report["threshold"]
    together = "a party alone" if t <= 1 else f"up to {t} parties together"
    rows = [
        ("an owner", "its own records; the opened vectors", "other owners' records, vectors, shares; the noise"),
        (
            together if t else "a party",
            "shares, which look random; the opened vectors" if t else "every owner's vectors (threshold 0)",
            "any vector, any noise value, any sum without noise" if t else "the noise alone",
        ),
        (f"{t + 1} parties together", "everything that the owners sent, and the noise", _untold(facts)),
        _network(facts),
        ("whoever reads the results", f"the opened vectors, {made(facts)}, this page", "anything else"),
    ]
    if facts.one_machine:
        hidden = "nothing was hidden from its operator"
        saw = "all owners' records: owners and parties ran on one machine, for study"
        row = ("the machine of this run", saw, hidden)
        if facts.flower:
            saw = "every client's updates: all parties ran there, for study"
            row = ("the Flower server's machine", saw, "the clients' records, beyond what updates tell")
        rows.insert(0, row)
    return rows


def _untold(facts: FinishedRun) -> str:
    """What plain vectors leave unseen: of an owner with few records, little or nothing."""
    return "what the vectors do not tell" + ": of few records they may tell all" * facts.of_records


def made(facts: FinishedRun) -> str:
    """What came of the run."""
    return "a synthetic table" if facts.synthetic else facts.plan.source.MAKES


def against(facts: FinishedRun) -> list[str]:
    """Whom the run is safe against."""
    report = facts.report
    if report["engine"] != "mpc":
        return [
            "Nobody took part but one process. This run is for study; the promise holds for what it published alone."
        ]
    n, t = report["parties"], report["threshold"]
    if (report.get("security") or {}).get("mode") == "active":
        return [
            f"Any {t} of the {n} parties may do whatever they like: they learn nothing beyond the opened vectors, and "
            "a wrong message ends the run before a wrong vector is released, but for a probability of "
            f"2^-{report['security']['undetected_bits']:.0f}. They can end the run.",
            _owners(facts),
            "Random values come from AES with keys that parties share: secrecy is computational.",
        ]
    return [
        f"Parties are assumed to follow the protocol. Up to {t} of the {n} may put together all they see, and learn "
        "nothing beyond the opened vectors."
        if t
        else f"Every one of the {n} parties can read the owners' vectors: the threshold is 0.",
        "A party that deviates can spoil the result or leave noise out. That is not prevented; the checks below are "
        "there to show it.",
        _owners(facts),
        "Random values come from AES with keys that parties share: secrecy is computational.",
    ]


def _owners(facts: FinishedRun) -> str:
    section = owners_section(facts.plan)
    if section is None:
        return "Owners are trusted to clip their vectors; one that does not harms its own records' protection."
    norms = " and that it is within the bound" if "norms" in section["checks"] else ", not that it is within the bound"
    then = "ends the run" if facts.plan.check_owners == "stop" else "counts as zero for that release"
    return (
        f"Owners may send what they like: the parties check that it is one vector{norms}; an owner that fails {then}."
    )


def before(plan: Plan) -> tuple[int, int]:
    """How many releases of questions, and of surveys with the words of their columns, were before the run's own."""
    asked = min(plan.source.asked_first, len(plan.before))
    return asked, len(plan.before) - asked


def _before(facts: FinishedRun) -> list[tuple[str, str]]:
    privacy, found = facts.report["privacy"], []
    for count, what in zip(before(facts.plan), ("questions", "survey"), strict=True):
        share = privacy.get(f"{what}_share", 0.0)  # reports of older runs do not say
        taken = f", with {share:.0%} of the budget (of mu squared)" if share else ""
        what = "words and the survey" if what == "survey" and count > 1 else what
        found += [(f"Released before, by the {what}", f"{count}{taken}")] if count else []
    return found


def noise(facts: FinishedRun) -> list[tuple[str, str]]:
    """(what, value) rows on the noise and its certificate."""
    privacy: dict[str, Any] = facts.report["privacy"]
    grid, sensitivity = privacy["grid"], privacy["sensitivity"]
    rows = [
        ("Law", f"{privacy['noise_law']}, sampler {facts.report['sampler']}"),
        ("Scale of a coordinate of the mean", f"{privacy['noise_scale']:.6g}"),
        ("The same in grid steps of the sum", f"{privacy['noise_scale_grid_steps']:,.2f}"),
        ("L2 sensitivity of the mean", f"{sensitivity['l2']:.6g}"),
        *((f"of which {name}", f"{value:.6g}") for name, value in sensitivity["parts"].items()),
        ("Grid step", f"2^-{grid['bits']}; the sum is divided by {grid['divisor']:,}"),
        ("Releases", f"{privacy['releases']:,} of {facts.plan.dimension:,} coordinates"),
        *_before(facts),
        ("Asked for", ", ".join(f"{k} {v:g}" for k, v in privacy["asked"].items() if isinstance(v, float))),
        ("Calibration", str(privacy["asked"]["calibration"])),
    ]
    if privacy["epsilon"] is not None:
        rows.append(("Accounted epsilon", f"{privacy['epsilon_accounted']:.6g}"))
        rows += [(f"delta: {name.replace('_', ' ')}", f"{part:.3g}") for name, part in privacy["delta_parts"].items()]
    rows += [
        (f"Certificate: {name.replace('_', ' ')}", f"{value:.3g}" if isinstance(value, float) else str(value))
        for name, value in privacy["sampler_certificate"].items()
    ]
    if privacy["masks_of_openings_bits"] is not None:
        rows.append(("Masks of openings hide up to", f"2^-{privacy['masks_of_openings_bits']:.1f} over the run"))
    return rows
