"""Shares sealed for a party: opened by it alone, for the purpose alone that they were sealed for. Needs no Flower."""

import hashlib
import hmac
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpmpc.errors import PeerError
from dpmpc.flower.sealing import OVERHEAD, TAG, Opener, Purpose, read_key, seal, write_key
from tests.refusals import refuses

PURPOSE = Purpose(hashlib.sha256(b"a plan").digest(), bytes(16), 3, 7)
SHARES = [b"for party zero...", b"for party one", b""]


def three() -> tuple[list[X25519PrivateKey], list[bytes]]:
    private = [X25519PrivateKey.generate() for _ in range(3)]
    return private, [key.public_key().public_bytes_raw() for key in private]


def test_every_party_opens_its_own() -> None:
    private, public = three()
    sealed = seal(SHARES, public, PURPOSE)
    assert [Opener(i, key).open(sealed[i], PURPOSE) for i, key in enumerate(private)] == SHARES
    assert [len(s) for s in sealed] == [len(s) + OVERHEAD for s in SHARES]
    assert len({s[:TAG] for s in sealed}) == 1  # one sharing, one name


def test_another_implementation_opens_it() -> None:
    """RFC 5869 by hand, and the bytes that the module's text names."""
    private, public = three()
    sealed = seal(SHARES, public, PURPOSE)[1]
    bound = b"dpmpc share\0" + PURPOSE.digest + PURPOSE.token + (3).to_bytes(8, "little") + b"\7\0\0\0" + b"\1\0\0\0"
    secret = private[1].exchange(X25519PublicKey.from_public_bytes(sealed[:32]))
    extracted = hmac.digest(bytes(32), secret, "sha256")
    key = hmac.digest(extracted, bound + sealed[:32] + public[1] + b"\1", "sha256")
    assert AESGCM(key).decrypt(bytes(12), sealed[32:], bound) == SHARES[1]


@pytest.mark.parametrize(
    "other",
    [
        Purpose(hashlib.sha256(b"another plan").digest(), bytes(16), 3, 7),
        Purpose(PURPOSE.digest, bytes(15) + b"1", 3, 7),
        Purpose(PURPOSE.digest, bytes(16), 4, 7),
        Purpose(PURPOSE.digest, bytes(16), 3, 8),
    ],
)
def test_nothing_opens_for_another_purpose(other: Purpose) -> None:
    private, public = three()
    sealed = seal(SHARES, public, PURPOSE)
    with refuses("peer", 0, other.owner, other.release):
        Opener(0, private[0]).open(sealed[0], other)


def test_no_other_party_opens_it_even_with_the_key() -> None:
    private, public = three()
    sealed = seal(SHARES, public, PURPOSE)
    for party, key, share in ((0, private[1], sealed[0]), (0, private[0], sealed[1]), (1, private[0], sealed[0])):
        with pytest.raises(PeerError):
            Opener(party, key).open(share, PURPOSE)


def test_one_changed_bit_is_seen() -> None:
    """Of every byte: the ephemeral key, the share, the tag. X25519 takes no notice of the first part's highest bit, but
    the cipher's key does."""
    private, public = three()
    sealed = seal(SHARES, public, PURPOSE)[0]
    opener = Opener(0, private[0])
    for at in range(len(sealed)):
        for bit in (1, 128):
            changed = bytearray(sealed)
            changed[at] ^= bit
            with pytest.raises(PeerError):
                opener.open(changed, PURPOSE)
    for cut in (b"", sealed[:31], sealed[:-1], sealed + b"\0", bytes(len(sealed))):
        with pytest.raises(PeerError):
            opener.open(cut, PURPOSE)


def test_two_sealings_of_one_share_have_nothing_in_common() -> None:
    _, public = three()
    one, two = (seal([bytes(64)] * 3, public, PURPOSE) for _ in range(2))
    assert len({s[i : i + 8] for s in one + two for i in range(TAG, len(s), 8)}) == 6 * 10
    assert one[0][:TAG] != two[0][:TAG]


def test_a_key_is_written_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "party0.share.key"
    public = write_key(path)
    assert read_key(path).public_key().public_bytes_raw() == public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with refuses("path", path):
        write_key(path)
    (tmp_path / "other").write_text("no key")
    for name in ("other", "missing"):
        with refuses("keys", tmp_path / name):
            read_key(tmp_path / name)
