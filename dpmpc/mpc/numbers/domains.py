"""Every use of a hash and of a pseudorandom stream in the protocols, declared once: its domain.

A check says of one instance that it is well formed, never that two instances differ. So what is hashed, or what a
stream's key is made of, begins with a name that no other use has, and then has the number of every instance that there
can be more than one of: run, attempt, connection, channel, batch, part, direction, party, tree, leaf. Two instances
have then two outputs, even where somebody who deviates has made all that it chooses alike. A run's id has its attempt's
number; a session of two servers is one connection.

Outside this module nothing in `dpmpc.mpc` hashes and nothing makes a stream from a key, but for what `ELSEWHERE`
names; `BLOCKS` lists the uses of AES beside. `python -m website.domains --write` writes docs/domains.md from here. A
test holds all of them against the code.
"""

import hashlib
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.mpc.numbers.prg import Prg

if TYPE_CHECKING:
    from hashlib import _Hash

Words = NDArray[np.uint64]
Part = bytes | int | str

HASH, STREAM = "hash", "stream"
_PLACE = struct.Struct("<II")


@dataclass(frozen=True)
class Domain:
    """One use. `of`: what tells its instances from each other, in the order in which they are given; `gives`: what
    comes out; `kind`: HASH, or STREAM under a key that is secret or was not known before."""

    name: str
    of: tuple[str, ...]
    gives: str
    kind: str = HASH

    def _checked(self, of: tuple[Part, ...], kind: str, more: int = 0) -> tuple[Part, ...]:
        if len(of) + more != len(self.of) or kind != self.kind:  # holds under -O too: two instances would be alike
            raise AssertionError(
                f"the {self.kind} {self.name} is of {', '.join(self.of)}; got {len(of) + more} of them"
            )
        return of

    def start(self, *of: Part) -> "_Hash":
        """SHA-256 that has taken the name and the instance; what is hashed comes next, whole, once."""
        return self._start(self._checked(of, HASH))

    def _start(self, of: tuple[Part, ...]) -> "_Hash":
        return hashlib.sha256(b"".join(map(encoded, (self.name, *of))))

    def digest(self, *of: Part, value: bytes | memoryview = b"") -> bytes:
        """SHA-256 of the name, the instance and the value."""
        made = self.start(*of)
        made.update(value)
        return made.digest()

    def each(self, *of: Part, rows: Words) -> Words:
        """(a, b, 4) of rows (a, b, words): the digest of each, whose two places are the last of what it is of."""
        whole, made = self._start(self._checked(of, HASH, 2)), []
        raw = np.ascontiguousarray(rows, dtype="<u8").reshape(-1, rows.shape[2]).view(np.uint8)
        for number, row in enumerate(raw):
            one = whole.copy()
            one.update(_PLACE.pack(*divmod(number, rows.shape[1])) + row.tobytes())
            made.append(one.digest())
        return np.frombuffer(b"".join(made), dtype="<u8").reshape(*rows.shape[:2], 4).astype(np.uint64)

    def stream(self, key: bytes, *of: Part) -> Prg:
        """A stream under the key, which may serve other domains and instances, too."""
        return Prg(key, self.name, *self._checked(of, STREAM))


def encoded(part: Part) -> bytes:
    """A part of what is hashed, so that no two lists of parts have one encoding."""
    if isinstance(part, int):
        raw = b"i" + part.to_bytes(16, "little", signed=True)
    else:
        raw = b"b" + part if isinstance(part, bytes) else b"s" + part.encode()
    return len(raw).to_bytes(8, "little") + raw


# -- replicated shares: under the key of a subset of parties -----------------------------------------------------------
AND = Domain("and", ("run", "subset", "channel", "sender"), "masks of one party's messages of ANDs", STREAM)
RANDOM = Domain("random", ("run", "subset", "channel"), "random bits of a program", STREAM)
MASK = Domain("mask", ("run", "subset", "channel"), "masks of the numbers that a conversion opens", STREAM)
FIXED_MASK = Domain("fixed mask", ("run", "subset", "channel"), "masks of fixed-point numbers", STREAM)
FIXED_BITS = Domain("fixed bits", ("run", "subset", "channel"), "random fixed-point numbers", STREAM)
FIXED_ZERO = Domain("fixed zero", ("run", "subset", "channel"), "sharings of zero", STREAM)
FIXED_DEAL = Domain("fixed deal", ("run", "subset", "channel", "dealer"), "shares of dealt numbers", STREAM)
OWNER_SHARES = Domain("owner shares", ("run", "subset", "channel"), "masks of the check of owners' shares", STREAM)
OWNER_MASK = Domain("owner mask", ("run", "subset", "channel"), "masks of owners' sums", STREAM)
OWNER_MASK_CHECKED = Domain(
    "owner mask, checked", ("run", "subset", "channel"), "the same, between checked parties", STREAM
)
OWNER_ZERO = Domain("owner zero", ("run", "subset", "channel"), "sharings of zero for owners' sums of squares", STREAM)

