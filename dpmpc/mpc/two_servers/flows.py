"""The messages of a batch of transfers between two servers: corrections, challenges, answers. Nothing that depends on a
string leaves an offerer before the chooser's answer was right."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.two_servers.extension import ChosenBatch, Take
from dpmpc.mpc.two_servers.pair import ServerPair

Words = NDArray[np.uint64]

FLOWS = 3  # of a batch


@dataclass(frozen=True)
class Wanted:
    """Transfers of one direction: `slots` of 64 `words` each, the strings of the last `wide` with 128 bits."""

    slots: int
    words: int
    take: Take
    wide: int = 0


async def begun(pair: ServerPair, channel: Channel, slots: int, words: int, part: int = 0) -> ChosenBatch:
    """The transfers in which this party chooses, with what it sends first. Sends nothing."""
    assert pair.chooser is not None, "the parties are not connected"
    return await pair.work(partial(pair.chooser.begin, channel.ident, slots, words, part))


async def transfers(
    pair: ServerPair,
    channel: Channel,
    mine: Wanted | None,
    theirs: Wanted | None,
    part: int = 0,
    chosen: ChosenBatch | None = None,
) -> Words:
    """The choices (slots, words) of the transfers in which this party chooses, `mine`; in `theirs` it offers. `chosen`:
    those of `mine`, where they were begun.

    Cost: three flows, with a message each way where there are transfers both ways. Errors: CheatError where the other's
    corrections were inconsistent; all is over then. PeerError for messages of another length.
    """
    pair.still_on()
    other, number, offerer = pair.other, channel.ident, pair.offerer
    assert offerer is not None, "the parties are not connected"
    offering, choosing = [other] * (theirs is not None), [other] * (mine is not None)
    if mine and chosen is None:
        chosen = await begun(pair, channel, mine.slots, mine.words, part)
    corrections = await channel.exchange({other: chosen.correction} if chosen else {}, offering)
    offered = offerer.begin(number, theirs.slots, theirs.words, corrections[0], part) if theirs else None
    challenges = channel.exchange({other: offered.challenge} if offered else {}, choosing)
    if offered and theirs:  # while the challenges are under way
        await pair.work(partial(offered.make, theirs.take, theirs.wide))
    answers = {}
    for challenge in await challenges:
        assert chosen is not None and mine is not None
        answers[other] = await pair.work(partial(chosen.answer, challenge, mine.take, mine.wide))
    for answer in await channel.exchange(answers, offering):
        if offered is not None and not offered.holds(answer):
            raise pair.cheat("corrections of oblivious transfers", other)
    pair.still_on()
    return chosen.choices if chosen else np.zeros((0, 0), dtype=np.uint64)
