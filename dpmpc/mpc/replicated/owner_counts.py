"""What checks of owners cost parties with replicated shares, exactly: arithmetic, nothing is run."""

from typing import TypeVar

from dpmpc.circuits.in_range import all_program, small_program
from dpmpc.mpc.contract.backend import Counts
from dpmpc.mpc.contract.lanes import words_for
from dpmpc.mpc.contract.owner_checks import NormTest, OwnerTest
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.owner_checks.counts import Exchanges, count_shares
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.layout import SharingLayout

Batch = TypeVar("Batch", bound=CountingBatch)


def count_owner_checks(test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
    """By channel: shares and sums of squares; the comparisons; what joins them."""
    channel = count_shares(test, parties, threshold)
    if test.norms is None:
        return (channel.counts(),)
    layout = SharingLayout.of(parties, threshold)
    add_sums(channel, test, layout, layout.product_senders, layout.opened_to[:1])
    compared, joined = count_programs(CountingBatch, test.norms, test.owners, parties, threshold)
    return channel.counts(), counts_of(compared), counts_of(joined)


def add_sums(
    channel: Exchanges,
    test: OwnerTest,
    layout: SharingLayout,
    senders: range | tuple[int, ...],
    telling: tuple[int, ...],
) -> None:
    """The sums of squares and of halves, opened to some under masks, and the verdicts, which `telling` tell the
    rest."""
    assert test.norms is not None
    channel.add(senders, layout.opened_to, WORD * test.norms.kinds * test.owners)
    others = tuple(j for j in range(layout.parties) if j not in layout.opened_to)
    channel.add(telling, others, WORD * words_for(test.owners))


def count_programs(
    make: type[Batch], norms: NormTest, owners: int, parties: int, threshold: int
) -> tuple[Batch, Batch]:
    """The comparisons, a lane a number of an owner; what joins them, a lane an owner, with its opening."""
    compared = make(norms.kinds * owners, parties, threshold)
    widths = sorted((norms.width, norms.square_width))
    compared.add_program(small_program(compared.masks, (widths[0], widths[1])))
    joined = make(owners, parties, threshold)
    joined.add_program(all_program(norms.kinds))
    joined.add_reveal(1)
    return compared, joined


def counts_of(batch: CountingBatch) -> Counts:
    """A batch's, with its ANDs."""
    return Counts(batch.rounds, tuple(batch.bytes_sent), tuple(batch.messages_sent), {"ands": batch.ands})
