"""What a Flower server does with sealed shares: carries them to the parties, and brings back the noisy mean."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from dpmpc.aggregation.aggregator import Aggregator, Release
from dpmpc.aggregation.encoding import decode
from dpmpc.aggregation.grid import Floats
from dpmpc.errors import DpmpcError
from dpmpc.flower.gate import frames_of
from dpmpc.flower.party import ROLE
from dpmpc.flower.prepared import Prepared


class Courier(Aggregator):
    """An aggregator that has no vectors: `deliver` takes what the owners have sealed."""

    _prepared: Prepared

    @classmethod
    def between(cls, prepared: Prepared, keys: Path | None, **settings: Any) -> Self:
        """A courier to parties elsewhere, at the `addresses` among `settings` (those of `of_plan`), or to parties of
        this machine, which read their keys from the folder `keys`."""
        if settings.get("addresses") is None:
            settings |= {"role": ROLE, "extra": {"prepared": prepared.to_text(), "keys": str(keys)}}
        courier = cls.of_plan(prepared.plan, **settings)
        courier._prepared = prepared
        return courier

    def wait_for_noise(self) -> None:
        if self._client is not None and not self.bytes_before:
            self.bytes_before = self._run(self._client.ready) + self._client.bytes_sent

    def deliver(self, sealed: Mapping[int, Sequence[bytes]]) -> tuple[Floats, Release]:
        """(the noisy mean (d,) of the owners' vectors, the release): one release. `sealed`: by owner, the sealed share
        of each party. Errors: PeerError when a party leaves, or too few owners' shares open; then this is closed."""
        self._check_open()
        client, number = self._client, self.next
        assert client is not None and number < self.plan.releases and len(sealed) >= self.plan.fewest
        try:
            self.wait_for_noise()
            for block, payloads in enumerate(frames_of(self._prepared, sealed)):
                self._run(partial(client.send, number, block, payloads))
            total, sent, present = self._run(partial(client.opened, number))
            self.next = number + 1
        except DpmpcError as error:
            self.abandon(error)
            raise
        release, bound = Release(number, total, sent + client.bytes_sent, present), self.bound
        mean = decode(self.plan, total, present)
        if bound is not None:
            mean, self.bound = bound.decode(mean)
        return mean, release
