"""The summary that is printed at the end of a run: lines of its report."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmpc.errors import any_of, number_of, some
from dpmpc.show.figures import figure_lines

Line = tuple[str, str]  # what, value


def summary(report: dict[str, Any], run: Path) -> list[Line]:
    """The lines printed at the end of a run whose directory is `run`."""
    cost = report["cost"]
    lines = [
        *_who(report),
        *_security(report),
        *_advised(report),
        *_guarantee(report["privacy"]),
        *figure_lines(report),
        *_loss(report["utility"]),
    ]
    median = cost["per_iteration_s"]["median"]
    each = "" if median is None else f", {median:.1f} s" if median >= 1 else f", {1000 * median:.1f} ms"
    each += " an iteration" if each else ""
    lines.append(("time", f"{cost['wall_s']:.1f} s in all; noise ahead {cost['offline_s']:.2f} s{each}"))
    if cost["bytes_sent"]:
        lines.append(
            ("traffic", f"{max(cost['bytes_sent']) / 1e6:.2f} MB sent by a party, {number_of(cost['rounds'], 'round')}")
        )
    if "presence" in report:
        gone = len(report["presence"]["missing"])
        lines.append(("owners", f"missing in {gone} of {report['presence']['releases']} releases; see the report"))
    lines += _owners_checked(report)
    lines += [("warning", text) for text in report["warnings"]]
    lines.append(("report", str(run / "report.json")))
    return lines


def _who(report: dict[str, Any]) -> list[Line]:
    """Whose data, and computed by whom."""
    m, sizes = report["owners"], report["owner_sizes"]
    spread = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)}-{max(sizes)}"
    parties = f"{report['parties']} parties, threshold {report['threshold']}{_transfers(report)}"
    who = parties if report["engine"] == "mpc" else "no MPC (engine clear)"
    return [
        (
            "data",
            f"{report['data']}: {sum(sizes)} {_counted(report)} of {m} owners ({spread} each), {features_of(report)}",
        ),
        *_named(report.get("owner_names"), sizes),
        *_columns(report.get("columns")),
        ("computed by", f"{who}; {_releases(report['iterations'])}, method {report['method']}"),
    ]


def _columns(columns: dict[str, Any] | None) -> list[Line]:
    """The columns that are not used, by their public reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in (columns or {}).get("left_out", {}).items():
        reasons.setdefault(reason, []).append(name)
    return [("left out", f"{some(names, len(names))}: {reason}") for reason, names in reasons.items()]


def _releases(count: int) -> str:
    return f"{count} release{'s' if count != 1 else ''}"


def _advised(report: dict[str, Any]) -> list[Line]:
    """Of a run whose parameters were chosen by the adviser, or of which it says what to expect."""
    if report.get("advice") is None:
        return []
    best = report["advice"]["advice"]
    step = "" if best["step"] is None else f", step {best['step']:.3g}"
    if best.get("momentum"):  # reports of older runs have none
        step += f", momentum {best['momentum']:.2g}"
    misses = f"to miss {best['left']:.1%} of what there is to learn"
    if not report["advice"]["followed"]:
        return [("expected", f"{misses} (rehearsed on synthetic records)")]
    return [("advised", f"method {best['method']}, {_releases(best['iterations'])}{step}; expected {misses}")]


_SURVEYED = "the survey of how columns are spread"


def _guarantee(privacy: dict[str, Any]) -> list[Line]:
    """What is promised, on what assumptions, and by which noise."""
    if privacy["epsilon"] is None:
        return [("guarantee", privacy["statement"].removeprefix("guarantee: "))]
    known = f"epsilon = {privacy['epsilon']:.6g}, delta = {privacy['delta']:.3g} for the whole run"
    lines = [("guarantee", known)]
    if privacy["assumptions"]:
        lines = [("guarantee, if", f"{' and '.join(privacy['assumptions'])}: {known}")]
    if "paper" in privacy:
        claim = f"claims epsilon = {privacy['paper']['claims']['epsilon']:g}"
        lines.append(("the paper's formula", f"{claim}; the line above is what its scale really gives"))
    for share, what in (("questions_share", "the questions"), ("survey_share", _SURVEYED)):
        if taken := privacy.get(share):  # reports of older runs have no questions
            lines.append(("", f"{what} included, with {taken:.0%} of the budget (of mu squared)"))
    lines += [("", each) for each in privacy.get("earlier", ())]  # reports of older runs have none
    lines.append(("neighbours", privacy["neighbours"]))
    scale = f"{privacy['noise_law']}, scale {privacy['noise_scale']:.4g} a coordinate of the mean"
    lines.append(("noise", f"{scale}; sensitivity {privacy['sensitivity']['l2']:.4g}"))
    return lines


def _loss(utility: dict[str, Any] | None) -> list[Line]:
    """The training loss, where it was looked at; outside the guarantee."""
    if utility is None:
        return []
    loss, plain = utility["train_loss"], utility["nonprivate"]["train_loss"]
    return [("training loss", f"{loss:.4f} (without noise {plain:.4f}); outside the guarantee")]


def features_of(report: dict[str, Any]) -> str:
    """How many features a record has, and how many classes there are if more than two numbers hang on that."""
    scores = report["learning"].get("scores", 1)
    if scores == 1:
        return number_of(report["dimension"], "feature")
    return f"{number_of(report['dimension'] // scores, 'feature')}, {scores} classes"


def _counted(report: dict[str, Any]) -> str:
    """What sizes are numbers of: of places, where some may be empty."""
    unit = report["privacy"]["neighbours"]
    return "places for records" if "person" in unit or "places" in unit else "records"


def _named(names: Sequence[str] | None, sizes: Sequence[int]) -> list[Line]:
    """The line that lists owners by name."""
    if not names:
        return []
    shown = [f"{name} ({size})" for name, size in zip(names, sizes, strict=True)][:20]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return [("owners", ", ".join(shown) + more)]


def _security(report: dict[str, Any]) -> list[Line]:
    """Of a run whose parties were checked."""
    section = report.get("security")
    if section is None or section["mode"] != "active":
        return []
    bits = section.get("undetected_bits")
    found = "" if bits is None else f"; a cheat passes with probability 2^-{bits:.1f} at most, all attempts together"
    return [("security", f"parties were checked (active): {any_of(section['threshold'])} may cheat{found}")]


def _transfers(report: dict[str, Any]) -> str:
    """How two servers compute; nothing for other backends."""
    k = report.get("transfers_k")
    return "" if k is None else f", {report['backend']} with k = {k}"


def _owners_checked(report: dict[str, Any]) -> list[Line]:
    """Of a run whose owners were checked: what, and who failed how often."""
    section = report.get("owners_checked")
    if section is None:
        return []
    names = report.get("owner_names") or [f"owner {j}" for j in range(report["owners"])]
    times = Counter(j for failed in section["failed"].values() for j in failed)
    who = ", ".join(f"{names[j]} in {count}" for j, count in sorted(times.items())) or "none failed"
    what = "shares and norms" if "norms" in section["checks"] else "shares, not norms,"
    then = "one that fails ends the run" if section["mode"] == "stop" else "failed, and counted as zero"
    return [("owners checked", f"{what} in {section['releases']} releases; {then}: {who}")]
