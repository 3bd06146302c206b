"""Threads that share one kernel's work: no bit depends on how many there are, nor on who else is at work."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.mpc.native.layers import Deposit, Masks, ProductLayer
from dpmpc.mpc.numbers.residues import weighted_sum
from tests.mpc.test_native import compiled_only, draw, random_layer, slots_of
from tests.runs import HANG


@compiled_only
def test_threads_that_share_the_work_change_no_bit() -> None:
    layer, products = random_layer(50, 9), ProductLayer([(0, [0, 1]), (1, [0])], 1)
    mask, planes, values = draw(15, 100), draw(64, 1000), draw(3, 10_001) >> np.uint64(3)
    deposits = [Deposit(layer.results, 1, (mask,))]
    start = draw(50 * 2 * 100)

    def work() -> list[NDArray[np.uint64]]:
        slots, message, turned = slots_of(50, 2, 100, 16), draw(15, 100), np.empty_like(planes)
        slots.state.reshape(-1)[: len(start)] = start
        slots.run(layer, deposits, products, Masks([(0, mask)]), message)
        choice.compiled.transpose(planes, turned, 1000)
        return [slots.state.copy(), message, turned, weighted_sum(list(values), [3, 5, 7], 11)]

    def many() -> bool:
        return all((a == b).all() for _ in range(40) for a, b in zip(work(), alone, strict=True))

    alone = work()
    try:
        for threads in (2, 5):
            choice.use_threads(threads)
            with ThreadPoolExecutor(3) as callers:  # one at a time has the helpers
                assert all(callers.map(lambda _: many(), range(3)))
    finally:
        choice.use_threads(1)


@compiled_only
def test_a_forked_process_works_without_the_helpers_of_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKS], capture_output=True, text=True, timeout=HANG)
    assert done.stdout == "the same\n", done.stderr


_FORKS = """
import os, sys
import numpy as np
from dpmpc.mpc.native import choice
from dpmpc.mpc.numbers.residues import weighted_sum

values = [np.arange(100_000, dtype=np.uint64)]
alone = weighted_sum(values, [3], 0)
choice.use_threads(2)
weighted_sum(values, [3], 0)
child = os.fork()
if child == 0:
    for threads in (1, 2):
        if threads > 1:
            choice.use_threads(threads)
        if not (weighted_sum(values, [3], 0) == alone).all():
            os._exit(1)
    os._exit(0)
if os.waitpid(child, 0)[1] == 0 and (weighted_sum(values, [3], 0) == alone).all():
    print("the same")
"""
