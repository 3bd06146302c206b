"""Where events of a kind stand among those of a release."""

from dpmpc.verify.run_files import Event


def count_of(events: list[Event], kind: str) -> int:
    """How many there are."""
    return sum(event["event"] == kind for event in events)


def first_of(events: list[Event], kind: str, default: int) -> int:
    """The place of the first one, else `default`."""
    return next((k for k, event in enumerate(events) if event["event"] == kind), default)


def last_of(events: list[Event], kind: str) -> int:
    """The place of the last one, else -1."""
    return max((k for k, event in enumerate(events) if event["event"] == kind), default=-1)
