"""The report beside a synthetic table: what it is good for, and how far the table of every pair will be off."""

import json
from collections.abc import Sequence

from dpmpc.show.markdown import table
from dpmpc.synthesis.table import PairError, Structure

_HEAD = ("columns", "off by", "by noise and drawing", "by the model", "in the model")


def as_markdown(lines: Sequence[str], shape: Structure, errors: Sequence[PairError]) -> str:
    """A page of Markdown; the worst pairs first."""
    tree = [f"- {parent} - {child}" for parent, child in shape.tree]
    hub = [f"Every column is joined to the target, {shape.target}, too."] if shape.target else []
    more = ["These pairs too, fitted by Private-PGM:", "", *(f"- {a} - {b}" for a, b in shape.more), ""]
    more = more if shape.more else []
    rows = [
        (f"{a}, {b}", f"{e.whole:.3f}", f"{e.noise:.3f}", f"{e.model:.3f}", "yes" if e.fitted else "no")
        for e in sorted(errors, key=lambda e: -e.whole)
        for a, b in [e.pair]
    ]
    return "\n".join([
        "# A synthetic table", "", *(f"{line}\n" for line in lines), "## Expected errors", "",
        "The total variation, between 0 and 1, between the synthetic table of two columns and that of the records: the",
        "part of the rows that would have to move. No record was looked at for it: the noise's law is known, and what",
        "the model leaves out shows in the noisy tables. A pair's figure is good to a factor of two.",
        "", table(_HEAD, rows), "## The model", "", *hub, "", *tree, "", *more,
    ])  # fmt: skip


def as_json(lines: Sequence[str], shape: Structure, errors: Sequence[PairError]) -> str:
    """The same with all digits."""
    pairs = [
        {"columns": list(e.pair), "off": e.whole, "noise": e.noise, "model": e.model, "in_model": e.fitted}
        for e in errors
    ]
    tree, more = ([list(edge) for edge in edges] for edges in (shape.tree, shape.more))
    whole = {"about": list(lines), "target": shape.target, "tree": tree, "more": more, "pairs": pairs}
    return json.dumps(whole, indent=1) + "\n"
