"""Base oblivious transfers on P-256: the sender gets two random keys, the receiver the one of its choice.

One message each way, neither waiting for the other. The receiver knows the discrete logarithm of one of two points at
most, whatever it sends: each is a sum with a hash of the other. Group operations are OpenSSL's; what it does not offer,
the addition of two points, is affine, on public points alone.
Source: Masny, Rindal 2019, "Endemic oblivious transfer", with Diffie-Hellman as the key agreement; one message of the
sender serves all transfers. Hashing to the curve tries public values, for a time that depends on which of two it is.
"""

from collections.abc import Sequence

import gmpy2
from cryptography.hazmat.primitives.asymmetric import ec

from dpmpc.errors import PeerError
from dpmpc.mpc.numbers import domains

Point = tuple[int, int]

CURVE = ec.SECP256R1()
_P = gmpy2.mpz(2**256 - 2**224 + 2**192 + 2**96 - 1)
_B = gmpy2.mpz(0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B)
POINT_BYTES = 64
KEY_BYTES = 16


def _encode(point: Point) -> bytes:
    return point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def _decode(raw: bytes | bytearray | memoryview) -> Point:
    return int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")


def _public(point: Point) -> ec.EllipticCurvePublicKey:
    """Errors: PeerError where it is no point of the curve."""
    try:
        return ec.EllipticCurvePublicNumbers(*point, CURVE).public_key()
    except ValueError:
        raise PeerError(
            "a base oblivious transfer takes points of P-256; something else came; are all processes of one version?",
            code="message",
        ) from None


def _point_of(key: ec.EllipticCurvePrivateKey) -> Point:
    numbers = key.public_key().public_numbers()
    return numbers.x, numbers.y


def hash_to_curve(bound: bytes, transfer: int, choice: int, other: bytes) -> Point:
    """A point whose discrete logarithm nobody knows, of what it is bound to, a transfer's number and choice and the
    other point: the first of its hashes with a counter that is the abscissa of one. Errors: none."""
    for counter in range(1 << 16):
        raw = b"".join(domains.POINT.digest(bound, transfer, choice, other, counter, half) for half in (0, 1))
        x = gmpy2.mpz(int.from_bytes(raw[:48], "big")) % _P
        square = (x * x * x - 3 * x + _B) % _P
        y = gmpy2.powmod(square, (_P + 1) // 4, _P)
        if y * y % _P == square:
            return int(x), int(y if (raw[-1] ^ int(y)) & 1 == 0 else _P - y)
    raise AssertionError("2^16 hashes without a point")


def subtract(a: Point, b: Point) -> Point:
    """a - b. Errors: PeerError where a = b or a = -b, which honest processes never meet."""
    (x1, y1), (x2, y2) = a, (b[0], -b[1])
    if (x1 - x2) % _P == 0:
        raise PeerError(
            "base oblivious transfers take points that differ; equal ones came; a peer computes wrongly", code="message"
        )
    slope = (gmpy2.mpz(y2 - y1) * gmpy2.invert(x2 - x1, _P)) % _P
    x3 = (slope * slope - x1 - x2) % _P
    return int(x3), int((slope * (x1 - x3) - y1) % _P)


def _sum(a: Point, b: Point) -> Point:
    return subtract(a, (b[0], int(_P) - b[1]))


def _key(shared: bytes, session: bytes, direction: int, index: int, choice: int) -> bytes:
    return domains.BASE.digest(session, direction, index, choice, value=shared)[:KEY_BYTES]


class BaseSender:
    """Gets two keys a transfer."""

    def __init__(self) -> None:
        self._secret = ec.generate_private_key(CURVE)
        self.message = _encode(_point_of(self._secret))

    def keys(
        self, received: bytes | bytearray | memoryview, hashing: bytes, session: bytes, direction: int
    ) -> list[tuple[bytes, bytes]]:
        """The two keys of each transfer, from the receiver's message. Errors: PeerError where it cannot be one."""
        found = []
        for index in range(len(received) // (2 * POINT_BYTES)):
            raw = received[2 * POINT_BYTES * index : 2 * POINT_BYTES * (index + 1)]
            halves = bytes(raw[:POINT_BYTES]), bytes(raw[POINT_BYTES:])
            pair = []
            for choice in (0, 1):
                _public(_decode(halves[choice]))
                other = hash_to_curve(hashing, index, choice, halves[1 - choice])
                point = _sum(_decode(halves[choice]), other)
                shared = self._secret.exchange(ec.ECDH(), _public(point))
                pair.append(_key(shared, session, direction, index, choice))
            found.append((pair[0], pair[1]))
        return found


class BaseReceiver:
    """Gets the key of each of its `choices`, 0 or 1. `hashing` binds its points to this session's direction."""

    def __init__(self, choices: Sequence[int], hashing: bytes) -> None:
        self._choices = choices
        self._secrets = [ec.generate_private_key(CURVE) for _ in choices]
        parts = []
        for index, (choice, secret) in enumerate(zip(choices, self._secrets, strict=True)):
            random = _encode(_point_of(ec.generate_private_key(CURVE)))
            mine = _encode(subtract(_point_of(secret), hash_to_curve(hashing, index, choice, random)))
            pair = bytes(32 * 2 * 2)
            swap = int.from_bytes(mine + random, "big") ^ int.from_bytes(random + mine, "big")
            chosen = int.from_bytes(mine + random, "big") ^ (-choice & swap)  # mine comes second for choice 1
            parts.append(chosen.to_bytes(len(pair), "big"))
        self.message = b"".join(parts)

    def keys(self, received: bytes | bytearray | memoryview, session: bytes, direction: int) -> list[bytes]:
        """The chosen key of each transfer, from the sender's message. Errors: PeerError where it cannot be one."""
        public = _public(_decode(received))
        return [
            _key(secret.exchange(ec.ECDH(), public), session, direction, index, choice)
            for index, (choice, secret) in enumerate(zip(self._choices, self._secrets, strict=True))
        ]
