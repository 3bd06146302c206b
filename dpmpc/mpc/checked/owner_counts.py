"""What checks of owners cost parties that check each other too, exactly: arithmetic, nothing is run."""

from dpmpc.mpc.checked.coins import COIN as PIECE
from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.rounds import DIGEST
from dpmpc.mpc.checked.square_fold import square_stages
from dpmpc.mpc.contract.backend import Counts
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.owner_checks.counts import Exchanges, count_shares
from dpmpc.mpc.parties.promised_coins import PART
from dpmpc.mpc.replicated.layout import SharingLayout
from dpmpc.mpc.replicated.owner_counts import add_sums, count_programs, counts_of


def count_checked(test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
    """By channel: shares and sums of squares; the comparisons; what joins them; the check of the squares."""
    channel, everybody = count_shares(test, parties, threshold, digest=DIGEST), range(parties)
    if test.norms is None:
        return (channel.counts(),)
    layout = SharingLayout.of(parties, threshold)
    add_sums(channel, test, layout, everybody, layout.opened_to)
    channel.add(everybody, everybody, DIGEST)
    compared, joined = count_programs(CountingChecked, test.norms, test.owners, parties, threshold)
    return channel.counts(), counts_of(compared), counts_of(joined), _squares(test, layout)


def _squares(test: OwnerTest, layout: SharingLayout) -> Counts:
    """The check of the sums of squares."""
    assert test.norms is not None
    channel, everybody = Exchanges(layout.parties), range(layout.parties)
    stages = square_stages(test.owners, *test.norms.lengths)

    def coin() -> None:
        if layout.parties == 3:
            channel.add_each(PIECE, 1)
        else:
            channel.add(everybody, everybody, PART)

    if layout.parties > 3:
        channel.add(everybody, everybody, PART)
    for words in (test.owners * len(test.norms.bounds), *stages.messages):
        channel.add_each(WORD * words, len(layout.receivers(0)))
        coin()
    for size in (*[DIGEST] * (1 if layout.parties == 3 else 2), 3 * WORD, DIGEST):
        channel.add(everybody, everybody, size)
    return channel.counts()
