"""What checks of owners' shares cost the parties, exactly: arithmetic, nothing is run."""

from dpmpc.mpc.contract.backend import Counts
from dpmpc.mpc.contract.owner_checks import OwnerTest
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.owner_checks.checks import COIN


class Exchanges:
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

    def add_each(self, size: int, copies: int) -> None:
        """A round in which each party sends so many bytes to so many others."""
        self.rounds += 1
        for i in range(self.parties):
            self.messages[i] += copies
            self.bytes[i] += copies * size

    def counts(self) -> Counts:
        """What was added up."""
        return Counts(self.rounds, tuple(self.bytes), tuple(self.messages))


def count_shares(test: OwnerTest, parties: int, threshold: int, *, dealt: bool = False, digest: int = 0) -> Exchanges:
    """Of the check of shares. `dealt`: random sharings come by messages; `digest`: bytes of what parties compare where
    they check each other."""
    everybody, channel = range(parties), Exchanges(parties)
    channel.add(everybody, everybody, COIN)
    channel.add(everybody, everybody, COIN)
    if digest:
        channel.add(everybody, everybody, digest)
    if dealt:
        channel.add(range(threshold + 1), everybody, WORD * test.owners * test.sums)
    channel.add(everybody, everybody, WORD * test.owners * test.sums)
    if digest:
        channel.add(everybody, everybody, digest)
    return channel
