"""The page of all settings, docs/settings.md, as the declarations say it.

python -m dpmpc.cli.surfaces          says whether it is out of date
python -m dpmpc.cli.surfaces --write  writes it
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.limits import limit_of, limited
from dpmpc.aggregation.plan.of_vectors import VectorSettings
from dpmpc.cli.settings import flags_of
from dpmpc.planning.request import Request
from dpmpc.settings import declared, groups

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
    "by_owner": "not allowed; a kit never says it, only the site itself",
    "records": "counted by dpmpc where it reads them; needed where a program makes vectors of records",
}
ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/settings.md"


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


def stale(write: bool = False) -> bool:
    """Whether the page is out of date; with `write`, it is written."""
    place, new = ROOT / PAGE, page()
    if place.is_file() and place.read_text(encoding="utf-8") == new:
        return False
    if write:
        place.write_text(new, encoding="utf-8")
    return True


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> int:
    """The command. Returns 1 where the page was out of date and was not written."""
    write = "--write" in arguments
    found = stale(write)
    if found:
        say(f"{PAGE}: {'written' if write else 'out of date'}")
    return int(found and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
