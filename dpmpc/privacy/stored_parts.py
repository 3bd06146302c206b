"""Which of an owner's rows are in the second of two parts of exact sizes: drawn once by a key in its account, and kept.

Rows without ids are known by their place in a file that stays as it is: the key, the file's digest and the sizes say
all. Rows with ids are known by keyed hashes of these, which are kept with their parts: a row that was there before
keeps its part, new ones are drawn into what the planned sizes leave. So two runs never have a row in different parts.

Cost: nothing but a sort for places; a hash an id, and 9 bytes a row of the account's folder.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.folders import replaced
from dpmpc.privacy.ledger import sync_directory

Mask = NDArray[np.bool_]
_BYTES = 8  # of a hash of an id: of 10^6 two are the same once in 4 10^7 draws, and are refused as one id twice
_ROW = np.dtype([("hash", "<u8"), ("second", "u1")])


def by_place(key: str, file: str, n: int, second: int) -> Mask:
    """(n,) which rows of the file of this digest are in the second part, of so many. A raw stream of Philox, which is
    the same in every version of NumPy, orders them."""
    seed = hashlib.blake2b(file.encode(), key=bytes.fromhex(key), digest_size=16).digest()
    order = np.argsort(np.random.Philox(key=int.from_bytes(seed)).random_raw(n), kind="stable")
    found = np.zeros(n, dtype=np.bool_)
    found[order[:second]] = True
    return found


def by_id(path: Path, key: str, ids: Sequence[str], second: int, keep: bool = True) -> Mask:
    """(n,) the same by the rows' ids, whose parts the file at `path` has; those of new ids are drawn, and are on disk
    when this returns, if they are to be kept. Errors: UsageError for an id that two rows have; for sizes that rows
    which keep their parts do not leave."""
    blank, digests = hashlib.blake2b(key=bytes.fromhex(key), digest_size=_BYTES), bytearray()
    for text in ids:
        hashed = blank.copy()
        hashed.update(text.encode())
        digests += hashed.digest()
    mine = np.frombuffer(digests, dtype="<u8")
    if len(np.unique(mine)) < len(mine):
        raise UsageError(
            "parts of exact sizes need an id that each row has alone; two rows have the same; name another column",
            code="unique",
        )
    known = np.load(path, allow_pickle=False) if path.exists() else np.empty(0, dtype=_ROW)  # sorted by hash
    place = np.minimum(np.searchsorted(known["hash"], mine), max(len(known) - 1, 0))
    there = known["hash"][place] == mine if len(known) else np.zeros(len(mine), dtype=np.bool_)
    found = np.zeros(len(mine), dtype=np.bool_)
    found[there] = known["second"][place[there]] == 1
    new = np.flatnonzero(~there)
    missing = second - int(found.sum())
    if not 0 <= missing <= len(new):
        raise UsageError(
            f"records keep their part, held out or trained on, as others come and go; the planned sizes leave room for "
            f"{missing} of {len(new)} new ones; plan with another share, or another data_id"
        )
    if len(new) and keep:
        found[new[np.argsort(mine[new])[:missing]]] = True
        added = np.empty(len(new), dtype=_ROW)
        added["hash"], added["second"] = mine[new], found[new]
        whole = np.concatenate([known, added])
        _write(path, whole[np.argsort(whole["hash"])])
    return found


def _write(path: Path, rows: NDArray[np.void]) -> None:
    """Writes the file whole or not at all; it is on disk when this returns."""
    with replaced(path) as beside:
        with beside.open("wb") as file:
            np.save(file, rows, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
    sync_directory(path.parent)
