"""Shares in F_p become bits that are shared in F_2 among parties of which t may do anything: as `replicated.unmasking`,
of shares of degree t, from all parties, which must be of one polynomial."""

from dpmpc.errors import PeerError
from dpmpc.mpc.checked.executor import CheckedBatch
from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.residues import failing, recombine
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.replicated.layout import Subset
from dpmpc.mpc.replicated.unmasking import Unmasking


class CheckedUnmasking(Unmasking):
    """As `Unmasking`; what fails is final."""

    def __init__(self, session: CheckedSession, channel: Channel) -> None:
        super().__init__(session, channel)
        self.session: CheckedSession = session

    def batch(self, ident: int, lanes: int) -> CheckedBatch:
        """What is given to it is the same at honest holders: masks come from agreed keys, an opened number is on one
        polynomial with the shares of all honest parties, and of a checked result holders have compared all."""
        return CheckedBatch(self.session, ident, lanes, compared=True)

    def broken(self, what: str, party: int) -> PeerError:
        return self.session.cheat(what, party)

    async def open(self, mine: Words) -> tuple[Words | None, dict[Subset, Words]]:
        """As `Unmasking.open`, of shares of degree t, from all. Errors: CheatError for shares on no polynomial."""
        n, me, seers = self.session.parties, self.session.party, self.layout.opened_to
        masks = {
            s: field.uniform(self.session.stream(s, domains.OWNER_MASK_CHECKED, self.channel.ident), (mine.size,))
            for s in self.session.mine
            if s != seers
        }
        flat = mine
        for s, mask in masks.items():
            flat = field.add(flat, field.mul(mask, field.subset_weight(s, n, me)))
        incoming = [j for j in range(n) if j != me] if me in seers else []
        received = await self.channel.words({j: flat for j in seers if j != me}, incoming, flat.size)
        if me not in seers:
            return None, masks
        theirs = dict(zip(incoming, received, strict=True))
        self.check_words(theirs)
        shares = {me: flat, **theirs}
        if failing(shares, self.session.threshold):
            raise self.session.cheat("that the masked numbers of owners are on one polynomial")
        first = sorted(shares)[: self.session.threshold + 1]
        return recombine([shares[k] for k in first], first), masks
