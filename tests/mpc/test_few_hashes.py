"""Where ids are hashed: few in the thread that asks, many by several."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dpmpc.mpc.native.hashes as native
from dpmpc.mpc.native import choice
from dpmpc.privacy.assignment import hashes


@pytest.mark.skipif(choice.compiled is None, reason="no compiled kernels")
def test_few_texts_start_no_thread_and_many_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = list[int]()

    class Counted(ThreadPoolExecutor):
        def map(self, function: Any, *pieces: Any, **how: Any) -> Any:
            shared.append(len(pieces[0]))
            return super().map(function, *pieces, **how)

    monkeypatch.setattr(native, "ThreadPoolExecutor", Counted)
    key = b"k" * 32
    for n in (1, 512, 8_191):  # numbers of three and of four lengths are so many pieces
        assert np.array_equal(native.keyed_hashes(key, range(n)), hashes(key, range(n)))
    assert shared == []
    assert np.array_equal(native.keyed_hashes(key, range(8_192)), hashes(key, range(8_192)))
    assert shared == [4]
