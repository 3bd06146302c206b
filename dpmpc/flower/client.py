"""What a client's process does with its vector: looks whether its account goes on, writes its line, makes shares, seals
them. Needs no Flower."""

from pathlib import Path

from dpmpc.aggregation.owner.encoding import as_blocks, encode
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.flower.client_ledger import spend
from dpmpc.flower.heads import check_names
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.sealing import Purpose, seal
from dpmpc.flower.seals import Seals
from dpmpc.lazy import dataclass
from dpmpc.learning.adaptive_clipping import ClippingBound
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.privacy.account import account_folder
from dpmpc.privacy.heads import Head
from dpmpc.run.here import Books


@dataclass(frozen=True)
class Asked:
    """What a client is to seal for. `bound`: of clipping, if it adapts; `told`: the names that parties told it
    (`heads`), none where the plan's data has no name; `numbered`: whether its number is its own, so that it looks for
    them and shows the head of its account."""

    purpose: Purpose
    bound: ClippingBound | None
    told: list[bytes]
    numbered: bool


class Sealer:
    """All of one client's sealing. `account`: the folder, by default this user's."""

    def __init__(self, prepared: Prepared, limits: Limits, account: Path | None) -> None:
        self._prepared, self._limits, self._account = prepared, limits, account

    def check(self, asked: Asked) -> None:
        """Errors: UsageError for a release that this client has sealed for, an account that does not go on from where a
        party saw it, and where nothing can be remembered."""
        self._memory().check(asked.purpose)
        self._check_account(asked)

    def sealed(self, vector: Floats, asked: Asked) -> list[bytes]:
        """The shares of this client's vector, sealed, when it is on disk that they are. Errors: as `check`, and
        UsageError for another dimension, values that are not finite numbers, a budget that is passed."""
        plan, prepared, purpose, bound = self._prepared.plan, self._prepared, asked.purpose, asked.bound
        (block,) = as_blocks(vector, 1, prepared.model_dimension, 1)
        steps = encode(plan, block if bound is None else bound.encode(block), purpose.owner)

        def written() -> None:
            self._check_account(asked)
            spend(plan, purpose, self._limits, self._account)

        self._memory().remember(purpose, written)
        payloads = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(steps)
        if prepared.shows_heads:
            head = (Head().after(self._digests()) if asked.numbered else Head()).pack()
            payloads = [head + bytes(payload) for payload in payloads]
        return seal(payloads, prepared.keys, purpose, asked.told)

    def public(self, text: str) -> str:
        """What a server may read of an error: not where this client's account is, which may be a person's name."""
        folder = self._account or account_folder()
        for path in (folder.resolve(), folder.absolute(), folder):
            text = text.replace(f"{path}", "its account")
        return text

    def _memory(self) -> Seals:
        return Seals(self._account or account_folder(), self._prepared.digest)

    def _digests(self) -> list[bytes]:
        """Of the lines of this client's account for the plan's data."""
        account = Books(self._account).account(self._prepared.plan)
        assert account is not None
        return account.digests(self._prepared.plan.data_id)

    def _check_account(self, asked: Asked) -> None:
        if asked.told and asked.numbered:
            check_names(self._digests(), asked.told, asked.purpose)
