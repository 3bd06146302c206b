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
JOIN = -11  # with which release it may begin; in the other direction, with which it does
NUMBER = -12  # between parties that agree on an attempt: the next one's number
STANDING = -13  # and what each knows of the run
PAST = -14  # opened vectors that another party lacks
SPENT = -15  # an owner: how many releases have a line in its own ledger
BEGIN = -16  # to owners: the attempt, and which releases were opened before it
KEYS_SHOWN = -17  # after promises of them, under KEYS
KEYS_SAME = -18
DRAWN = -19  # between parties of an attempt: random bytes, of which all make its token
ACCOUNT = -20  # to an owner: the head of its account that is remembered; from it: what shows that it goes on from there
NOTICES = -(1 << 20)  # and below: the parties that another one has lost

# channels between parties
OPENING = 1000  # + release
NOISE = 1 << 24  # + batch
OWNERS = 1 << 28  # + OWNERS_EACH * release: checks of owners
OWNERS_EACH = 4  # channels a release
PRESENCE = 1 << 29  # + release: whose shares are here
BARRIER = 5 << 27  # + channel of an opening: all inputs are here, at all parties
AGAIN = 3 << 28  # + release: shares for those who lost who would have sent theirs
DECIDED = 7 << 27  # and on: a release's decisions; there is one release then
WARM_UP = 1 << 30  # + batch, of measurements; a run's noise ends far below
# Channels have room for NOISE - OPENING; but whoever counts what is planned reads releases one by one, and with 16
# million of them no party began within a minute.
MOST_RELEASES = 1 << 18

_BLOCK_BITS = 20
MOST_BLOCKS = (1 << _BLOCK_BITS) - 1


def exchange_label(channel: int, number: int) -> int:
    """The label of a channel's exchange of this number."""
    return channel << 32 | number


def notice_label(number: int) -> int:
    """The label of the notice of this number; nobody is waited for who sends none."""
    return NOTICES - number


def block_label(release: int, block: int) -> int:
    """The label of a block of owners' shares; with block -1, of the opened release in the other direction."""
    assert 0 <= block + 1 <= MOST_BLOCKS
    return (release + 1) << _BLOCK_BITS | (block + 1)


def heads_label(release: int) -> int:
    """The label of what a party remembers of accounts before a release, for whoever carries owners' sealed shares."""
    return block_label(release, MOST_BLOCKS - 1)
