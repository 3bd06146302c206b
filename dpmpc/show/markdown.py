"""Tables as Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a head; its last line ends too."""
    rule = "|".join(["", *(" --- " for _ in head), ""])
    return "\n".join([_pipes(head), rule, *map(_pipes, rows), ""])


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(cell: str) -> str:
    """A text that stands for itself: what would be a cell, markup or a link is escaped."""
    return cell.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("](", "]\\(")
