"""What the server of a Flower run says to a client, and what it reads of its reply: sealed shares, told apart from
everything else, whatever a client sends.

Which owner a reply is of, its client says, and proves to nobody. So a node is one owner: one that comes as another than
before is left out. And of two that come as one owner in a round the node counts that has done so before; where neither
has, or both, neither counts: else whoever is quicker would speak in the other's place, unseen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from dpmpc.flower.courier import Courier
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.words import BOUND, OWNER, PLAN, RECORD, RELEASE, SEALED, SHARES, TOKEN, TOLD, needs_flower
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.abort_reason import unpack
from dpmpc.privacy.heads import NAME

try:
    from flwr.app import ArrayRecord, ConfigRecord, Message
except ImportError as error:
    raise needs_flower(error) from None


def asking(prepared: Prepared, courier: Courier, offered: int, known: int | None = None) -> ConfigRecord:
    """What a client needs to know for the next release. `offered`: the number that it is where it has none; `known`:
    the one that it has answered with."""
    asked: dict[str, Any] = {
        PLAN: prepared.digest.hex(),
        TOKEN: courier.token,
        RELEASE: courier.next,
        OWNER: offered,
    }
    if courier.bound is not None:
        asked[BOUND] = courier.bound.value
    if told := courier.told():  # a client that has not answered may be any owner
        asked[TOLD] = told if known is None else [table[NAME * known : NAME * (known + 1)] for table in told]
    return ConfigRecord(asked)


@dataclass
class Replies:
    """Of a round: by owner, a sealed share a party; by node, the number that it answered with; a reply that had shares;
    what is wrong with the others, each once."""

    sealed: dict[int, list[bytes]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    answer: Message | None = None
    problems: list[str] = field(default_factory=list)


def read_replies(
    prepared: Prepared, replies: Iterable[Message], release: int, known: Mapping[int, int] | None = None
) -> Replies:
    """What clients sent for this release. `known`: by node, the number that it has answered with before."""
    found, problems = Replies(), dict[str, None]()
    came: dict[int, list[tuple[Message, list[bytes]]]] = {}
    before = known or {}
    for reply in replies:
        if reply.has_error():
            problems[unpack(str(reply.error.reason).encode(errors="replace"))] = None
            continue
        owner, shares = _shares_of(prepared, reply, release)
        if shares is None:
            problems["it holds no shares of this round; give its ClientApp the private_mod"] = None
        elif (mine := before.get(reply.metadata.src_node_id, owner)) != owner:
            problems[f"the client that was owner {mine} came as owner {owner}; give each node one partition-id"] = None
        else:
            came.setdefault(owner, []).append((reply, shares))
    for owner, each in came.items():
        counts = each
        if len(each) > 1:
            counts = [one for one in each if one[0].metadata.src_node_id in before]
            which = "the one that has before" if len(counts) == 1 else "none"
            problems[f"{len(each)} clients came as owner {owner}; {which} counts; give each its own partition-id"] = (
                None
            )
        if len(counts) == 1:
            ((reply, shares),) = counts
            found.sealed[owner], found.answer = shares, found.answer or reply
            found.numbers[reply.metadata.src_node_id] = owner
    found.problems = list(problems)
    return found


def _shares_of(prepared: Prepared, reply: Message, release: int) -> tuple[int, list[bytes] | None]:
    """(owner, its sealed shares by party) of a reply; None where it holds none of this plan and release."""
    about, shares = reply.content.get(RECORD), reply.content.get(SHARES)
    if not (isinstance(about, ConfigRecord) and isinstance(shares, ArrayRecord)):
        return -1, None
    owner, said, sizes = about.get(OWNER), about.get(RELEASE), prepared.sealed_bytes
    held = [shares.get(str(party)) for party in range(len(sizes))]
    good = (
        type(owner) is int  # True equals 1, and is none
        and 0 <= owner < prepared.plan.owners
        and about.get(PLAN) == prepared.digest.hex()
        and type(said) is int
        and said == release
        and all(
            share is not None and share.stype == SEALED and len(share.data) == size
            for share, size in zip(held, sizes, strict=True)
        )
    )
    return (owner, [share.data for share in held if share is not None]) if good else (-1, None)
