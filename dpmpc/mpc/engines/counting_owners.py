"""What checks of owners cost the parties, exactly: arithmetic, nothing is run."""

from dpmpc.circuits.in_range import all_program, small_program
from dpmpc.mpc.backend import Counts
from dpmpc.mpc.backends.shares import WORD
from dpmpc.mpc.engines.checked_rounds import COIN as PIECE
from dpmpc.mpc.engines.checked_rounds import DIGEST
from dpmpc.mpc.engines.counting import CountingBatch
from dpmpc.mpc.engines.counting_checked import CountingChecked
from dpmpc.mpc.engines.lanes import words_for
from dpmpc.mpc.engines.layout import Layout
from dpmpc.mpc.engines.owners import COIN
from dpmpc.mpc.engines.square_fold import SquareStages
from dpmpc.mpc.owner_checks import NormTest, OwnerTest


class _Exchanges:
    """Counts the exchanges of one channel."""

    def __init__(self, parties: int) -> None:
        self.parties, self.rounds = parties, 0
        self.bytes, self.messages = [0] * parties, [0] * parties

    def add(self, senders: range | tuple[int, ...], receivers: tuple[int, ...] | range, size: int) -> None:
        """A round in which each of some parties sends so many bytes to each of some others."""
        self.rounds += 1
        for i in senders:
            copies = sum(j != i for j in receivers)
            self.messages[i] += copies
            self.bytes[i] += copies * size

    def add_ring(self, size: int) -> None:
        """A round in which each party sends so many bytes to one other."""
        self.rounds += 1
        for i in range(self.parties):
            self.messages[i] += 1
            self.bytes[i] += size

    def counts(self) -> Counts:
        return Counts(self.rounds, tuple(self.bytes), tuple(self.messages))


def count_owner_checks(
    test: OwnerTest, parties: int, threshold: int, *, dealt: bool = False, checked: bool = False
) -> tuple[Counts, ...]:
    """By channel. `dealt`: random sharings come by messages; `checked`: parties compare what they saw, and check their
    products."""
    everybody, channel = range(parties), _Exchanges(parties)
    channel.add(everybody, everybody, COIN)
    channel.add(everybody, everybody, COIN)
    if checked:
        channel.add(everybody, everybody, DIGEST)
    if dealt:
        channel.add(range(threshold + 1), everybody, WORD * test.owners * test.sums)
    channel.add(everybody, everybody, WORD * test.owners * test.sums)
    if checked:
        channel.add(everybody, everybody, DIGEST)
    if test.norms is None:
        return (channel.counts(),)
    layout, kinds = Layout.of(parties, threshold), test.norms.projections + 1
    senders = everybody if checked else layout.product_senders
    channel.add(senders, layout.opened_to, WORD * kinds * test.owners)
    others = tuple(j for j in everybody if j not in layout.opened_to)
    channel.add(layout.opened_to if checked else layout.opened_to[:1], others, WORD * words_for(test.owners))
    if checked:
        channel.add(everybody, everybody, DIGEST)
    compared, joined = count_programs(test.norms, test.owners, parties, threshold, checked=checked)
    if not checked:
        return channel.counts(), _of(compared), _of(joined)
    return channel.counts(), _of(compared), _of(joined), _squares(test)


def _squares(test: OwnerTest) -> Counts:
    """The check of the sums of squares, among three parties."""
    channel, everybody = _Exchanges(3), range(3)
    stages = SquareStages.of(test.owners, test.dimension)
    for words in (test.owners, *stages.messages):
        channel.add_ring(WORD * words)
        channel.add_ring(PIECE)
    for size in (DIGEST, 3 * WORD, DIGEST):
        channel.add(everybody, everybody, size)
    return channel.counts()


def count_programs(
    norms: NormTest, owners: int, parties: int, threshold: int, *, checked: bool = False
) -> tuple[CountingBatch, CountingBatch]:
    """The comparisons, a lane a number of an owner; what joins them, a lane an owner, with its opening."""
    kinds, make = norms.projections + 1, CountingChecked if checked else CountingBatch
    compared = make(kinds * owners, parties, threshold)
    widths = sorted((norms.width, norms.square_width))
    compared.add_program(small_program(compared.masks, (widths[0], widths[1])))
    joined = make(owners, parties, threshold)
    joined.add_program(all_program(kinds))
    joined.add_reveal(1)
    return compared, joined


def _of(batch: CountingBatch) -> Counts:
    return Counts(batch.rounds, tuple(batch.bytes_sent), tuple(batch.messages_sent), {"ands": batch.ands})
