"""Shares sealed for one party each, so that whoever carries them reads and changes nothing.

A sealed share is an ephemeral X25519 public key, the same for all parties of one sharing, and the share under AES-GCM.
The key of the cipher is HKDF-SHA256 of the Diffie-Hellman secret of that key and the party's; it is bound to both
public keys and to what the share is for: the plan with all parties' keys, the attempt by what its parties drew when
they met, the release, the owner, the party; and to what that party is said to remember of the owner's account.

Guarantees: computational. Whoever has not the party's private key learns a share's length alone, and what was changed,
or is opened for another plan, attempt, release, owner or party, is refused. Anybody can seal: who the sender is, is not
proved.
A party's private key opens all shares that were ever sealed for it.
Source: the construction of HPKE's base mode (RFC 9180) with X25519, HKDF-SHA256 and AES-256-GCM; not its wire format.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpmpc.errors import PeerError, UsageError
from dpmpc.lazy import dataclass

TAG = 32  # bytes: the ephemeral public key, which also names the sharing
OVERHEAD = TAG + 16  # bytes that a sealed share has more than the share
_NONCE = bytes(12)  # every key of the cipher is used once
_BOUND = struct.Struct("<QII")


@dataclass(frozen=True)
class Purpose:
    """What a share is for. `digest`: of the plan and all parties' keys (`prepared.Prepared.digest`); `token`: of the
    attempt (16 bytes), which its parties drew when they met."""

    digest: bytes
    token: bytes
    release: int
    owner: int

    def at(self, party: int) -> bytes:
        """The bytes that a party's share is bound to."""
        return b"dpmpc share\0" + self.digest + self.token + _BOUND.pack(self.release, self.owner, party)


def seal(
    payloads: Sequence[bytes | memoryview], keys: Sequence[bytes], purpose: Purpose, told: Sequence[bytes] = ()
) -> list[bytes]:
    """One sealed share a party: `payloads`, what a `Dealer` made for each; `keys`, the parties' public keys (32 bytes
    each); `told`, what the owner was told that each remembers (`heads`). Cost: one key, and a Diffie-Hellman exchange a
    party."""
    ephemeral = X25519PrivateKey.generate()
    tag = ephemeral.public_key().public_bytes_raw()
    sealed = []
    for party, (payload, key) in enumerate(zip(payloads, keys, strict=True)):
        secret = ephemeral.exchange(X25519PublicKey.from_public_bytes(key))
        bound = purpose.at(party) + (told[party] if told else b"")
        sealed.append(tag + _cipher(secret, tag, key, bound).encrypt(_NONCE, payload, bound))
    return sealed


class Opener:
    """A party's end: opens what was sealed for it."""

    def __init__(self, party: int, key: X25519PrivateKey) -> None:
        self._party, self._key = party, key
        self._public = key.public_key().public_bytes_raw()

    def open(self, sealed: bytes | bytearray | memoryview, purpose: Purpose, told: bytes = b"") -> bytes:
        """The share. Secret. `told`: what this party remembers. Errors: PeerError for anything but what was sealed for
        this party and purpose, by who was told that."""
        tag, bound = bytes(sealed[:TAG]), purpose.at(self._party) + told
        try:
            secret = self._key.exchange(X25519PublicKey.from_public_bytes(tag))
            return _cipher(secret, tag, self._public, bound).decrypt(_NONCE, bytes(sealed[TAG:]), bound)
        except (InvalidTag, ValueError):  # ValueError: no public key, or one of small order
            raise PeerError(
                f"a share must be sealed for party {self._party}, this plan, attempt and release; that of owner "
                f"{purpose.owner}, release {purpose.release}, is not; does its client have the same plan?"
            ) from None


def _cipher(secret: bytes, tag: bytes, public: bytes, bound: bytes) -> AESGCM:
    return AESGCM(HKDF(hashes.SHA256(), 32, salt=None, info=bound + tag + public).derive(secret))


def write_key(path: Path) -> bytes:
    """Writes a new private key, readable by its owner alone; returns the public one. Errors: UsageError where there is
    a file already."""
    key = X25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(
            f"a new key needs a new file; {path}: {error.strerror}; name another folder", code="path"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    return key.public_key().public_bytes_raw()


def read_key(path: Path) -> X25519PrivateKey:
    """The private key in a file. Errors: UsageError where there is none."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds something else"
        raise UsageError(
            f"a party has the key file that prepare made; {path}: {why}; check the path", code="keys"
        ) from None
    if not isinstance(key, X25519PrivateKey):
        raise UsageError(f"a party's key for shares is an X25519 key; {path} holds another; check the path")
    return key
