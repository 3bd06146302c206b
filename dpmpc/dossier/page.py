"""The page itself: one HTML file without scripts, fonts, images or links, for screens light and dark and for print."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from dpmpc.codec import loads
from dpmpc.dossier import plain, words
from dpmpc.dossier.facts import KINDS, Facts
from dpmpc.errors import as_written
from dpmpc.folders import write_file
from dpmpc.learning.model import read_model
from dpmpc.privacy.composition import Spent
from dpmpc.records.schema import Categorical, Classes, Date, Numeric, Range, Schema, Surveyed
from dpmpc.runs.answer_files import ANSWERS, ASKED_FIRST
from dpmpc.runs.chart import averaging_begins, costs_of, curves_of
from dpmpc.runs.curve_charts import charts
from dpmpc.runs.figure_page import figures_part, grid
from dpmpc.runs.summary import features_of
from dpmpc.runs.svg import bars, duration

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #f3f5f7; --line: #c9d0d8; --dim: #4d5761;
  --accent: #0b5cad; --good: #14662f; --bad: #a3180c; --warn: #7a4b00; --warn-paper: #fff4d9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebee; --paper: #14181c; --soft: #1e242a; --line: #46505a;
  --dim: #a9b4bf; --accent: #7db8f5; --good: #7ed39a; --bad: #ff9a8f; --warn: #ffd37a; --warn-paper: #33290f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 1rem 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 46rem; }
.dim { color: var(--dim); }
.promise { border-left: .3rem solid var(--accent); background: var(--soft); padding: .6rem 1rem; margin: 1rem 0; }
.promise strong { font-size: 1.25rem; }
.none { border-color: var(--bad); }
.warning { background: var(--warn-paper); border-left: .3rem solid var(--warn); padding: .4rem 1rem; margin: .5rem 0; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .93rem; }
caption { text-align: left; color: var(--dim); padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
td { overflow-wrap: anywhere; } .wide td { overflow-wrap: break-word; min-width: 4.5rem; }
th { font-weight: 600; } tbody th { width: 17rem; max-width: 40vw; }
.wide { overflow-x: auto; } .wide tbody th { width: auto; min-width: 7rem; } .words td { min-width: 9rem; }
code { font: .85rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1.2rem; }
figure { margin: .6rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; max-width: 34rem; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--line); stroke-width: .6; } .level { stroke: var(--dim); stroke-dasharray: 5 4; }
.mark { stroke: var(--warn); stroke-dasharray: 2 3; stroke-width: 1.5; }
.curve { fill: none; stroke: var(--accent); stroke-width: 2; } .bar { fill: var(--accent); }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 2.2rem 1.5rem; margin-top: 2.5rem; }
.sign div { border-top: 1px solid var(--ink); padding-top: .2rem; font-size: .9rem; }
@media (max-width: 46rem) { .pair, .sign { grid-template-columns: 1fr; } tbody th { width: 9rem; }
  .words thead { display: none; } .words tr, .words th, .words td { display: block; border: 0; padding: .1rem 0; }
  .words tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .words td[data-name]::before { content: attr(data-name) ": "; color: var(--dim); } }
@media print { :root { --ink: #000; --paper: #fff; --soft: #fff; --line: #999; --dim: #333; --accent: #000;
  --good: #000; --bad: #000; --warn: #000; --warn-paper: #fff; } body { font-size: 10.5pt; }
  h2, h3, figcaption { break-after: avoid; } tr, figure, .promise, .warning, .sign { break-inside: avoid; } }
"""


_BOUNDS = {
    "public": "public",
    "data": "read off the records",
    "survey": "found by a private survey, which is in the promise",
}


@as_written("what a run's folder holds", "restore report.json and verify.json, or make them again")
def page(facts: Facts) -> str:
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
        ("Noise and certificate", _table("What noise was added, and what is proved of it", words.noise(facts))),
        *([("Answers to the questions", _answers(facts))] if _has_answers(facts.run) else []),
        *([("The synthetic table", _list(_about(facts.run)))] if (facts.run / plain.ROWS).exists() else []),
        ("Utility and cost", _utility(facts)),
        ("Versions and digests", _digests(facts)),
    ]
    body = "".join(
        f'<section aria-labelledby="s{k}"><h2 id="s{k}">{k}. {escape(name)}</h2>{content}</section>\n'
        for k, (name, content) in enumerate(sections, 1)
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><header><h1>{escape(title)}</h1>"
        f'<p class="dim">{escape(_summary(facts))}</p></header>\n<main>{body}</main>\n{_signatures()}</body></html>\n'
    )


def write_page(facts: Facts, path: Path) -> None:
    """Writes the page whole or not at all."""
    write_file(path, page(facts))


