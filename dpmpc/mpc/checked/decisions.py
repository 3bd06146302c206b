"""Sums of votes are decided among parties of which t may do anything: as `replicated.decisions`; masked numbers are of
one polynomial with the shares of all, the ANDs of every program are checked before the next begins, and nobody has a
share of what is to be opened before all have said that it held."""

from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.checked.unmasking import CheckedUnmasking
from dpmpc.mpc.contract.decisions import Decision
from dpmpc.mpc.replicated.decisions import Deciding


class CheckedDeciding(Deciding):
    """As `Deciding`; what fails is final."""

    def __init__(self, session: CheckedSession, channel: int, decision: Decision) -> None:
        super().__init__(session, channel, decision)
        self.session: CheckedSession = session

    def unmasking(self, ident: int) -> CheckedUnmasking:
        return CheckedUnmasking(self.session, self.session.channel(ident))
