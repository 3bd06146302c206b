"""Keys that each two parties have in common, and the streams drawn from them, each word once.

Every epoch (one per start of the processes, and one after any failure) has keys of its own: each party makes an X25519
key that lives in memory alone, sends the public half to all over the parties' connections, and derives a key with each
other party by HKDF. Nobody deals keys, and no third party's message enters them. The run id, the epoch, both indices,
both public halves and a digest of the sampler's plan are bound into each key, and both sides confirm it before use.

A stream's domain is (run id, epoch, batch, purpose, from whom, to whom); a batch is burnt on disk before its first word
is drawn. There is no way to make these keys from anything stored, to draw a batch twice, or to draw after a failure.
"""

import hmac
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.domains import Domain
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.shamir.burnt import Burnt
from dpmpc.mpc.transport.channels import CONFIRM, KEYS

_OFFER = struct.Struct("<Q32s32s")  # least epoch, digest of the plan, public key
_TAG_BYTES = 16
_KEY_BYTES = 32
MOST_EPOCHS = 1 << 32


@dataclass(frozen=True)
class _Offer:
    epoch: int
    digest: bytes
    public: bytes


class PairKeys:
    """One party's keys of one epoch. Made by `agree` alone."""

    def __init__(self, party: int, run_id: bytes, epoch: int, keys: dict[int, bytes], burnt: Burnt) -> None:
        self.party, self.run_id, self.epoch = party, run_id, epoch
        self._keys, self._burnt = keys, burnt
        self._broken = False

    @contextmanager
    def batch(self, number: int) -> Iterator["BatchStreams"]:
        """The streams of one batch; any failure inside ends the epoch: what was drawn is never drawn again."""
        if self._broken:
            raise AssertionError("a batch failed under these keys; agree on new ones")
        self._burnt.burn(self.epoch, number)
        streams = BatchStreams(self, number)
        try:
            yield streams
        except BaseException:
            self._broken = True
            self._keys = {}
            raise
        finally:
            streams.end()

    def _stream(self, other: int, domain: Domain, *of: int) -> Prg:
        return domain.stream(self._keys[other], self.run_id, self.epoch, *of)


class BatchStreams:
    """The streams of one batch, each given out once."""

    def __init__(self, keys: PairKeys, number: int) -> None:
        self._keys, self._number = keys, number
        self._given: set[tuple[Domain, int, int]] = set()
        self._open = True

    def between(self, purpose: Domain, dealer: int, receiver: int) -> Prg:
        """The stream that `dealer` and `receiver` alone know; this party is one of them."""
        if not self._open or (purpose, dealer, receiver) in self._given:  # holds under -O too
            raise AssertionError(f"stream {purpose.name} of batch {self._number} is given out already")
        self._given.add((purpose, dealer, receiver))
        other = receiver if dealer == self._keys.party else dealer
        assert self._keys.party in (dealer, receiver) and dealer != receiver
        return self._keys._stream(other, purpose, self._number, dealer, receiver)

    def own(self) -> Prg:
        """A stream under a fresh key from the operating system, this party's alone."""
        return Prg.from_os()

    def end(self) -> None:
        """No stream is given out from now on."""
        self._open = False


async def agree(mesh: Mesh, threshold: int, burnt: Burnt, digest: bytes) -> PairKeys:
    """New keys with every other party, for the first epoch that none of them has begun.

    `digest` is SHA-256 of all public parameters that the parties' computation depends on. Cost: two exchanges of 72 and
    16 bytes. Errors: PeerError when a party has other parameters, a key that is not its own, or does not confirm.
    """
    assert len(digest) == 32
    me = mesh.party
    private = X25519PrivateKey.generate()
    offer = _Offer(burnt.next_epoch, digest, private.public_key().public_bytes_raw())
    packed = _OFFER.pack(offer.epoch, offer.digest, offer.public)
    received = await _exchange(mesh, KEYS, dict.fromkeys(mesh.peers, packed))
    offers = {me: offer} | {j: _read_offer(j, raw) for j, raw in received.items()}
    _check_offers(offers, me)
    epoch = max(o.epoch for o in offers.values())
    burnt.begin(epoch)
    keys, tags = {}, {}
    for j in mesh.peers:
        keys[j], tags[j] = _derive(mesh, threshold, private, epoch, offers, j)
    for j, tag in (await _exchange(mesh, CONFIRM, {j: tags[j][0] for j in mesh.peers})).items():
        if not hmac.compare_digest(bytes(tag), tags[j][1]):
            raise PeerError(
                f"each two parties must derive the same key; party {j} has another than party {me}; start all again",
                code="keys",
            )
    return PairKeys(me, mesh.run_id, epoch, keys, burnt)


async def _exchange(mesh: Mesh, label: int, outgoing: dict[int, bytes]) -> dict[int, bytearray]:
    """What each other party sends under this label; a round of its own."""
    mesh.rounds += 1
    for j, payload in outgoing.items():
        mesh.peers[j].send(label, memoryview(payload))
    coming = {j: mesh.peers[j].receive(label) for j in outgoing}  # all are awaited at once: who is late is said
    return {j: await future for j, future in coming.items()}


def _read_offer(party: int, raw: bytes | bytearray) -> _Offer:
    if len(raw) != _OFFER.size:
        raise PeerError(
            f"an offer of keys has {_OFFER.size} bytes; party {party} sent {len(raw)}; are all parties of one version?",
            code="message",
        )
    offer = _Offer(*_OFFER.unpack(raw))
    if offer.epoch > MOST_EPOCHS:  # one that everybody had to begin would be the last
        raise PeerError(
            f"the starts of a run's processes are counted up to {MOST_EPOCHS:,}; party {party} says {offer.epoch:,}; "
            "start it again, in a new folder"
        )
    return offer


def _check_offers(offers: dict[int, _Offer], me: int) -> None:
    for j, offer in sorted(offers.items()):
        if offer.digest != offers[me].digest:
            raise PeerError(
                f"all parties must make the same noise; party {j} has the plan {offer.digest.hex()[:8]}, party {me} "
                f"{offers[me].digest.hex()[:8]}; start all with the same parameters and version",
                code="plan",
            )
        same = [i for i, o in offers.items() if i < j and o.public == offer.public]
        if same:
            raise PeerError(
                f"each party must have a key of its own; parties {same[0]} and {j} show the same; start both again, "
                "from their own programs",
                code="keys",
            )


def _derive(
    mesh: Mesh, threshold: int, private: X25519PrivateKey, epoch: int, offers: dict[int, _Offer], other: int
) -> tuple[bytes, tuple[bytes, bytes]]:
    """(key, (tag to show, tag to be shown)) with party `other`."""
    me = mesh.party
    low, high = sorted((me, other))
    try:
        common = private.exchange(X25519PublicKey.from_public_bytes(offers[other].public))
    except ValueError:  # the common value would be 0, whatever our key
        raise PeerError(
            f"a party's key must be a point of full order; that of party {other} is not; start it again", code="keys"
        ) from None
    both = offers[low].public + offers[high].public
    info = domains.PAIR_KEY.digest(epoch, mesh.parties, threshold, low, high, both, offers[me].digest)
    material = HKDF(SHA256(), _KEY_BYTES + 2 * _TAG_BYTES, mesh.run_id, info).derive(common)
    key, first, second = _cut(material, (_KEY_BYTES, _TAG_BYTES, _TAG_BYTES))
    return key, (first, second) if me == low else (second, first)


def _cut(material: bytes, sizes: Sequence[int]) -> list[bytes]:
    parts, at = [], 0
    for size in sizes:
        parts.append(material[at : at + size])
        at += size
    return parts