def _summary(facts: Facts) -> str:
    report = facts.report
    who = f"{report['parties']} parties" if report["engine"] == "mpc" else "one process, without parties"
    if not facts.of_records:
        what = f"{report['owners']} owners' vectors; {report['iterations']} releases"
    elif not facts.trains:
        made = ("answers", "a synthetic table")[(facts.run / plain.ROWS).exists()]
        what = f"{made} of {report['owners']} owners from {('one release', 'releases')[made != 'answers']}; "
        what += _counted(facts)
    else:
        what = (
            f"{report['owners']} owners, {_counted(facts)}; method {report['method']}, "
            f"{report['iterations']} iterations"
        )
    return f"{what}, computed by {who}; finished {facts.finished:%Y-%m-%d %H:%M} UTC"


def _counted(facts: Facts) -> str:
    return f"{sum(facts.report['owner_sizes']):,} {words.sized(facts)}"


def _plain(facts: Facts) -> str:
    readings = plain.readings(facts)
    head = ("False alarms", "Hits, at most", "Hits by throwing dice")
    table = grid(f"How often the best test for one {plain.unit(facts)} can hit", head, readings) if readings else ""
    trust = grid("Whom one must trust, and for what", ("Whom", "For what", "Else"), plain.trust(facts))
    return (
        f"<h3>What happened</h3>{_list(plain.what_happened(facts))}"
        f"<h3>What an outsider could learn at worst</h3>{_list(plain.at_worst(facts))}{table}"
        f"<h3>Trust</h3>{trust}<h3>What was verified, and by whom</h3>{_list(plain.verdicts(facts))}"
        '<p class="dim">What follows is the technical annex.</p>'
    )


def _promise(facts: Facts) -> str:
    privacy = facts.report["privacy"]
    none = privacy["epsilon"] is None
    figures = (
        "No promise: no noise was added"
        if none
        else f"epsilon = {privacy['epsilon']:.6g}, delta = {privacy['delta']:.3g}"
    )
    sentences = "".join(f"<p>{escape(text)}</p>" for text in words.promise(facts))
    return (
        f'<div class="promise{" none" * none}"><p><strong>{escape(figures)}</strong></p>{sentences}</div>'
        f"<h3>Neighbours</h3><p>{escape(privacy['neighbours'])}</p>"
        f"<h3>Not promised</h3>{_list(words.not_promised(facts))}"
    )


def _warnings(facts: Facts) -> str:
    found = facts.report["warnings"]
    if not found:
        return "<p>None.</p>"
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in found)


def _who(facts: Facts) -> str:
    rows = words.who_sees(facts)
    return (
        grid("Who could see what in this run", ("Who", "Could see", "Could not see"), rows)
        + f"<h3>Against whom</h3>{_list(words.against(facts))}"
    )


def _verified(facts: Facts) -> str:
    rows = []
    for kind in KINDS:
        found, (shows, cannot) = facts.evidence.get(kind), words.SHOWS[kind]
        verdict = '<span class="dim">not done</span>'
        if found is not None:
            checks = found["checks"]
            good = sum(bool(check["holds"]) for check in checks)
            alarm = f", false alarm below {found['false_alarm']:.1g}" if found["false_alarm"] else ""
            name = "good" if found["holds"] else "bad"
            word = "holds" if found["holds"] else "FAILS"
            verdict = f'<span class="{name}">{word}</span>: {good} of {len(checks)} checks{alarm}'
        rows.append(
            f'<tr><th scope="row">{kind}</th><td>{verdict}</td><td data-name="Shows">{escape(shows)}</td>'
            f'<td data-name="Cannot show">{escape(cannot)}</td></tr>'
        )
    missing = [kind for kind in KINDS if kind not in facts.evidence]
    hint = f"<p>Not done: {', '.join(missing)}. <code>dpmpc verify</code> does them.</p>" if missing else ""
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
        f'<p>{source}</p>{hint}<div class="words"><table><caption>Lines of evidence</caption><thead><tr>'
        '<th scope="col">Evidence</th><th scope="col">Verdict</th><th scope="col">Shows</th>'
        f'<th scope="col">Cannot show</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        + "".join(f'<p class="warning">{escape(text)}</p>' for text in failed)
        + _sent(facts)
        + f"<p>{escape(words.NEVER)}</p>"
    )


def _sent(facts: Facts) -> str:
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
    return grid("Verdicts that others sent: each is the word of whoever made it", head, rows)


def _budget(facts: Facts) -> str:
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
    return grid(
        f"Spent on the same data ({facts.plan.data_id[:16]}…), as the ledgers below the folder "
        f"“{budget.folder.name}” have it",
        ("When", "Runs", "Releases", "epsilon", "delta"),
        rows,
    )


