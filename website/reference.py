"""Pages of the reference, generated from what the code says: commands, public names, files, exit codes."""

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import dpmpc
from dpmpc import errors as kinds
from dpmpc.aggregation.plan.limits import limit_of, limited
from dpmpc.cli import main as cli
from dpmpc.consortium import toml_keys as consortia
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.planning.request import Request
from dpmpc.records import schema as schemas
from dpmpc.settings import declared
from website.raised import escaped, raised, table

ROOT = Path(__file__).resolve().parents[1]
_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": ""}


def version() -> str:
    """Of the project."""
    return dpmpc.__version__


# -- command line ------------------------------------------------------------------------------------------------------
def commands() -> str:
    """Every command with its options, as `--help` says them."""
    parts = [
        "# Command line",
        "",
        "Generated from the commands themselves. `dpmpc COMMAND --help` says the same in a terminal.",
        "`python -m dpmpc` is `dpmpc`. `dpmpc --debug COMMAND` shows tracebacks.",
        "",
        'Completion in the shell, in its start-up file: `eval "$(_DPMPC_COMPLETE=bash_source dpmpc)"`, likewise',
        "`zsh_source`; for fish `_DPMPC_COMPLETE=fish_source dpmpc | source`.",
        "",
    ]
    root = click.Context(cli.group, info_name="dpmpc")
    for name in cli.group.list_commands(root):
        command = cli.group.get_command(root, name)
        assert command is not None
        parts += _command(command, root, name, 2)
    return "\n".join(parts)


def _command(command: click.Command, parent: click.Context, name: str, level: int) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name)
    yield f"{'#' * level} dpmpc {context.command_path.removeprefix('dpmpc ')}"
    yield ""
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield ""
    yield _prose(command.help or "")
    yield ""
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            rows.append((f"`{escaped(record[0])}`", escaped(record[1], code=False)))
    yield from table(("option", "meaning"), rows)
    yield ""
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            deeper = command.get_command(context, inner)
            assert deeper is not None
            yield from _command(deeper, context, inner, level + 1)


def _prose(text: str) -> str:
    r"""The help of a command as Markdown: paragraphs after \b are code, as the terminal shows them."""
    found = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        literal = block.startswith("\b\n")
        found.append(f"```text\n{block[2:]}\n```" if literal else escaped(block, code=False))
    return "\n\n".join(found)


# -- Python ------------------------------------------------------------------------------------------------------------
_GROUPS = {
    "Sums and means": ("private_mean", "Aggregator", "clipped_mean"),
    "Training, predicting, asking": ("train", "predict", "stats", "meet", "account"),
    "Several machines": ("Plan", "Limits", "Owner", "Party", "Site"),
    "What is promised": ("Promise",),
    "Extensions": ("Law", "LAWS", "Method", "METHODS", "Backend", "BACKENDS"),
    "Errors": ("DpmpcError", "UsageError", "PeerError"),
}
_ESTIMATORS = ("dpmpc.estimators.PrivateLogisticRegression", "dpmpc.estimators.PrivateRidge")


def python() -> str:
    """Every public name with its types and words. A public name that has no group stands at the end."""
    lines = ["# Python", "", "Generated from types and docstrings. [Everything from Python](../python.md) is the tour."]
    known = {name for names in _GROUPS.values() for name in names}
    rest = {"More": tuple(name for name in dpmpc.__all__ if name not in known)}
    for title, names in {**_GROUPS, **rest}.items():
        shown = [name for name in names if name in dpmpc.__all__]
        if shown:
            lines += ["", f"## {title}", ""]
            lines += [f"::: dpmpc.{dpmpc._HOMES[name]}.{name}\n" for name in shown]
    lines += ["", "## scikit-learn", ""]
    lines += [f"::: {_home(name)}\n" for name in _ESTIMATORS]
    return "\n".join(lines) + "\n"


def _home(path: str) -> str:
    import importlib

    module, _, name = path.rpartition(".")
    thing = getattr(importlib.import_module(module), name)
    return f"{thing.__module__}.{name}"


# -- files -------------------------------------------------------------------------------------------------------------
def consortium() -> str:
    """consortium.toml: every section and key, and the file that `dpmpc init` writes."""
    made = consortia.editor_schema()
    top = made["$defs"]["ConsortiumFile"]["properties"]
    lines = [
        "# consortium.toml",
        "",
        "Generated from what `dpmpc plan` reads. [Several machines](../consortium.md) shows the file in use.",
        "Unknown keys are refused with the nearest known one and the line.",
    ]
    for name, value in top.items():
        lists = "items" in value
        if name == "source":  # of any package: its fields are those of the source
            lines += ["", "## [source.KIND]", "", "One release of a source by the name of its kind, with its fields."]
            continue
        definition = made["$defs"][_target(value["items"] if lists else value)]
        lines += [
            "",
            f"## [{name}]" if not lists else f"## [[{name}]]",
            "",
            escaped(definition.get("description", ""), code=False),
            "",
        ]
        lines += ["[The keys of limits](limits.md)."] if name == "limits" else _keys(definition)
    lines += ["", "## A new file", "", "As `dpmpc init` writes it:", "", f"```toml\n{text_of(Founding())}```", ""]
    return "\n".join(lines)