# -- replicated shares, checked ----------------------------------------------------------------------------------------
KEY_PROMISE = Domain("promised part of a key", ("run", "subset", "party"), "a promise, shown later")
KEY = Domain("key of a subset", ("run", "subset"), "the key, of all members' parts")
KEY_SAME = Domain("same key of a subset", ("run", "subset", "party"), "what a member says of the key")
PAIR = Domain("pair", ("run", "subset", "channel"), "the random pair in the check of ANDs", STREAM)
SQUARE_PAIR = Domain("pair of squares", ("run", "subset", "channel"), "the random pair in the check of squares", STREAM)
SUMS = Domain("sums", ("run", "subset", "channel", "sender"), "masks of one party's sums of a check", STREAM)
COIN_PIECE = Domain("coin", ("run", "subset", "channel"), "pieces of coins, a coin after the other", STREAM)
COIN = Domain("weights of a check", ("run", "channel", "number"), "a check's weights, under its coin", STREAM)
COINS_LOG = Domain("coins of a check", ("run", "channel"), "a digest of all its coins")
TOLD = Domain("told in a check", ("run", "subset", "channel"), "a digest of all that holders of a component were told")
TOLD_ALIKE = Domain(
    "told alike", ("run", "channel", "party", "other"), "what a party says of coins and of what it was told"
)
SAYS = Domain("says", ("run", "channel", "what", "party"), "what a party says to all: that a check held, and its coins")
CHECKED = Domain("checked", ("run", "channel"), "a digest of what a check has opened, for transcripts")
CONVERSION = Domain("conversion", ("run", "channel", "party"), "a digest of components that another holder shows")

# -- coins that are promised -------------------------------------------------------------------------------------------
PROMISED = Domain("part of a coin", ("run", "channel", "batch", "party", "number"), "a part, of the one shown after it")
PROMISED_COIN = Domain("promised coin", ("run", "channel", "batch", "number"), "a coin, of all parties' parts")
PROMISED_LOG = Domain("promised coins", ("run", "channel", "batch"), "a digest of all coins so far")

# -- Shamir shares -----------------------------------------------------------------------------------------------------
PARAMETERS = Domain("parameters of shamir", ("kind",), "a digest of what parties must have alike")
PAIR_KEY = Domain(
    "pair key",
    ("epoch", "parties", "threshold", "low party", "high party", "both public keys", "parameters"),
    "what a key of two parties is bound to, by HKDF, whose salt is the run",
)
SHARE = Domain(
    "share", ("run", "epoch", "batch", "dealer", "receiver"), "shares that are dealt without a message", STREAM
)
ZERO = Domain("zero", ("run", "epoch", "batch", "dealer", "receiver"), "summands of sharings of zero", STREAM)
MANY_WEIGHTS = Domain(
    "weights of products", ("run", "channel", "batch"), "weights of products and bits, under a coin", STREAM
)
MANY_STAGE = Domain(
    "stage of a fold", ("run", "channel", "batch", "number"), "where a fold goes on, under a coin", STREAM
)
VERDICTS = Domain("verdicts", ("run", "channel"), "the digest of all batches' checks in a transcript")
OPENED = Domain("opened", ("run", "channel", "party"), "what a party says of an opened vector")

# -- checks of owners --------------------------------------------------------------------------------------------------
OWNERS_PROMISE = Domain("promise of owners", ("run", "channel", "party"), "a promise of a part of the coin")
OWNERS_COIN = Domain("coin of owners", ("run", "channel"), "the coin, of all parties' parts")
OWNERS_SAME = Domain("owners", ("run", "channel", "what", "party"), "what a party says of what it has seen")
OWNERS_WEIGHTS = Domain("weights of owners", (), "weights of coordinates, under the coin of run and channel", STREAM)
OWNERS_HALVES = Domain("halves of owners", (), "random halves of the coordinates, under the same coin", STREAM)

