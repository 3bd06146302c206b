"""Which of an owner's rows are in the second of two parts of exact sizes: drawn once by a key in its account, and kept.

Rows without ids are known by their place in a file that stays as it is: the key, the file's digest and the sizes say
all. Rows with ids are known by keyed hashes of these, which are kept with their parts: a row that was there before
keeps its part, new ones are drawn into what the planned sizes leave. So two runs never have a row in different parts.

Cost: nothing but a sort for places; a hash an id, and 17 bytes a row of the account's folder.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.privacy.ledger import sync_directory

Mask = NDArray[np.bool_]
_BYTES = 16  # of a hash of an id
_ROW = np.dtype([("hash", f"S{2 * _BYTES}"), ("second", "u1")])


def by_place(key: str, file: str, n: int, second: int) -> Mask:
    """(n,) which rows of the file of this digest are in the second part, of so many. A raw stream of Philox, which is
    the same in every version of NumPy, orders them."""
    seed = hashlib.blake2b(file.encode(), key=bytes.fromhex(key), digest_size=_BYTES).digest()
    order = np.argsort(np.random.Philox(key=int.from_bytes(seed)).random_raw(n), kind="stable")
    found = np.zeros(n, dtype=np.bool_)
    found[order[:second]] = True
    return found


def by_id(path: Path, key: str, ids: Sequence[str], second: int) -> Mask:
    """(n,) the same by the rows' ids, whose parts the file at `path` has; those of new ids are drawn, and are on disk
    when this returns. Errors: UsageError for an id that two rows have; for sizes that rows which keep their parts do
    not leave."""
    blank, hashes = hashlib.blake2b(key=bytes.fromhex(key), digest_size=_BYTES), []
    for text in ids:
        hashed = blank.copy()
        hashed.update(text.encode())
        hashes.append(hashed.hexdigest().encode())
    known = dict(np.load(path, allow_pickle=False).tolist()) if path.exists() else {}
    if len(set(hashes)) < len(hashes):
        raise UsageError(
            "parts of exact sizes need an id that each row has alone; two rows have the same; name another column"
        )
    new = sorted(each for each in hashes if each not in known)
    missing = second - sum(known.get(each, 0) for each in hashes)
    if not 0 <= missing <= len(new):
        raise UsageError(
            f"records keep their part, held out or trained on, as others come and go; the planned sizes leave room for "
            f"{missing} of {len(new)} new ones; plan with another share, or another data_id"
        )
    if new:
        known |= {each: int(place < missing) for place, each in enumerate(new)}
        _write(path, np.array(list(known.items()), dtype=_ROW))
    return np.array([known[each] for each in hashes], dtype=np.bool_)


def _write(path: Path, rows: NDArray[np.void]) -> None:
    """Writes the file whole or not at all; it is on disk when this returns."""
    partial = path.with_suffix(".tmp")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        np.save(file, rows, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)
