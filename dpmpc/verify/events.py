"""Where events of a kind stand among those of a release. A check asks for some hundred thousand: lists of kinds are
made and searched by the interpreter's own loops."""

from dpmpc.verify.run_files import Event


def kinds_of(events: list[Event]) -> list[str]:
    """The kind of each."""
    return [event["event"] for event in events]


def count_of(events: list[Event], kind: str) -> int:
    """How many there are."""
    return kinds_of(events).count(kind)


def first_in(kinds: list[str], kind: str, default: int) -> int:
    """The place of the first one among these kinds, else `default`."""
    return kinds.index(kind) if kind in kinds else default


def first_of(events: list[Event], kind: str, default: int) -> int:
    """The place of the first one, else `default`."""
    return first_in(kinds_of(events), kind, default)


def last_in(kinds: list[str], kind: str) -> int:
    """The place of the last one among these kinds, else -1."""
    return len(kinds) - 1 - kinds[::-1].index(kind) if kind in kinds else -1
