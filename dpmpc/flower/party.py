"""A party of a Flower run: as any other, but that its owners' shares come sealed, by way of the server."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from dpmpc.aggregation.owner.sites import Party
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.plan.here import Here, PartyKeywords
from dpmpc.errors import UsageError
from dpmpc.flower.gate import SealedGate
from dpmpc.flower.prepared import Prepared, key_path, read_prepared
from dpmpc.flower.sealing import Opener, read_key
from dpmpc.processes.supervisor import run_here
from dpmpc.processes.worker import Emit, Log
from dpmpc.settings import keywords

ROLE = "dpmpc.flower.party:serve"


def serve(*, job: dict[str, Any], prepared: str, keys: str, emit: Emit, log: Log) -> None:
    """The role of a party's process on the server's machine. `prepared`: the text of flower.json; `keys`: the folder
    with the parties' keys, of which it reads its own."""
    here, given = PartyJob.from_json(job), Prepared.from_text(prepared)
    opener = opener_of(given, here.index, key_path(Path(keys), here.index))
    run_here(lambda: run_party(here, log, emit, make_gate=partial(SealedGate, given, opener)))


def opener_of(prepared: Prepared, party: int, key: Path) -> Opener:
    """What opens the shares of a party. Errors: UsageError for a key that is not the plan's."""
    private = read_key(key)
    if private.public_key().public_bytes_raw() != prepared.keys[party]:
        raise UsageError(
            f"party {party} needs the key that flower.json names for it; {key} holds another; give it the files of one "
            "prepare",
            code="keys",
        )
    return Opener(party, private)


class ShareParty(Party):
    """One party of a Flower run, on a machine of its own; `run` returns when the run is over.

    ShareParty("flower.json", index=1, addresses=["a.example:11365", ...], key="party1.share.key", tls="keys",
               out="run").run()
    """

    @keywords(Here)
    def __init__(
        self,
        prepared: Prepared | Path | str,
        index: int,
        addresses: Sequence[str],
        *,
        key: Path | str,
        **own: Unpack[PartyKeywords],
    ) -> None:
        """`key`: the file with this party's private key; the rest as of `dpmpc.Party`. After an interruption the same
        call carries the run on, where the plan's backend can. Errors: UsageError."""
        prepared = read_prepared(prepared)
        super().__init__(prepared.plan, index, addresses, **own)
        self._job = replace(self._job, tolerates_loss=False)  # all compare whose shares they have
        self._make_gate = partial(SealedGate, prepared, opener_of(prepared, index, Path(key)))
