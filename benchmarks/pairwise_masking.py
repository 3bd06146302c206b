"""Secure aggregation by pairwise masks with recovery of drop-outs: the baseline of correlated-noise schemes.

n clients and one server. Client u sends x_u + PRG(b_u) + sum_(v > u) PRG(s_uv) - sum_(v < u) PRG(s_uv) mod 2^64: the
pairwise masks cancel in the sum. Shares of b_u and of u's masking key are dealt beforehand, t of n open them. Who
sent is unmasked by b_u, who did not by its masking key, whose pairwise masks would otherwise stay in the sum.

| round | a client sends | the server sends each |
| --- | --- | --- |
| 0 advertise | two public keys | everybody's |
| 1 share | n - 1 encrypted pairs of shares | those meant for it |
| 2 mask | its masked vector | who sent one |
| 3 unmask | a share of b_u for each that sent, of the masking key for each that did not | |

Guarantees (honest but curious): of the vectors nobody learns more than the sum over the clients that answered round
2, as long as fewer than t clients collude with the server. A client never gives both shares of one peer: with both
the server would know that peer's vector (`Client.unmask` refuses). No noise is added here: the sum is exact. Clients
that lie about who dropped out need the paper's signatures (its active variant), which are not here.
Source: Bonawitz et al. 2017, Figure 4, without the signed consistency check; Imtiaz et al. 2019 use it for Algorithm
1. Departures: X25519, HKDF-SHA256, AES-GCM and AES-CTR from `cryptography`; secrets are shared in F_p, p = 2^61 - 1,
as limbs of 56 bits.
Cost: `traffic` in bytes, `expansions` in masks of d words; both are tested against what the messages hold.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine

Words = NDArray[np.uint64]

KEY = 32  # bytes of a key, a seed and a secret key
LIMB = 7  # bytes of a secret in one field element
LIMBS = -(-KEY // LIMB)
SEAL = 12 + 16  # bytes that AES-GCM adds: nonce and tag
PAIR = 2 * LIMBS * 8  # bytes of one share of b and one of the masking key


@dataclass(frozen=True)
class Advertised:
    """Round 0: a client's public keys, for encryption and for masks."""

    client: int
    cipher: bytes
    mask: bytes


@dataclass
class Client:
    """One client through the four rounds. Holds its secrets; every method returns what is sent."""

    number: int
    threshold: int
    run: bytes
    _cipher_key: X25519PrivateKey = attribute(default_factory=X25519PrivateKey.generate, repr=False)
    _mask_key: X25519PrivateKey = attribute(default_factory=X25519PrivateKey.generate, repr=False)
    _seed: bytes = attribute(default_factory=lambda: secrets.token_bytes(KEY), repr=False)
    _peers: dict[int, Advertised] = attribute(default_factory=dict, repr=False)
    _sealed: dict[int, bytes] = attribute(default_factory=dict, repr=False)
    _masked: bool = False
    _unmasked: bool = False
    expanded: int = 0  # masks of d words computed

    def __post_init__(self) -> None:
        if self.threshold < 2:
            raise UsageError(
                f"at least 2 clients must be needed to open a mask; got {self.threshold}; raise it", code="enough"
            )

    def advertise(self) -> Advertised:
        """Round 0."""
        return Advertised(
            self.number,
            self._cipher_key.public_key().public_bytes_raw(),
            self._mask_key.public_key().public_bytes_raw(),
        )

    def share(self, peers: Mapping[int, Advertised]) -> dict[int, bytes]:
        """Round 1: for each peer its encrypted shares. Errors: fewer clients than the threshold."""
        if len(peers) < self.threshold:
            raise UsageError(
                f"secrets are shared so that {self.threshold} open them; only {len(peers)} clients advertised; lower "
                "the threshold or start again",
                code="enough",
            )
        self._peers = dict(peers)
        order = sorted(peers)
        seeds = _deal(self._seed, len(order), self.threshold)
        keys = _deal(self._mask_key.private_bytes_raw(), len(order), self.threshold)
        sent = {}
        for place, peer in enumerate(order):
            plain = seeds[place].tobytes() + keys[place].tobytes()
            if peer == self.number:
                self._sealed[peer] = plain
                continue
            nonce = secrets.token_bytes(12)
            sent[peer] = nonce + self._box(peer).encrypt(nonce, plain, _header(self.number, peer))
        return sent

    def mask(self, vector: Words, received: Mapping[int, bytes]) -> Words:
        """Round 2: the masked vector (d,) mod 2^64; `received` are the peers' sealed shares: those peers take part.

        Errors: asked a second time, since two vectors under one mask show their difference.
        """
        if self._masked:
            raise UsageError(f"a client masks one vector a run; client {self.number} did; start a new run", code="over")
        self._masked = True
        self._sealed.update(received)
        masked = vector + Prg(self._seed, "own", self.run).words(vector.shape)
        self.expanded += 1
        for peer in received:
            pad = Prg(_agree(self._mask_key, self._peers[peer].mask), "pair", self.run).words(vector.shape)
            masked = masked + pad if peer > self.number else masked - pad
            self.expanded += 1
        return masked

    def unmask(self, answered: Iterable[int]) -> dict[int, tuple[bool, bytes]]:
        """Round 3: for every peer (True, share of its seed) if it answered round 2, else (False, share of its key).

        Errors: asked a second time, or fewer answered than the threshold: either could undo a single client's mask.
        """
        there = set(answered)
        if self._unmasked:
            raise UsageError(
                f"a client opens its shares once a run; client {self.number} did; start a new run", code="over"
            )
        if len(there) < self.threshold or not there <= set(self._sealed):
            raise UsageError(
                f"at least {self.threshold} known clients must answer; {len(there)} did; start again with those there",
                code="enough",
            )
        self._unmasked = True
        opened = {}
        for peer, sealed in self._sealed.items():
            plain = sealed
            if peer != self.number:
                plain = self._box(peer).decrypt(sealed[:12], sealed[12:], _header(peer, self.number))
            half = PAIR // 2
            opened[peer] = (True, plain[:half]) if peer in there else (False, plain[half:])
        return opened

    def _box(self, peer: int) -> AESGCM:
        return AESGCM(_agree(self._cipher_key, self._peers[peer].cipher))


