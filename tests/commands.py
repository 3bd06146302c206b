"""The command line's own parser, for commands that stand in pages and files."""

from typing import Any

from dpmpc.cli import main as cli


def parsed(words: list[str]) -> dict[str, Any]:
    """The values that click gives the command of these words. Errors: it does not know them."""
    context = cli.group.make_context("dpmpc", words, resilient_parsing=False)
    name, command, rest = cli.group.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    inner = command.make_context(name, rest, parent=context)
    if hasattr(command, "resolve_command"):
        _, deeper, rest = command.resolve_command(inner, [*inner._protected_args, *inner.args])
        inner = deeper.make_context("", rest, parent=inner)
    return dict(inner.params)
