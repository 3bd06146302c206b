"""What a party does by itself with linear shares of vectors over F_p, whoever makes the noise: field elements.

Shamir's or additive ones: nothing here asks which.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Ints
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg

WORD = 8  # bytes of a share of a number


class FieldShares:
    """The local half of a holder; a share is an array of field elements (dimension,)."""

    def collect(self, payload: bytes | bytearray, owners: int, dimension: int) -> Words:
        shares = self._words(payload, owners, dimension)
        if shares.max(initial=0) >= field.P:
            raise PeerError(
                "shares must be below p = 2^61 - 1; larger ones came; are all processes of one version?", code="message"
            )
        return field.total(shares)

    def rows(self, payload: bytes | bytearray, owners: int, dimension: int) -> Words:
        """The shares (owners, dimension) of each vector, reduced where they are too large: whether they are of one
        vector is checked later. Errors: PeerError for a payload of another size."""
        shares = self._words(payload, owners, dimension)
        return field.fold(shares) if shares.max(initial=0) >= field.P else shares

    def beside(self, parts: Sequence[Words]) -> Words:
        """See `Inspects.beside`."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _words(self, payload: bytes | bytearray, owners: int, dimension: int) -> Words:
        """The numbers (owners, dimension) that a payload stands for."""
        if len(payload) != WORD * owners * dimension:
            raise PeerError(
                f"{owners} shares of {dimension} numbers have {WORD * owners * dimension} bytes; {len(payload)} came; "
                "are all processes of one version?",
                code="message",
            )
        return np.frombuffer(payload, dtype="<u8").reshape(owners, dimension)

    def sum_without(self, rows: Sequence[Words], owners: tuple[int, ...]) -> Words:
        """The share (d,) of the sum of the vectors whose shares are `rows` (k, d), but for those of `owners`."""
        total, first = np.zeros(rows[0].shape[1], dtype=np.uint64), 0
        for row in rows:
            total = field.add(total, field.total(row))
            for j in owners:
                if first <= j < first + len(row):
                    total = field.sub(total, row[j - first])
            first += len(row)
        return total

    def zero(self, dimension: int) -> Words:
        return np.zeros(dimension, dtype=np.uint64)

    def add(self, a: Words, b: Words) -> Words:
        return field.add(a, b)

    def kept(self, share: Words, places: NDArray[np.bool_]) -> Words:
        """See `Holder.kept`: 0 is a share of 0, whoever has it."""
        return np.where(places, share, np.uint64(0))

    def cut(self, share: Words, dimension: int) -> list[Words]:
        return list(share.reshape(-1, dimension))

    def join(self, shares: Sequence[Words]) -> Words:
        return np.concatenate(shares)

    def put(self, whole: Words, at: int, share: Words) -> None:
        """See `Gathers.put`."""
        whole[at : at + len(share)] = share

    def fingerprint(self, share: Words) -> str:
        return domains.SHARE_DIGEST.digest(value=np.ascontiguousarray(share, dtype="<u8").data.cast("B")).hex()


class ShamirDealer:
    """Shamir shares of integer vectors."""

    def __init__(self, parties: int, threshold: int) -> None:
        self._parties, self._threshold = parties, threshold
        self._prg = Prg.from_os()

    def deal(self, vectors: Ints) -> list[Any]:
        shares = field.share(field.from_int64(vectors), self._parties, self._threshold, self._prg)
        return [memoryview(row).cast("B") for row in shares]
