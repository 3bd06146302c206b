"""Parties that check each other: the first check that fails is the end of the run, for good."""

from dpmpc.errors import CheatError


class AbortsForGood:
    """A party that remembers a failed check. `over`: the error, which every later call fails with."""

    over: CheatError | None = None
    party: int

    def cheat(self, what: str, party: int | None = None) -> CheatError:
        """The error to raise where `what` did not hold, seen of `party` if that is said; from now on all is over."""
        whom = "the parties" if party is None else f"party {party}"
        return self.over_for(
            f"a check failed: {what}, as party {self.party} sees it of {whom}; a party cheats or its machine is "
            "faulty; find out which, then start a new run"
        )

    def over_for(self, why: str) -> CheatError:
        """The error to raise; from now on all is over."""
        error = CheatError(why)
        self.over = self.over or error
        return error

    def still_on(self) -> None:
        """Errors: CheatError when a check has failed in this session."""
        if self.over is not None:
            raise self.over
