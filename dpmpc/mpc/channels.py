"""Every number that tells one exchange from another, in one place.

A frame carries a label. Between parties it is a control label below 0, or channel << 32 | round; a channel is used once
an attempt of a run. Between owners and parties it is a control label, or (release + 1) << 20 | (block + 1). Touches
nothing.
"""

# control labels, between parties and between owners and parties
HELLO = -1
END = -2
COST = -3
READY = -4
KEYS = -5
ALIVE = -6  # a heartbeat
REASON = -7  # the last frame of a process that fails: why
CONFIRM = -8
TREES = -9
KNOWN = -10  # an owner that may come late: how many opened releases it has
KEYS_SHOWN = -12  # after promises of them, under KEYS
KEYS_SAME = -13
JOIN = -11  # with which release it may begin; in the other direction, with which it does

# channels between parties
OPENING = 1000  # + release
NOISE = 1 << 24  # + batch
PRESENCE = 1 << 29  # + release: whose shares are here
WARM_UP = 1 << 30  # + batch, of measurements; a run's noise ends far below
MOST_RELEASES = NOISE - OPENING

_BLOCK_BITS = 20
MOST_BLOCKS = (1 << _BLOCK_BITS) - 1


def exchange_label(channel: int, number: int) -> int:
    """The label of a channel's exchange of this number."""
    return channel << 32 | number


def block_label(release: int, block: int) -> int:
    """The label of a block of owners' shares; with block -1, of the opened release in the other direction."""
    assert 0 <= block + 1 <= MOST_BLOCKS
    return (release + 1) << _BLOCK_BITS | (block + 1)