def limits() -> str:
    """limits.toml: every key."""
    lines = [
        "# limits.toml",
        "",
        "What an organisation takes part in. A plan that another made is held against it before anything is sent.",
        "It lies in every kit; `dpmpc train --accept FILE` reads it too.",
        "",
    ]
    rows = []
    for name, each in limited().items():
        limit = limit_of(each)
        unsaid = each.setting.rule if limit.unsaid is None else f"`{limit.unsaid}`"
        rows.append((f"`{name}`", limit.says, escaped(each.setting.help, code=False), escaped(unsaid, code=False)))
    lines += table(("key", "the plan's must be", "what it limits", "where nothing is said"), rows)
    return "\n".join([*lines, "", escaped(inspect.cleandoc(dpmpc.Limits.__doc__ or ""), code=False), ""])


def schema() -> str:
    """The public schema of records: every kind of column and target."""
    made = schemas.editor_schema()
    lines = [
        "# Schema of records",
        "",
        "JSON or TOML; `dpmpc describe` drafts one, `dpmpc check` holds records against it.",
        "[Data](../data.md) explains it.",
    ]
    for name, definition in made["$defs"].items():
        kind = definition.get("properties", {}).get("kind", {}).get("enum", [None])[0]
        title = "The whole" if name == "Schema" else f'{name}: kind = "{kind}"'
        lines += ["", f"## {title}", "", escaped(inspect.cleandoc(definition.get("description", "")), code=False), ""]
        lines += _keys(definition)
    return "\n".join(lines) + "\n"


def _keys(definition: Mapping[str, Any]) -> Iterator[str]:
    settings = declared(Request)
    required = definition.get("required", ())
    rows = []
    for name, value in definition["properties"].items():
        known = settings.get(name)
        default = value.get("default")
        meaning = known.setting.help if known is not None else ""
        said = (
            "must be given"
            if name in required
            else (known.setting.rule if known is not None and known.setting.rule else "")
        )
        shown = said or ("" if default in (None, []) or isinstance(default, dict) else f"`{default}`")
        rows.append((f"`{name}`", _type(value), escaped(shown, code=False), escaped(meaning, code=False)))
    yield from table(("key", "is", "without it", "meaning"), rows)


def _type(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if "anyOf" in value:
        return ", ".join(dict.fromkeys(each for each in map(_type, value["anyOf"]) if each))
    if "$ref" in value:
        return f"[{_target(value)}]"
    if value.get("type") == "array":
        inner = _type(value["items"]) if isinstance(value.get("items"), dict) else "numbers"
        return f"list of {inner}"
    if value.get("type") == "object":
        return "table"
    return _WORDS.get(str(value.get("type")), str(value.get("type", "")))


def _target(value: Mapping[str, Any]) -> str:
    """The name of the definition that a value refers to, also where it may be left out."""
    (found,) = (each["$ref"] for each in (value, *value.get("anyOf", ())) if "$ref" in each)
    return str(found).rpartition("/")[2]


# -- failures ----------------------------------------------------------------------------------------------------------
def exit_codes() -> str:
    """What the process returns, from the classes of errors."""
    rows = [("0", "", "done")]
    found = [each for _, each in inspect.getmembers(kinds, inspect.isclass) if issubclass(each, kinds.DpmpcError)]
    for each in sorted(found, key=lambda kind: (kind.exit_code, kind.__name__)):
        rows.append(
            (str(each.exit_code), f"`{each.__name__}`", escaped((each.__doc__ or "").split("\n\n")[0], code=False))
        )
    rows.append(("130", "", "stopped by the user; finished iterations are kept"))
    lines = ["# Exit codes", "", "A failure is one line on standard error: the rule; the value; the way out.", ""]
    return "\n".join([*lines, *table(("code", "class", "when"), rows), ""])


def errors() -> str:
    """Every error that the sources raise: what it says, and the way out."""
    found = raised()
    lines = [
        "# Errors",
        "",
        f"All {sum(map(len, found.values()))} messages that the sources raise, read off them. What stands in braces is",
        "filled in; settings are written as Python spells them, and the command line writes its own flag there.",
        "The last part of a message is the way out. [Exit codes](exit-codes.md) say which class ends how.",
    ]
    for area, messages in found.items():
        lines += ["", f"## {area}", ""]
        lines += table(
            ("message", "way out", "class"), [(each.rule, each.remedy, f"`{each.kind}`") for each in messages]
        )
    return "\n".join(lines) + "\n"
