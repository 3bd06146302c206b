"""Keyed BLAKE2b of many short texts, to 64 bits. The twin is `dpmpc.privacy.assignment.hashes`."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.privacy.assignment import hashes
from dpmpc.processes.cores import threads_for

Words = NDArray[np.uint64]
Joined = tuple[bytes | NDArray[np.uint8], Words]

_AT_ONCE = 1 << 16  # texts
_AHEAD = 4  # as many times so many texts for each core, at most
_FEW = 1 << 13  # texts: fewer take no longer than threads to start


def keyed_hashes(key: bytes, texts: Iterable[object]) -> Words:
    """(n,) the BLAKE2b of each text, with this key, as a big-endian number. `texts`: none is empty; a range from 0
    stands for its numbers in digits. Not of secrets: how long it takes tells the texts' lengths."""
    if choice.compiled is None:
        return hashes(key, texts)
    compiled = choice.compiled

    def hashed(joined: Joined) -> Words:
        whole, ends = joined
        out = np.empty(len(ends), dtype=np.uint64)
        compiled.keyed_hashes(key, whole, ends, out)
        return out.byteswap()

    pieces = _counted(len(texts)) if isinstance(texts, range) and texts[:1] == range(1) else _joined(texts)
    found, many = [np.zeros(0, dtype=np.uint64)], threads_for(1)
    with ThreadPoolExecutor(many) as pool:
        while some := list(islice(pieces, _AHEAD * many)):
            few = len(some) == 1 or sum(len(ends) for _, ends in some) < _FEW
            found += map(hashed, some) if few else pool.map(hashed, some)
    return np.concatenate(found)


def _counted(n: int) -> Iterator[Joined]:
    """0 ... n - 1 in digits, some that have equally many at a time."""
    begin, digits = 0, 1
    while begin < n:
        end = min(begin + _AT_ONCE, n, 10**digits)
        left, text = np.arange(begin, end, dtype=np.uint64), np.empty((end - begin, digits), dtype=np.uint8)
        for place in range(digits - 1, -1, -1):
            left, text[:, place] = np.divmod(left, np.uint64(10))
        text += ord("0")
        yield text.reshape(-1), np.arange(1, end - begin + 1, dtype=np.uint64) * np.uint64(digits)
        begin, digits = end, digits + (end == 10**digits)


def _joined(texts: Iterable[object]) -> Iterator[Joined]:
    """The bytes of some texts at a time, and where each of them ends."""
    each = iter(texts)
    while part := list(map(str, islice(each, _AT_ONCE))):
        whole = "".join(part)
        if whole.isascii():
            yield whole.encode(), np.cumsum(list(map(len, part)), dtype=np.uint64)
        else:
            spelled = [text.encode() for text in part]
            yield b"".join(spelled), np.cumsum(list(map(len, spelled)), dtype=np.uint64)
