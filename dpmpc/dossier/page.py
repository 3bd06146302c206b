"""The page itself: one HTML file without scripts, fonts, images or links, for screens light and dark and for print."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from dpmpc.codec import loads
from dpmpc.dossier import plain, words
from dpmpc.dossier.effects import of_weights
from dpmpc.dossier.facts import KINDS, ROWS, FinishedRun
from dpmpc.errors import as_written
from dpmpc.folders import write_file
from dpmpc.learning.model import read_model
from dpmpc.local.report import averaging_begins
from dpmpc.privacy.composition import Spent
from dpmpc.privacy.seen import UNITS
from dpmpc.records.schema import Categorical, Classes, Date, Numeric, Range, Schema, Surveyed
from dpmpc.show import html
from dpmpc.show.answers_page import as_part
from dpmpc.show.chart import costs_of, curves_of
from dpmpc.show.curve_charts import charts
from dpmpc.show.figures import figures_part
from dpmpc.show.summary import features_of
from dpmpc.show.svg import bars, duration
from dpmpc.tables.answer_files import ANSWERS, ASKED_FIRST

_BOUNDS = {
    "public": "public",
    "data": "read off the records",
    "survey": "found by a private survey, which is in the promise",
}


@as_written("what a run's folder holds", "restore report.json and verify.json, or make them again")
def page(facts: FinishedRun) -> str:
    """The whole page as HTML text. Nothing in it comes from the network; texts of users are escaped."""
    report = facts.report
    title = f"Privacy report: {report['data']}, run {report['run']}"
    sections = [
        ("In plain words", _plain(facts)),
        ("Promise", _promise(facts)),
        ("Warnings", _warnings(facts)),
        ("Who could see what", _who(facts)),
        ("What was verified, and what that cannot show", _verified(facts)),
        ("Budget", _budget(facts)),
        ("Data and schema", _data(facts)),
        ("Noise and certificate", html.facts("What noise was added, and what is proved of it", words.noise(facts))),
        *_answers(facts),
        *([("The synthetic table", html.items(_about(facts.run)))] if facts.synthetic else []),
        ("Utility and cost", _utility(facts)),
        ("Versions and digests", _digests(facts)),
    ]
    body = "".join(
        f'<section aria-labelledby="s{k}"><h2 id="s{k}">{k}. {escape(name)}</h2>{content}</section>\n'
        for k, (name, content) in enumerate(sections, 1)
    )
    return html.page(
        title, _answer(facts) + html.contents([name for name, _ in sections]) + body, _summary(facts), _signatures()
    )


def write_page(facts: FinishedRun, path: Path) -> None:
    """Writes the page whole or not at all."""
    write_file(path, page(facts))


def _answer(facts: FinishedRun) -> str:
    """The first screen: what was computed, what was promised to whom, what was checked, what to be warned of."""
    report = facts.report
    none, found = report["privacy"]["epsilon"] is None, report["warnings"]
    warned = f"{len(found)} warning{'s' * (len(found) > 1)}: {' '.join(found)}" if found else "No warnings."
    kind = ' class="warning"' if found else ""
    return (
        f'<section aria-labelledby="answer"><h2 id="answer">The answer</h2><div class="promise{" none" * none}">'
        f"<p><strong>{escape(words.figures(facts))}</strong></p>{html.items(plain.answer(facts))}</div>"
        f"<p{kind}>{escape(warned)}</p></section>"
    )


def _summary(facts: FinishedRun) -> str:
    report = facts.report
    who = f"{report['parties']} parties" if report["engine"] == "mpc" else "one process, without parties"
    if not facts.of_records:
        what = f"{report['owners']} owners' vectors; {report['iterations']} releases"
    elif not facts.trains:
        made = words.made(facts)
        what = f"{made} of {report['owners']} owners from {'releases' if facts.synthetic else 'one release'}; "
        what += _counted(facts)
    else:
        what = (
            f"{report['owners']} owners, {_counted(facts)}; method {report['method']}, "
            f"{report['iterations']} iterations"
        )
    return f"{what}, computed by {who}; finished {facts.finished:%Y-%m-%d %H:%M} UTC"


def _counted(facts: FinishedRun) -> str:
    return f"{sum(facts.report['owner_sizes']):,} {words.sized(facts)}{words.held_out(facts)}"


def _plain(facts: FinishedRun) -> str:
    readings = plain.readings(facts)
    head = ("False alarms", "Hits, at most", "Hits by throwing dice")
    what = f"How often the best test for one {plain.unit(facts)} can hit"
    table = html.table(what, head, readings) if readings else ""
    head = ("Whom", "For what", "What happens if that fails")
    trust = html.table("Whom one must trust, and for what", head, plain.trust(facts), words=True)
    return (
        f"<h3>What happened</h3>{html.items(plain.what_happened(facts))}"
        f"<h3>What an outsider could learn at worst</h3>{html.items(plain.at_worst(facts))}{table}"
        f"<h3>Trust</h3>{trust}<h3>What was verified, and by whom</h3>{html.items(plain.verdicts(facts))}"
        '<p class="dim">What follows is the technical annex.</p>'
    )


def _promise(facts: FinishedRun) -> str:
    privacy = facts.report["privacy"]
    none, figures = privacy["epsilon"] is None, words.figures(facts)
    sentences = html.lines(words.promise(facts))
    return (
        f'<div class="promise{" none" * none}"><p><strong>{escape(figures)}</strong></p>{sentences}</div>'
        f"<h3>Neighbours</h3><p>{escape(privacy['neighbours'])}</p>"
        f"<h3>Not promised</h3>{html.items(words.not_promised(facts))}"
    )


def _warnings(facts: FinishedRun) -> str:
    found = facts.report["warnings"]
    if not found:
        return "<p>None.</p>"
    return html.lines(found, "warning")


def _who(facts: FinishedRun) -> str:
    rows = words.who_sees(facts)
    return (
        html.table("Who could see what in this run", ("Who", "Could see", "Could not see"), rows, words=True)
        + f"<h3>Against whom</h3>{html.items(words.against(facts))}"
    )


def _verified(facts: FinishedRun) -> str:
    rows = []
    for kind in KINDS:
        found, (shows, cannot) = facts.evidence.get(kind), words.SHOWS[kind]
        verdict = '<span class="dim">nobody has made this check</span>'
        if found is not None:
            checks = found["checks"]
            good = sum(bool(check["holds"]) for check in checks)
            alarm = f", false alarm below {found['false_alarm']:.1g}" if found["false_alarm"] else ""
            name = "good" if found["holds"] else "bad"
            word = "holds" if found["holds"] else "FAILS"
            verdict = f'<span class="{name}">{word}</span>: {good} of {len(checks)} checks{alarm}'
        rows.append((kind, verdict, shows, cannot))
    missing = [kind for kind in KINDS if kind not in facts.evidence]
    left = "; ".join(f"{kind}, {plain.CHECKED[kind]}" for kind in missing)
    hint = (
        f"<p>Checks that nobody has made yet: {left}. Whoever wants them makes them, also after the run, with "
        "<code>dpmpc verify</code>.</p>"
        if missing
        else ""
    )
    source = (
        "From verify.json of this run."
        if facts.written
        else "The structure was checked for this page."
        if facts.evidence
        else "Nothing was checked: the directory has no transcripts."
    )
    failed = [
        f"{kind}: {check['name']}: {check['detail']}"
        for kind, found in facts.evidence.items()
        for check in found["checks"]
        if not check["holds"]
    ]
    return (
        f"<p>{source}</p>{hint}"
        + html.table("Lines of evidence", ("Evidence", "Verdict", "Shows", "Cannot show"), rows, raw=(1,), words=True)
        + html.lines(failed, "warning")
        + _sent(facts)
        + f"<p>{escape(words.NEVER)}</p>"
    )


def _sent(facts: FinishedRun) -> str:
    if not facts.sent:
        return ""
    rows = [
        (
            f"party {', '.join(map(str, one.parties))}" if one.parties else "nobody",
            "; ".join(one.lines),
            one.made,
            one.file,
        )
        for one in facts.sent
    ]
    head = ("Files of", "Verdict", "Made", "File")
    return html.table("Verdicts that others sent: each is the word of whoever made it", head, rows)


def _budget(facts: FinishedRun) -> str:
    budget = facts.budget
    if budget is None:
        return (
            "<p>No ledger of this run was found: parties on other machines keep them, and a run without parties has "
            "none.</p>"
        )

    def row(name: str, spent: Spent) -> tuple[str, ...]:
        if not spent.releases:
            return name, "0", "0", "nothing", ""
        return name, f"{spent.runs}", f"{spent.releases:,}", f"{spent.epsilon:.5g}", f"{spent.delta:.3g}"

    rows = [
        row("before this run", budget.before),
        row("this run", budget.this),
        row("after this run", budget.after),
    ]
    if budget.every.releases != budget.after.releases:
        rows.append(row("with later runs", budget.every))
    return html.table(
        f"Spent on the same data ({facts.plan.data_id[:16]}…), for {UNITS[budget.neighbours]}, each epsilon at delta "
        f"{budget.delta:.3g}; as seen in {budget.where}",
        ("When", "Runs", "Releases", "epsilon", "delta"),
        rows,
    ) + "".join(f"<p>{escape(text)}</p>" for text in budget.unseen)


def _data(facts: FinishedRun) -> str:
    report, schema = facts.report, facts.schema
    sizes = report["owner_sizes"]
    spread = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    if not facts.of_records:
        return html.facts("The vectors", words.vectors(facts))
    rows = [
        ("Data", report["data"]),
        ("Owners", f"{report['owners']:,}, with {spread} {words.sized(facts)} each"),
        ("For training" if facts.trains else "In all", f"{sum(sizes):,} {words.sized(facts)}"),
        ("Shape", features_of(report) if facts.trains else f"{facts.plan.dimension:,} counts"),
        ("Weights of owners", report["weights"]),
        ("Constants of the schema", _BOUNDS[report["privacy"]["bounds"]]),
    ]
    if schema is None:
        return html.facts("The records", rows)
    rows.append(("Digest of the schema", schema.digest))
    return html.facts("The records", rows) + _schema(schema, (report.get("columns") or {}).get("left_out", {}))


def _schema(schema: Schema, left: Mapping[str, str]) -> str:
    rows: list[tuple[str, ...]] = []
    for column in (*schema.columns, schema.target):
        if isinstance(column, Numeric | Range):
            kind, values = "number", f"{column.low:g} to {column.high:g}"
        elif isinstance(column, Categorical):
            kind, values = "category", ", ".join(column.values)
        elif isinstance(column, Date):
            kind, values = "date", f"{column.first} to {column.last}: {', '.join(column.parts)}"
        elif isinstance(column, Surveyed):
            kind, values = "surveyed", _surveyed(column)
        elif isinstance(column, Classes):
            kind, values = "classes", ", ".join(column.names)
        else:
            kind, values = "label", f"{column.negative_name}, {column.positive_name}"
        rows.append((column.name + (" (target)" if column is schema.target else ""), kind, values))
    rows += [(name, "left out", why) for name, why in left.items()]
    filled = "filled with the middle of the range" if schema.missing == "fill" else "dropped with their records"
    one = "A constant feature is added. " if schema.intercept else ""
    return (
        html.table("Columns, as every owner maps them", ("Column", "Kind", "Values"), rows)
        + f"<p>{one}Missing values are {filled}. Each record is then scaled into the unit ball.</p>"
    )


def _surveyed(column: Surveyed) -> str:
    found = ([f"{column.low:g} to {column.high:g}"] if column.number else []) + (
        [f"{len(column.kept)} of {column.buckets} buckets of texts"] if column.kept else []
    )
    found += [f"named by public words: {', '.join(f'{word} [#{k}]' for k, word in column.names)}"] * bool(column.names)
    return ", ".join([*found, *(["whether it is missing"] if column.missing else [])]) or "nothing"


def _about(run: Path) -> list[str]:
    """What a synthetic table says of itself."""
    return list(loads((run / ROWS).read_text(encoding="utf-8"))["about"])


def _answers(facts: FinishedRun) -> list[tuple[str, str]]:
    """What was opened of all records, alone or before training, as numbers with intervals."""
    from dpmpc.local.delivering import outcome_in  # which few pages need

    if facts.synthetic or not any((facts.run / name).exists() for name in (ASKED_FIRST, ANSWERS)):
        return []
    found = outcome_in(facts.run)
    return [(found.title, f'<div class="wide">{as_part(found, "h3")}</div>')]


def _utility(facts: FinishedRun) -> str:
    report, rows = facts.report, facts.history
    if not facts.trains:
        if facts.of_records:
            return "<p>Intervals beside the numbers say how far the noise may move them.</p>"
        return "<p>The vectors' use is their caller's; this run opened their sums.</p>"
    utility, figures = report["utility"], []
    text = figures_part(report)
    if not text:
        text = "<p>Not computed: the records were not at hand, or it was left out.</p>"
    if utility is not None:
        values = [("Training loss", f"{utility['train_loss']:.4f}", f"{utility['nonprivate']['train_loss']:.4f}")]
        text += '<p class="warning">Computed from plain records of a local run: outside the promise.</p>' + html.table(
            "Training", ("Figure", "Private", "Without privacy"), values
        )
        mark = averaging_begins(report)
        figures = [html.figure(label, curve) for label, curve in curves_of(rows, report, mark)]
        if mark is not None and figures:
            text += (
                f"<p>Until iteration {mark - 1} the curves show the iterate; from {mark} on the average of the "
                "iterates since then, which is the model. Averaging takes noise out, so the curves jump there.</p>"
            )
    if facts.schema is not None and facts.schema.basis == "additive":
        pictures = "".join(html.figure(label, svg) for label, svg in charts(read_model(facts.run).additive))
        text += f'<h3>What each column adds to the score</h3><div class="pair">{pictures}</div>'
    if facts.schema is not None:
        promised = report["privacy"]
        said = of_weights(facts.schema, tuple(facts.plan.sizes), promised["epsilon"], promised["delta"] or 0.0)
        text += "".join(f"<p>{escape(each)}</p>" for each in said)
    parts, beside = costs_of(rows, report["cost"])
    figures.append(html.figure("Where the time went", bars("seconds", parts)))
    cost = report["cost"]
    lines = [("In all", duration(cost["wall_s"])), ("Start, load, evaluate", duration(beside))]
    if cost["bytes_sent"]:
        lines += [
            ("Sent by a party", f"{max(cost['bytes_sent']):,} bytes in {cost['rounds']:,} rounds"),
            ("Memory of a party", f"{max(cost['peak_memory']) / 1e6:.0f} MB"),
        ]
    return f'{text}<div class="pair">{"".join(figures)}</div>{html.facts("Cost", lines)}'


def _digests(facts: FinishedRun) -> str:
    ran = facts.report.get("software")
    if ran == dict(facts.versions):
        versions = html.facts("Versions that ran, and that made this page", facts.versions)
    else:
        versions = html.facts("Versions that ran", list((ran or {"dpmpc": "not noted"}).items()))
        versions += html.facts("Versions that made this page", facts.versions)
    if facts.met:
        versions += html.facts("Versions of dpmpc, as each process said; what they derive by was compared", facts.met)
    rows = [("plan, as the processes compared it", facts.plan_digest), *facts.digests]
    return versions + html.table(
        "SHA-256 of what this page rests on; signing the page signs these", ("File", "SHA-256"),
        [(name, f"<code>{escape(digest)}</code>") for name, digest in rows], raw=(1,),
    )  # fmt: skip


def _signatures() -> str:
    fields = ("Name and role", "Place and date", "Signature", "Remarks")
    lines = "".join(f"<div>{field}</div>" for field in (*fields, *fields))
    return f'<footer><h2>Signatures</h2><div class="sign">{lines}</div></footer>'
