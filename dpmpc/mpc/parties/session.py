"""A party's session of secret sharing with threshold t < n/2: connections, PRSS keys, openings of Shamir shares.

Semi-honest security against t colluding parties; PRSS makes it computational. One session serves one attempt of a run:
its PRSS keys are fresh, and every stream derived from them is bound to the attempt's id.
"""

import secrets

import numpy as np

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.mesh import CONNECT_SECONDS, Channel, Mesh
from dpmpc.mpc.transport.channels import KEYS
from dpmpc.mpc.transport.link import Link, Observe

Subset = tuple[int, ...]
KEY_BYTES = 16  # of each subset's key, drawn by its lowest member from the operating system


class Session(Mesh):
    """What one party knows of a run's MPC: who it is, its peers, its PRSS keys."""

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, run_id, observe)
        check_threshold(parties, threshold)
        self.threshold = threshold
        self.subsets = field.subsets(parties, threshold)
        self.mine = [s for s in self.subsets if party in s]
        self._keys = {s: secrets.token_bytes(KEY_BYTES) for s in self.mine if s[0] == party}

    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = CONNECT_SECONDS) -> None:
        """As `Mesh.connect`; then the lowest member of each subset gives the others its key. Without TLS these cross
        the network in the clear: loopback only."""
        await super().connect(link, digest, seconds=seconds)
        await self._agree_on_keys()

    async def _agree_on_keys(self) -> None:
        for j, peer in self.peers.items():
            if j > self.party:
                peer.send(KEYS, b"".join(self._keys[s] for s in self.mine if s[0] == self.party and j in s))
        for i, peer in self.peers.items():
            if i > self.party:
                continue
            due = [s for s in self.mine if s[0] == i]
            keys = bytes(await peer.receive(KEYS))
            size = KEY_BYTES
            if len(keys) != size * len(due):
                raise PeerError(
                    f"party {i} sent {len(keys)} key bytes where {size * len(due)} were due; are all parties of one "
                    "version?"
                )
            for k, subset in enumerate(due):
                self._keys[subset] = keys[k * size : (k + 1) * size]

    def stream(self, subset: Subset, domain: Domain, *of: int) -> Prg:
        """Pseudorandom words that exactly the parties of `subset` know; equal keys of two subsets would give different
        ones. A domain is used once an attempt; `of`: its instance, after run and subset."""
        return domain.stream(self._keys[subset], self.run_id, bytes(subset), *of)

    async def open_words(self, shares: Words, channel: Channel) -> Words:
        """The values whose Shamir shares of degree t in F_p the parties hold; everybody learns them.

        Cost: one round, t messages of 8 bytes a value a party. Errors: PeerError for words that no share has.
        """
        n, t = self.parties, self.threshold
        flat = np.ascontiguousarray(shares).reshape(-1)
        successors = [(self.party + k) % n for k in range(1, t + 1)]
        predecessors = [(self.party - k) % n for k in range(1, t + 1)]
        received = await channel.words(dict.fromkeys(successors, flat), predecessors, flat.size)
        for i, words in zip(predecessors, received, strict=True):
            if words.max(initial=0) >= field.P:
                raise PeerError(
                    f"shares must be below p = 2^61 - 1; party {i} sent larger ones; are all parties of one version?",
                    code="message",
                )
        return recombine([flat, *received], [self.party, *predecessors]).reshape(shares.shape)


def check_threshold(parties: int, threshold: int) -> None:
    """Errors: a threshold that secret sharing with an honest majority does not allow."""
    if not 0 <= 2 * threshold < parties:
        raise UsageError(
            f"the threshold t must satisfy 0 <= 2t < n; got t = {threshold}, n = {parties}; mend "
            f"<<threshold>> or <<parties>>",
            code="range",
        )