@dataclass
class Server:
    """The server: relays, adds up, and takes the masks off. Sees everything that is sent, no secret key."""

    threshold: int
    run: bytes
    expanded: int = 0

    def total(
        self,
        advertised: Mapping[int, Advertised],
        shared: Sequence[int],
        masked: Mapping[int, Words],
        opened: Mapping[int, Mapping[int, tuple[bool, bytes]]],
    ) -> Words:
        """The sum (d,) mod 2^64 of the vectors behind `masked`.

        advertised: round 0; shared: clients of round 1; masked: round 2 by client; opened: round 3 by client.
        Errors: fewer than `threshold` clients answered round 3.
        """
        if len(opened) < self.threshold:
            raise UsageError(
                f"{self.threshold} clients must open their shares; {len(opened)} did; start again with those there",
                code="enough",
            )
        holders = {client: place for place, client in enumerate(sorted(advertised))}
        total = np.zeros_like(next(iter(masked.values())))
        for vector in masked.values():
            total = total + vector
        for client in shared:
            helpers = [h for h in opened if client in opened[h]][: self.threshold]
            secret = _join([opened[h][client][1] for h in helpers], [holders[h] for h in helpers])
            if client in masked:
                total = total - Prg(secret, "own", self.run).words(total.shape)
                self.expanded += 1
                continue
            key = X25519PrivateKey.from_private_bytes(secret)
            for peer in masked:
                pad = Prg(_agree(key, advertised[peer].mask), "pair", self.run).words(total.shape)
                total = total - pad if client > peer else total + pad  # what `peer` added for the one that is gone
                self.expanded += 1
        return total


def traffic(clients: int, dimension: int, answered: int | None = None) -> dict[str, int]:
    """Payload bytes of one sum, without framing: `client` sends, a `client_receives`, all messages into the `server`.

    answered: how many of the clients send a masked vector and open shares (default: all).
    """
    n, left = clients, clients if answered is None else answered
    sends = 2 * KEY + (n - 1) * (SEAL + PAIR) + 8 * dimension + n * PAIR // 2
    receives = (n - 1) * 2 * KEY + (n - 1) * (SEAL + PAIR)
    server = n * 2 * KEY + n * (n - 1) * (SEAL + PAIR) + left * (8 * dimension + n * PAIR // 2)
    return {"client": sends, "client_receives": receives, "server": server}


def expansions(clients: int, answered: int) -> dict[str, int]:
    """Masks of d words that a client and the server expand: n each, and one more a drop-out and client that
    answered."""
    return {"client": clients, "server": answered + (clients - answered) * answered}


def aggregate(
    vectors: Sequence[Words], threshold: int, *, gone_before_masks: Iterable[int] = (), gone_after: Iterable[int] = ()
) -> tuple[Words, Server, list[Client]]:
    """The sum of the vectors of all clients that send round 2, all in one process: for tests, study and the bench.

    gone_before_masks: clients that vanish after round 1; gone_after: after round 2, whose vectors count.
    """
    run = secrets.token_bytes(16)
    clients = [Client(u, threshold, run) for u in range(len(vectors))]
    server = Server(threshold, run)
    advertised = {c.number: c.advertise() for c in clients}
    sealed = {c.number: c.share(advertised) for c in clients}
    lost, late = set(gone_before_masks), set(gone_after)
    inbox = {u: {v: sealed[v][u] for v in sealed if v != u} for u in sealed}
    masked = {c.number: c.mask(vectors[c.number], inbox[c.number]) for c in clients if c.number not in lost}
    opened = {c.number: c.unmask(masked) for c in clients if c.number not in lost | late}
    return server.total(advertised, list(sealed), masked, opened), server, clients


def _agree(own: X25519PrivateKey, theirs: bytes) -> bytes:
    shared = own.exchange(X25519PublicKey.from_public_bytes(theirs))
    return HKDF(SHA256(), KEY, salt=None, info=b"dpmpc pairwise masking").derive(shared)


def _header(sender: int, receiver: int) -> bytes:
    return sender.to_bytes(8, "little") + receiver.to_bytes(8, "little")


def _deal(secret: bytes, holders: int, threshold: int) -> Words:
    """(holders, LIMBS) Shamir shares of 32 bytes; any `threshold` rows open it, fewer are uniform."""
    padded = secret.ljust(LIMB * LIMBS, b"\0")
    limbs = [int.from_bytes(padded[i : i + LIMB], "little") for i in range(0, len(padded), LIMB)]
    return field.share(np.array(limbs, dtype=np.uint64), holders, threshold - 1, Prg.from_os())


def _join(shares: Sequence[bytes], holders: Sequence[int]) -> bytes:
    limbs = recombine([np.frombuffer(share, dtype=np.uint64) for share in shares], holders)
    if int(limbs.max()) >= 1 << (8 * LIMB):
        raise PeerError("shares of one secret must fit together; those opened do not; start a new run")
    return b"".join(int(limb).to_bytes(LIMB, "little") for limb in limbs)[:KEY]
