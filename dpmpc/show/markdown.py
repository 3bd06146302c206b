"""Tables as Markdown."""

from collections.abc import Collection, Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], inner: Collection[int] = ()) -> str:
    """A table with a head; its last line ends too. `inner`: the rows that are moved in."""
    rule = "|".join(["", *(" --- " for _ in head), ""])
    return "\n".join([_pipes(head), rule, *(_pipes(row, k in inner) for k, row in enumerate(rows)), ""])


def _pipes(cells: Sequence[str], moved_in: bool = False) -> str:
    return f"| {'&emsp;' * moved_in}{' | '.join(map(_plain, cells))} |"


def _plain(cell: str) -> str:
    """A text that stands for itself: what would be a cell, markup or a link is escaped."""
    return cell.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("](", "]\\(")
