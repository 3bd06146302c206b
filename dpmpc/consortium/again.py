"""A process that is lost before anything was spent has not come yet: the others meet again, and wait for it.

What is done again is what the same command would do that is started again, which holds at every moment: attempts have
numbers and streams of their own, and what a ledger counts is spent.
"""

import time
from collections.abc import Callable

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.abort_reason import is_loss

PAUSE = 1.0  # seconds, in which others notice it too


def until_begun(
    part: Callable[[bool], None],
    spent: Callable[[], int],
    seconds: float,
    say: Callable[[str], None],
    pause: float = PAUSE,
) -> None:
    """Does this process's part of a meeting, `part(again)`. `spent`: how many releases its ledger counts now. Within
    `seconds` from the start a loss before the first of them is said, and all meet again. Errors: as `part`."""
    end, again = time.monotonic() + seconds, False
    while True:
        before = spent()
        try:
            part(again)
            return
        except PeerError as error:
            if not is_loss(error) or spent() != before or time.monotonic() >= end:
                raise
            say(f"nothing was spent yet, so all meet again: {error.message}")
        time.sleep(pause)
        again = True
