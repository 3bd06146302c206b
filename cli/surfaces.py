"""The settings' Python surfaces: keyword lists between markers, written from the declarations.

    python -m dpmpc.cli.surfaces          says which are out of date
    python -m dpmpc.cli.surfaces --write  writes them

A list stands between `# settings: NAME` and `# settings: end`. The table of settings in docs/settings.md is written by
the same command.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.limits import limit_of, limited
from dpmpc.aggregation.plan.of_vectors import OfVectors, VectorSettings
from dpmpc.cli.settings import flags_of
from dpmpc.lazy import dataclass
from dpmpc.runs.request import Request
from dpmpc.settings import Declared, declared, groups

_ABOUT_LIMITS = (
    "What an organisation takes part in, whoever made the plan. They are keys of `limits.toml` and of `[limits]` in\n"
    "`consortium.toml`, keywords of `dpmpc.Limits`; on the command line, options beside `--plan`."
)
_UNSAID = {
    "epsilon": "what the plan states, which it must keep",
    "delta": "what the plan states, below 1/n; a limit on epsilon needs one",
    "neighbours": "what the plan says, but no unit as its author states it; of vectors that a program makes: owner",
    "sensitivity": "goes with `stated`, and is needed there",
    "person_rows": "kept by dpmpc where it reads records; needed where a program makes vectors of persons' records",
    "sampler": "one whose law is proved, or `assumptions`",
    "assumptions": "not allowed",
    "records": "counted by dpmpc where it reads them; needed where a program makes vectors of records",
}
ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/settings.md"
_HERE = "all processes are on this machine"
_OWN = "each process's own, and no part of a plan"
_ARRAYS = "records come as arrays or frames"
_NO_COLUMN = "vectors have no columns; a promise of persons is said by neighbours"
_FILES = (
    "capacity", "data", "csv", "records", "database", "sql", "schema",
    "memory", "precision", "executor", "workers",
    "target", "owners_column", "data_dir", "bounds", "preprocessing", "basis", "missing",
    "drop", "positive", "classes", "test_fraction", "max_rows", "intercept", "official_test", "dimension", "seed",
    "owners", "owner_sizes", "skew", "evaluate", "figures", "baseline", "ids",
)  # fmt: skip


@dataclass(frozen=True)
class Surface:
    """Where a list of keywords stands: its file, the class whose settings it shows, those that it leaves out and why,
    and defaults of its own."""

    file: str
    kind: type
    without: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    limits: bool = False  # of plans, as fields of a class, in place of settings as keywords


_ESTIMATOR = {
    **{name: _ARRAYS for name in _FILES if name not in ("preprocessing", "basis")},
    **dict.fromkeys(("schema", "bounds"), "written out beside the list: an object or a mapping will do too"),
    "intercept": "fit_intercept, as scikit-learn calls it",
    **dict.fromkeys(("owners_column", "owners", "owner_sizes", "skew"), "owners= of fit says whose each row is"),
    **dict.fromkeys(("evaluate", "figures", "baseline", "test_fraction"), "scores are the caller's"),
    "task": "the estimator's class says it",
    "role": _HERE,
    "run_id": "each fit is a run of its own",
    "min_owners": "owners here are all here",
    "release_wait": "owners here are all here",
}
_NO_CLASSES = "a quantity has no classes"
_ESTIMATED = {"delta": "float | None = 1e-5", "data_id": 'str = "records"'}
SURFACES: dict[str, Surface] = {
    "vectors": Surface(
        "dpmpc/aggregation/plan/plan.py", OfVectors, dict.fromkeys(("budget", "account"), _OWN) | {"person": _NO_COLUMN}
    ),
    "aggregator": Surface("dpmpc/aggregation/owner/aggregator.py", OfVectors, {"role": _HERE, "person": _NO_COLUMN}),
    "mean": Surface(
        "dpmpc/aggregation/owner/mean.py",
        OfVectors,
        {"role": _HERE, "releases": "one", "quantile": "one release", "person": _NO_COLUMN},
        {"epsilon": "float"},
    ),
    "train": Surface("dpmpc/runs/trained.py", Request, {}, {"records": "Any = None"}),
    "logistic": Surface(
        "dpmpc/estimators/linear.py", Request, {**_ESTIMATOR, "residual_clip": "of regression"}, _ESTIMATED
    ),
    "ridge": Surface(
        "dpmpc/estimators/regression.py",
        Request,
        {**_ESTIMATOR, "class_weight": _NO_CLASSES},
        _ESTIMATED,
    ),
    "regressor": Surface(
        "dpmpc/estimators/regression.py",
        Request,
        {**{name: why for name, why in _ESTIMATOR.items() if name != "task"}, "class_weight": _NO_CLASSES},
        _ESTIMATED,
    ),
    "limits": Surface("dpmpc/aggregation/plan/limits.py", OfVectors, limits=True),
}


def shown(name: str, surface: Surface) -> list[Declared]:
    """The settings that a surface shows, in order."""
    known = limited() if surface.limits else declared(surface.kind)
    return [each for each in known.values() if each.name not in surface.without]


def keywords(surface: Surface) -> list[str]:
    """The keywords, or fields, as they are written."""
    if surface.limits:
        return [
            f"{each.name}: {type_text(limit_of(each).kind or each.kind)} | None = None" for each in shown("", surface)
        ]
    return [f"{each.name}: {surface.defaults.get(each.name) or _typed(each)}," for each in shown("", surface)]


def _typed(each: Declared) -> str:
    written = type_text(each.kind)
    if each.optional or each.setting.rule:
        return f"{written} | None = None"
    default = f'"{each.default}"' if isinstance(each.default, str) else repr(each.default)
    return f"{written} = {default}"


def type_text(kind: Any) -> str:
    """A type as it is written in source."""
    origin = get_origin(kind)
    if origin is Literal:
        return "Literal[" + ", ".join(f'"{value}"' for value in get_args(kind)) + "]"
    if origin is Union:
        return " | ".join(map(type_text, get_args(kind)))
    if origin is not None:
        inner = ", ".join("..." if arg is Ellipsis else type_text(arg) for arg in get_args(kind))
        return f"{origin.__name__}[{inner}]"
    return str(kind.__name__)


def rewritten(text: str, file: str) -> str:
    """The file's text with today's lists."""
    for name, surface in SURFACES.items():
        if surface.file != file:
            continue
        begin, end = f"# settings: {name}\n", "# settings: end\n"
        at = text.index(begin) + len(begin)
        margin = text[text.rindex("\n", 0, at - len(begin)) + 1 : at - len(begin)]
        stop = text.index(end, at)
        block = "".join(f"{margin}{line}\n" for line in keywords(surface))
        text = text[:at] + block + margin + text[stop:]
    return text


def page() -> str:
    """docs/settings.md: every setting, where it is said, and what holds where it is not."""
    lines = [
        "# Settings",
        "",
        "Every setting is declared once; command line, `consortium.toml`, Python keywords and this page are written",
        "from that. A setting that is not said has its default, or is chosen by the rule in the last column.",
        "`python -m dpmpc.cli.surfaces --write` writes the page, and a test holds it.",
    ]
    both = (*groups(Request), VectorSettings, Here)
    for group in both:
        section = getattr(group, "SECTION", "")
        said = f" In `consortium.toml`: `[{section}]`." if section in ("run", "learning", "privacy", "mpc") else ""
        about = (group.__doc__ or "").strip().partition("\n\n")[0]
        lines += ["", f"## {_title(group)}", "", f"{about}{said}", ""]
        lines += table(group)
    lines += ["", "## Limits", "", _ABOUT_LIMITS, ""]
    lines += ["| key | the plan's must be | what for | where nothing is said |", "| --- | --- | --- | --- |"]
    for name, each in limited().items():
        limit = limit_of(each)
        unsaid = _UNSAID.get(name) or ("anything" if limit.unsaid is None else f"`{limit.unsaid}`")
        lines.append(f"| `{name}` | {limit.says} | {_cell(each.setting.help)} | {_cell(unsaid)} |")
    return "\n".join(lines) + "\n"


def table(group: type) -> list[str]:
    """The settings that the group itself declares, as lines of Markdown."""
    lines = ["| setting | command line | what it is for | default or rule |", "| --- | --- | --- | --- |"]
    for each in declared(group).values():
        if each.group is group:
            flag = "" if group is VectorSettings else f"`{flags_of(each)[0]}`"
            default = each.setting.rule or ("none" if each.default in (None, "", ()) else f"`{each.default}`")
            unit = f" Unit: {each.setting.unit}." if each.setting.unit else ""
            lines.append(f"| `{each.name}` | {flag} | {_cell(each.setting.help + unit)} | {_cell(default)} |")
    return lines


def _title(group: type) -> str:
    if group is Here:
        return "The process"
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", group.__name__.removesuffix("Settings")) or group.__name__
    return words.capitalize()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def stale(write: bool = False) -> Iterator[str]:
    """The files that are out of date; with `write`, they are written."""
    for file in dict.fromkeys(surface.file for surface in SURFACES.values()):
        path = ROOT / file
        text = path.read_text(encoding="utf-8")
        new = rewritten(text, file)
        if new != text:
            yield file
            if write:
                path.write_text(new, encoding="utf-8")
    place = ROOT / PAGE
    if place.parent.is_dir() and (not place.is_file() or place.read_text(encoding="utf-8") != page()):
        yield PAGE
        if write:
            place.write_text(page(), encoding="utf-8")


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> int:
    """The command. Returns 1 where something was out of date and was not written."""
    write = "--write" in arguments
    found = list(stale(write))
    for file in found:
        say(f"{file}: {'written' if write else 'out of date'}")
    return int(bool(found) and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
