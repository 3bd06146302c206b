"""What the command line says where nobody does: a delta where noise needs one, a folder for a run."""

import re
from pathlib import Path
from typing import Any

import click

DELTA = 1e-5
DELTA_RULE = f"{DELTA:g} where the noise needs one, as Gaussian noise does; else 0, a pure promise"
OUT = "runs/{}-1, or the first number that is free"


def out_of(command: str) -> Path:
    """A new folder for what a command writes, below the current one."""
    number = 1
    while (folder := Path("runs", f"{command}-{number}")).exists():
        number += 1
    return folder


def with_delta(given: dict[str, Any]) -> None:
    """States delta where none was said, and noise as asked for needs one."""
    from dpmpc.learning.method import DEFAULT_METHOD, METHODS
    from dpmpc.privacy.law import LAWS, law_of_sampler

    if given.get("delta") is not None:
        return
    named = given.get("law") or (law_of_sampler(given["sampler"]) if given.get("sampler") else None)
    method = METHODS[given.get("method") or DEFAULT_METHOD]
    if not LAWS[named or method.law_for(None)].pure:
        given["delta"] = DELTA


def with_delta_rule(options: list[click.Option]) -> list[click.Option]:
    """The options, of which --delta states this surface's default."""
    for each in options:
        if each.name == "delta":
            each.help = re.sub(r"  \[default: .*\]$", f"  [default: {DELTA_RULE}]", each.help or "")
    return options
