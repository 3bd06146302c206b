"""Two servers and their oblivious transfers: the connection, base transfers both ways, one extension each way.

All of it belongs to one connection: no key is ever written to disk, and whoever connects again begins with new ones.
"""

import secrets

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import PeerError
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.parties.abort import AbortsForGood
from dpmpc.mpc.parties.mesh import CONNECT_SECONDS, Mesh
from dpmpc.mpc.transport.channels import KEYS, TREES
from dpmpc.mpc.transport.link import Connection, Link, Observe
from dpmpc.mpc.two_servers import base, trees
from dpmpc.mpc.two_servers.extension import BITS, Chooser, Offerer

Words = NDArray[np.uint64]

VERSION = b"dpmpc two servers 5"
_NONCE = _SALT = 32


class ServerPair(AbortsForGood, Mesh):
    """Party 0 or 1 of two. `chooser`: of the direction in which this party chooses; `offerer`: of the other; `session`:
    public, of this connection alone."""

    def __init__(self, party: int, k: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, 2, run_id, observe)
        self.k = k
        self.chooser: Chooser | None = None
        self.offerer: Offerer | None = None
        self.session = b""

    @property
    def other(self) -> int:
        """The other party's number."""
        return 1 - self.party

    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = CONNECT_SECONDS) -> None:
        """As `Mesh.connect`; then base transfers both ways at once, and the trees. Without TLS whoever listens learns
        nothing, but whoever sits between can be either of them: loopback only."""
        await super().connect(link, digest, seconds=seconds)
        await self.transfers(self.peers[self.other], digest)

    async def transfers(self, peer: Connection, digest: bytes) -> None:
        """Two flows: points and the proofs of trees both ways, then the trees' sums and salts both ways. Errors:
        PeerError for anything else."""
        k, me, other = self.k, self.party, self.other
        delta = np.frombuffer(secrets.token_bytes(BITS // k), dtype=np.uint8).astype(np.uint64) & np.uint64(
            (1 << k) - 1
        )
        sides = 1 - (delta[:, None] >> np.arange(k - 1, -1, -1, dtype=np.uint64) & np.uint64(1))
        hashing = [domains.POINTS.digest(VERSION, k, i, self.run_id, digest) for i in (0, 1)]
        receiver = base.BaseReceiver(sides.reshape(-1).tolist(), hashing[me])
        sender, nonce = base.BaseSender(), secrets.token_bytes(_NONCE)
        own = trees.grown(BITS // k, k, domains.TREES.digest(hashing[me], nonce))
        mine = nonce + sender.message + receiver.message + own.proof
        peer.send(KEYS, mine)
        theirs = bytes(await peer.receive(KEYS))
        if len(theirs) != len(mine):
            raise PeerError(
                f"party {other} sent {len(theirs)} bytes of base transfers where {len(mine)} were due; are all parties "
                "of one version?",
                code="message",
            )
        first, second = (mine, theirs) if me == 0 else (theirs, mine)
        session = domains.SESSION.digest(VERSION, k, P, self.run_id, digest, value=first + second)
        begin, end = _NONCE + base.POINT_BYTES, len(theirs) - len(own.proof)
        pairs = sender.keys(memoryview(theirs)[begin:end], hashing[other], session, other)
        chosen = receiver.keys(memoryview(theirs)[_NONCE:begin], session, me)
        salts = [b"", b""]
        salts[me] = secrets.token_bytes(_SALT)  # after the other's proof, which fixes its trees
        masks = trees.words_of([key for pair in pairs for key in pair]).reshape(own.sums.shape)
        peer.send(TREES, (own.sums ^ masks).astype("<u8").tobytes() + salts[me])
        raw = bytes(await peer.receive(TREES))
        if len(raw) != own.sums.nbytes + _SALT:
            raise PeerError(
                f"party {other} sent {len(raw)} bytes of trees where {own.sums.nbytes + _SALT} were due; are all "
                "parties of one version?",
                code="message",
            )
        salts[other] = raw[-_SALT:]
        masked = np.frombuffer(raw[:-_SALT], dtype="<u8").reshape(own.sums.shape)
        grown = domains.TREES.digest(hashing[other], theirs[:_NONCE])
        known = self._known(masked, delta, chosen, grown, theirs[end:])
        # a direction has the salt of who offers there alone: a chooser that saw both could try its own until it likes
        # its rows
        here, there = (domains.SALTED.digest(session, i, value=salts[1 - i]) for i in (me, other))
        self.session, keys = session, trees.stream_keys(known, there, other)
        self.chooser = Chooser(trees.stream_keys(own.leaves, here, me), k, here, me)
        self.offerer = Offerer(trees.relabelled(keys, delta, k), delta, k, there, other)

    def _known(self, masked: Words, delta: Words, chosen: list[bytes], context: bytes, proof: bytes) -> Words:
        """The leaves of the other's trees, of which this party lacks `delta`, from the sums that its keys open. Errors:
        CheatError where they are not those of the proof."""
        k = self.k
        # what the chosen key opens: an AND with masks, so that no address depends on delta
        takes_right = (delta[:, None] >> np.arange(k - 1, -1, -1, dtype=np.uint64) & np.uint64(1)) - np.uint64(1)
        due = masked[:, :, 0] ^ ((masked[:, :, 0] ^ masked[:, :, 1]) & takes_right[:, :, None])
        known = trees.punctured(delta, due ^ trees.words_of(chosen).reshape(due.shape), k, context)
        if not trees.proved(trees.tags_of(known, context), delta, proof):
            raise self.cheat("trees of keys for oblivious transfers", self.other)
        return known

    def abandon(self) -> None:
        """Close at once; keys are overwritten."""
        super().abandon()
        for end in (self.chooser, self.offerer):
            if end is not None:
                end.erase()