# -- two servers -------------------------------------------------------------------------------------------------------
POINTS = Domain("points", ("version", "k", "direction", "run", "digest"), "what base transfers are bound to")
POINT = Domain(
    "point", ("bound to", "transfer", "choice", "other point", "try", "half"), "a point nobody knows the logarithm of"
)
BASE = Domain("base transfer", ("session", "direction", "transfer", "choice"), "the key of a base transfer")
TREES = Domain("trees", ("points", "nonce"), "what a chooser's trees are bound to")
CHILDREN = Domain("children", ("trees", "level", "tree", "node"), "a node's two children")
TAG = Domain("tag", ("trees", "tree", "leaf"), "a leaf's tag")
TAGS = Domain("tags", (), "the digest of all tags, each of which has its place")
SESSION = Domain("session", ("version", "k", "p", "run", "digest"), "a connection, of both first messages")
SALTED = Domain("salted session", ("session", "direction"), "one direction of it, with the salt of who offers there")
LEAF = Domain("leaf", ("session", "direction", "tree", "leaf"), "the key of a leaf's stream")
ROWS = Domain("rows", ("session", "direction", "batch", "part"), "what pieces' keys and tweaks follow from")
TRANSFERS = Domain(
    "transfers", ("session", "direction", "batch", "part"), "weights of the check, under the challenge", STREAM
)
ANSWER = Domain("answer", ("session", "direction", "batch", "part"), "what a chooser answers")
OPENING = Domain(
    "opening", ("run", "session", "channel", "party", "what for", "salt"), "the promise of an opened share"
)

# -- owners, links, and what is no protocol ----------------------------------------------------------------------------
DEALT = Domain("dealt", ("party",), "an owner's shares for one party, under a seed for this one dealing", STREAM)
SHARE_DIGEST = Domain("digest of a share", (), "by which shares are told apart in a party's own transcript")
SIMULATED = Domain("simulated", ("of", "purpose"), "streams of a computation in the clear", STREAM)
PROGRAM_LABEL = Domain("label", ("counter", "label"), "labels of a program's messages between MPyC's parties")
TAG_OF_RUN = Domain("tag of a run", (), "16 bits that tell runs, or their stages, apart in frames; no secret")


@dataclass(frozen=True)
class BlockUse:
    """One use of AES beside streams. `where`: the files it is in; `key`: what it is under; `tweak`: what tells one
    block from another."""

    name: str
    where: tuple[str, ...]
    key: str
    tweak: str


BLOCKS = (
    BlockUse(
        "stream under a domain", ("numbers/prg.py", "native/aes.py"), "SHA-256 of a key and a domain", "a counter"
    ),
    BlockUse("stream of a leaf", ("two_servers/extension.py", "native/ot.py"), "LEAF", "batch, part, and a counter"),
    BlockUse("keys of pieces", ("two_servers/extension.py", "native/ot.py"), "ROWS", "the piece's number"),
    BlockUse("hash of a row", ("native/ot.py",), "the piece's", "the row, XOR its transfer's tweak"),
    BlockUse(
        "tweaks of transfers",
        ("two_servers/extension.py",),
        "ROWS, its other half",
        "the bit or the word of a transfer",
    ),
    BlockUse("keys of halves", ("two_servers/half_gates.py",), "16 bytes a piece", "the half's number"),
    BlockUse("tweaks of lanes", ("two_servers/half_gates.py",), "the same", "2^62 and the lane's number"),
    BlockUse("hash of a label", ("two_servers/half_gates.py",), "the half's", "the label, XOR its lane's tweak"),
)

ELSEWHERE = {
    "mpyc/holder.py": "what parties must have alike, and shares in a party's own transcript; MPyC's backend computes "
    "with MPyC alone",
    "transport/site_keys.py": "fingerprints of sites' keys, and the number of their list; they are for people",
    "native/speed.py": "how quick the kernels are here",
    "shamir/pair_keys.py": "HKDF of the secret that two parties have in common, whose `info` is *pair key*",
}
