"""Lanes, layouts and the generator: against naive loops, combinatorics and AES on its own."""

import hashlib
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.replicated.layout import SharingLayout

CASES = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (5, 2), (6, 2), (7, 3)]


def test_lanes_are_bits_in_the_documented_order() -> None:
    numbers = Prg(b"lanes").words((64 * 3,))
    planes = to_planes(numbers, 64)
    for lane in range(len(numbers)):
        bits = [int(planes[i, lane % 3]) >> (lane // 3) & 1 for i in range(64)]
        assert sum(bit << i for i, bit in enumerate(bits)) == int(numbers[lane])


@pytest.mark.parametrize("width", [1, 2, 61, 64])
def test_planes_and_numbers_are_inverse(width: int) -> None:
    numbers = Prg(b"lanes", width).words((64 * 5,)) >> np.uint64(64 - width)
    kept = numbers.copy()
    assert (from_planes(to_planes(numbers, width)) == numbers).all() and (numbers == kept).all()


def test_words_for() -> None:
    assert [words_for(k) for k in (0, 1, 64, 65, 128)] == [0, 1, 1, 2, 2]


# -- layout ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "t"), CASES)
def test_every_product_of_components_is_computed_once_by_a_holder_of_both(n: int, t: int) -> None:
    layout = SharingLayout.of(n, t)
    done = []
    for party in range(n):
        mine = layout.mine(party)
        assert all(party in s for s in mine) and len(mine) == len(set(mine))
        done += [(mine[k], mine[l]) for k, others in layout.products(party) for l in others]
    assert sorted(done) == sorted(itertools.product(layout.subsets, repeat=2))


@pytest.mark.parametrize(("n", "t"), CASES)
def test_every_message_is_masked_for_every_coalition_that_sees_it(n: int, t: int) -> None:
    """The part of party j is masked by all its components but the target: one of them is unknown to the coalition."""
    layout = SharingLayout.of(n, t)
    for j, coalition in itertools.product(range(n), itertools.combinations(range(n), t)):
        target = layout.target(j)
        assert j in target and target in layout.subsets
        if j in coalition or not set(target) & set(coalition):
            continue
        masks = [s for s in layout.mine(j) if s != target]
        assert any(not set(s) & set(coalition) for s in masks)


@pytest.mark.parametrize(("n", "t"), CASES)
def test_an_opening_gives_its_readers_what_they_lack_and_no_one_else_anything(n: int, t: int) -> None:
    layout = SharingLayout.of(n, t)
    got: dict[int, list[tuple[int, ...]]] = {i: [] for i in range(n)}
    for sender, receiver, parts in layout.opening_sends:
        assert sender != receiver and all(sender in s and receiver not in s for s in parts)
        got[receiver] += parts
    for party in range(n):
        lacking = [s for s in layout.subsets if party not in s]
        assert sorted(got[party]) == (lacking if party in layout.opened_to else [])
    # A coalition that sees the opening does not know every mask.
    for coalition in itertools.combinations(range(n), t):
        missing = [s for s in layout.subsets if not set(s) & set(coalition)]
        assert len(missing) == 1
        assert not set(coalition) & set(layout.opened_to) or missing[0] != layout.opened_to


# -- generator -------------------------------------------------------------------------------------------------------
def test_the_generator_is_aes_in_counter_mode_under_the_documented_key() -> None:
    def part(raw: bytes) -> bytes:
        return len(raw).to_bytes(8, "little") + raw

    material = part(b"key") + part(b"srandom") + part(b"i" + (7).to_bytes(16, "little")) + part(b"brun")
    key = hashlib.sha256(material).digest()[:16]
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = b"".join(encryptor.update(i.to_bytes(16, "big")) for i in range(5000))
    words = Prg(b"key", "random", 7, b"run").words((10_000,))
    assert words.tobytes() == blocks


def test_pieces_of_any_size_make_one_stream() -> None:
    whole = Prg(b"key", 1).words((100_000,))
    stream, pieces = Prg(b"key", 1), []
    for size in (1, 3, 0, 8191, 1, 8193, 20_000, 5):
        pieces.append(stream.words((size,)))
    left = 100_000 - sum(map(len, pieces))
    pieces.append(stream.words((left // 2, 2)).reshape(-1))
    assert left % 2 == 0 and (np.concatenate(pieces) == whole).all()


def test_domains_are_separate() -> None:
    domains = [
        (),
        (1,),
        (b"1",),
        ("1",),
        (1, 2),
        (12,),
        ("1", "2"),
        ("12",),
        (b"i", 1),
        (-1,),
        ("", ""),
        ("",),
        ("and", 1, 2),
        ("and", 12),
    ]
    first = [int(Prg(key, *domain).words((1,))[0]) for key in (b"", b"k", b"k1") for domain in domains]
    assert len(set(first)) == len(first)


def test_the_operating_system_gives_fresh_keys() -> None:
    assert (Prg.from_os().words((4,)) != Prg.from_os().words((4,))).all()