def _data(facts: Facts) -> str:
    report, schema = facts.report, facts.schema
    sizes = report["owner_sizes"]
    spread = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    if not facts.of_records:
        return _table("The vectors", words.vectors(facts))
    rows = [
        ("Data", report["data"]),
        ("Owners", f"{report['owners']:,}, with {spread} {words.sized(facts)} each"),
        ("For training" if facts.trains else "In all", f"{sum(sizes):,} {words.sized(facts)}"),
        ("Shape", features_of(report) if facts.trains else f"{facts.plan.dimension:,} counts"),
        ("Weights of owners", report["weights"]),
        ("Constants of the schema", _BOUNDS[report["privacy"]["bounds"]]),
    ]
    if schema is None:
        return _table("The records", rows)
    rows.append(("Digest of the schema", schema.digest))
    return _table("The records", rows) + _schema(schema, (report.get("columns") or {}).get("left_out", {}))


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
        grid("Columns, as every owner maps them", ("Column", "Kind", "Values"), rows)
        + f"<p>{one}Missing values are {filled}. Each record is then scaled into the unit ball.</p>"
    )


def _surveyed(column: Surveyed) -> str:
    found = ([f"{column.low:g} to {column.high:g}"] if column.number else []) + (
        [f"{len(column.kept)} of {column.buckets} buckets of texts"] if column.kept else []
    )
    return ", ".join([*found, *(["whether it is missing"] if column.missing else [])]) or "nothing"


def _has_answers(run: Path) -> bool:
    return not (run / plain.ROWS).exists() and ((run / ASKED_FIRST).exists() or (run / ANSWERS).exists())


def _about(run: Path) -> list[str]:
    """What a synthetic table says of itself."""
    return list(loads((run / plain.ROWS).read_text(encoding="utf-8"))["about"])


def _answers(facts: Facts) -> str:
    """What was asked, alone or before training, of all records."""
    from dpmpc.runs.stats import reopened  # which few pages need

    return f'<div class="wide">{reopened(facts.run).part()}</div>'


def _utility(facts: Facts) -> str:
    report, rows = facts.report, facts.history
    if not facts.trains:
        if facts.of_records:
            return "<p>Intervals beside the answers say how far the noise may move them.</p>"
        return "<p>The vectors' use is their caller's; this run opened their sums.</p>"
    utility, figures = report["utility"], []
    text = figures_part(report)
    if not text:
        text = "<p>Not computed: the records were not at hand, or it was left out.</p>"
    if utility is not None:
        values = [("Training loss", f"{utility['train_loss']:.4f}", f"{utility['nonprivate']['train_loss']:.4f}")]
        text += '<p class="warning">Computed from plain records of a local run: outside the promise.</p>' + grid(
            "Training", ("Figure", "Private", "Without privacy"), values
        )
        mark = averaging_begins(report)
        figures = [_figure(label, curve) for label, curve in curves_of(rows, report)]
        if mark is not None and figures:
            text += (
                f"<p>Until iteration {mark - 1} the curves show the iterate; from {mark} on the average of the "
                "iterates since then, which is the model. Averaging takes noise out, so the curves jump there.</p>"
            )
    if facts.schema is not None and facts.schema.basis == "additive":
        pictures = "".join(_figure(label, svg) for label, svg in charts(read_model(facts.run).additive))
        text += f'<h3>What each column adds to the score</h3><div class="pair">{pictures}</div>'
    parts, beside = costs_of(rows, report["cost"])
    figures.append(_figure("Where the time went", bars("seconds", parts)))
    cost = report["cost"]
    lines = [("In all", duration(cost["wall_s"])), ("Start, load, evaluate", duration(beside))]
    if cost["bytes_sent"]:
        lines += [
            ("Sent by a party", f"{max(cost['bytes_sent']):,} bytes in {cost['rounds']:,} rounds"),
            ("Memory of a party", f"{max(cost['peak_memory']) / 1e6:.0f} MB"),
        ]
    return f'{text}<div class="pair">{"".join(figures)}</div>{_table("Cost", lines)}'


def _digests(facts: Facts) -> str:
    ran = facts.report.get("software")
    if ran == dict(facts.versions):
        versions = _table("Versions that ran, and that made this page", facts.versions)
    else:
        versions = _table("Versions that ran", list((ran or {"dpmpc": "not noted"}).items()))
        versions += _table("Versions that made this page", facts.versions)
    rows = [("plan, as the processes compared it", facts.plan_digest), *facts.digests]
    files = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><code>{escape(digest)}</code></td></tr>' for name, digest in rows
    )
    return (
        f"{versions}<table><caption>SHA-256 of what this page rests on; signing the page signs these</caption><thead>"
        f'<tr><th scope="col">File</th><th scope="col">SHA-256</th></tr></thead><tbody>{files}</tbody></table>'
    )


def _signatures() -> str:
    fields = ("Name and role", "Place and date", "Signature", "Remarks")
    lines = "".join(f"<div>{field}</div>" for field in (*fields, *fields))
    return f'<footer><h2>Signatures</h2><div class="sign">{lines}</div></footer>'


def _figure(name: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>"


def _list(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def _table(caption: str, rows: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(str(v))}</td></tr>' for k, v in rows)
    return f"<table><caption>{escape(caption)}</caption><tbody>{cells}</tbody></table>"
