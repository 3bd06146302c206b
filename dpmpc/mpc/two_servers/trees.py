"""Trees of keys, of which one server knows all leaves and the other all but one: all-but-one oblivious transfer.

A tree with 2^k leaves takes k base transfers: at each level the key holder sums up the left children and the right
children, and the other learns the sum of the side that its path does not take.
A key holder that deviates could send sums that give the other a wrong leaf on some paths only. So each leaf has a tag,
a hash of it; the holder sends the XOR of each tree's tags and a digest of them all. Who lacks a leaf works out its tag
from the XOR, and compares the digest: whatever paths pass, they lead to one and the same tree.
That trees are well formed says nothing of two of them, or of two halves of one: a holder may grow all from one root.
So children, tags and keys are hashes that have the place of what is hashed, its tree, its level and its number there.
The holder says tags before the other draws a salt, and the leaves' streams have keys that follow from leaf, place and
salts: a holder that chooses among roots does not choose what streams give.
Source: the tree of Goldreich, Goldwasser, Micali, punctured by transfers as Boyle et al. 2019 do; the tags are those of
Roy 2022, figure 14.
"""

import hmac
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.mpc.numbers import domains

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

KEY_BYTES = 16
TAG_BYTES = 32


@dataclass(frozen=True, eq=False)
class Grown:
    """The trees of who holds them: all leaves (trees, 2^k, 2), the sums of their levels (trees, k, 2, 2), the proof."""

    leaves: Words
    sums: Words
    proof: bytes


def grown(count: int, k: int, context: bytes) -> Grown:
    """So many trees, from fresh roots."""
    roots = np.frombuffer(secrets.token_bytes(KEY_BYTES * count), dtype="<u8").reshape(-1, 2).astype(np.uint64)
    leaves, sums = whole(roots, k, context)
    return Grown(leaves, sums, proof_of(tags_of(leaves, context)))


def _children(nodes: Words, level: int, context: bytes) -> Words:
    """(trees, 2 count, 2): the two children of every node (trees, count, 2) of a level, left before right."""
    return domains.CHILDREN.each(context, level, rows=nodes).reshape(len(nodes), -1, 2)


def whole(roots: Words, k: int, context: bytes) -> tuple[Words, Words]:
    """(leaves (trees, 2^k, 2), sums (trees, k, 2, 2)): all leaves, and of each level the XOR of its left and of its
    right children. `roots`: (trees, 2), uniform and secret."""
    nodes, sums = roots[:, None], []
    for level in range(k):
        nodes = _children(nodes, level, context)
        sums.append(np.stack([np.bitwise_xor.reduce(nodes[:, side::2], axis=1) for side in (0, 1)], axis=1))
    return nodes, np.stack(sums, axis=1)


def tags_of(leaves: Words, context: bytes) -> Words:
    """A hash of each leaf (trees, 2^k, 2): (trees, 2^k, 4)."""
    return domains.TAG.each(context, rows=leaves)


def stream_keys(leaves: Words, session: bytes, direction: int) -> Words:
    """The keys of the leaves' streams, of the leaves' shape. `session` has the salts."""
    return domains.LEAF.each(session, direction, rows=leaves)[..., :2]


def proof_of(tags: Words) -> bytes:
    """What the key holder sends first: of each tree the XOR of its tags, then the digest of all."""
    sums: Words = np.bitwise_xor.reduce(tags, axis=1)
    return sums.astype("<u8").tobytes() + _digest(tags)


def proved(tags: Words, paths: Words, proof: bytes) -> bool:
    """Whether the leaves with these tags, but for leaf paths[tree], are the key holder's. No branch and no address
    depends on the paths before the verdict."""
    lacking = np.uint64(0) - (np.arange(tags.shape[1], dtype=np.uint64) == paths[:, None]).astype(np.uint64)
    known = tags & ~lacking[:, :, None]
    sums = np.frombuffer(proof[:-TAG_BYTES], dtype="<u8").reshape(-1, 4)
    missing = sums ^ np.bitwise_xor.reduce(known, axis=1)
    return hmac.compare_digest(proof[-TAG_BYTES:], _digest(known | (missing[:, None] & lacking[:, :, None])))


def _digest(tags: Words) -> bytes:
    return domains.TAGS.digest(value=tags.astype("<u8").tobytes())


def punctured(paths: Words, chosen: Words, k: int, context: bytes) -> Words:
    """The leaves (trees, 2^k, 2) but for leaf paths[tree], which comes out as garbage.

    `chosen` (trees, k, 2): of each level the sum of the children on the side that the path does not take. No branch and
    no address depends on the secret paths.
    """
    trees = len(paths)
    nodes = np.zeros((trees, 1, 2), dtype=np.uint64)
    on_path = np.full((trees, 1), ~np.uint64(0))  # all ones where a node is on the path, so not known
    for level in range(k):
        bit = (paths >> np.uint64(k - 1 - level)) & np.uint64(1)
        turns = np.stack([bit - np.uint64(1), np.uint64(0) - bit], axis=1)  # all ones on the side that the path takes
        children = _children(nodes, level, context).reshape(trees, -1, 2, 2)  # tree, node, side, word
        known = children & ~on_path[:, :, None, None]
        sibling = chosen[:, level, None, :] ^ np.bitwise_xor.reduce(known, axis=1)  # tree, side, word
        nodes = (known | (on_path[:, :, None, None] & sibling[:, None])).reshape(trees, -1, 2)
        on_path = (on_path[:, :, None] & turns[:, None]).reshape(trees, -1)
    return nodes


def relabelled(leaves: Words, paths: Words, k: int) -> Words:
    """leaves[:, y ^ paths]: the one that is not known comes first. By swaps that are done under masks."""
    leaves = leaves.copy()
    for b in range(k):
        mask = np.uint64(0) - ((paths >> np.uint64(b)) & np.uint64(1))
        pairs = leaves.reshape(len(leaves), -1, 2, 1 << b, 2)
        swap = (pairs[:, :, 0] ^ pairs[:, :, 1]) & mask[:, None, None, None]
        pairs[:, :, 0] ^= swap
        pairs[:, :, 1] ^= swap
    return leaves


def keys_of(leaves: Words) -> Bytes:
    """AES keys (trees 2^k, 16)."""
    return np.ascontiguousarray(leaves, dtype="<u8").view(np.uint8).reshape(-1, KEY_BYTES)


def words_of(keys: Sequence[bytes]) -> Words:
    """Keys of 16 bytes as words (count, 2)."""
    return np.frombuffer(b"".join(keys), dtype="<u8").reshape(-1, 2).astype(np.uint64)
