"""What went over the wires between the parties, by channel: frames, bytes, and a digest that both ends must agree on.

Counted below the protocols, where frames leave and arrive, so that a protocol cannot leave one out. The digests are of
frames that look uniform to everybody but the two ends and the parties that know their masks; control frames, which
carry PRSS keys, are not looked at.
"""

import hashlib
import struct
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from dpmpc.mpc.transport.link import Connection, Payload

_FRAME = struct.Struct("<qQ")


class _Flow:
    """Frames of a channel, one way."""

    __slots__ = ("digest", "frames", "size")

    def __init__(self) -> None:
        self.frames = self.size = 0
        self.digest = hashlib.sha256()


class Traffic:
    """An observer of a session's connections; `take` gives out the record of a channel and forgets it. What went over a
    connection that nobody holds any more is forgotten too: a caller that was dropped leaves nothing."""

    def __init__(self) -> None:
        self._flows: WeakKeyDictionary[Connection, dict[tuple[int, bool], _Flow]] = WeakKeyDictionary()

    def __call__(self, peer: Connection, outgoing: bool, label: int, payload: Payload) -> None:
        """Note one frame."""
        if label < 0:  # greeting, keys and end of a session
            return
        flows = self._flows.get(peer)
        if flows is None:
            flows = self._flows[peer] = {}
        key = label >> 32, outgoing
        flow = flows.get(key)
        if flow is None:
            flow = flows[key] = _Flow()
        size = len(payload)
        flow.frames += 1
        flow.size += size
        flow.digest.update(_FRAME.pack(label, size))
        flow.digest.update(payload)

    def take(self, parties: Mapping[Connection, int], channel: int) -> dict[str, Any]:
        """{"sent": {party: [frames, bytes, digest]}, "received": ...} of one channel; empty if it carried nothing."""
        sent: dict[str, Any] = {}
        received: dict[str, Any] = {}
        ways = ((channel, True), sent), ((channel, False), received)
        for peer, flows in self._flows.items():
            for key, records in ways:
                if (flow := flows.pop(key, None)) is not None:
                    records[str(parties.get(peer, "nobody"))] = [flow.frames, flow.size, flow.digest.hexdigest()]
        return {"channel": channel, "sent": sent, "received": received}

    def channels(self) -> list[int]:
        """The channels that carried frames and were not taken yet."""
        return sorted({channel for flows in self._flows.values() for channel, _ in flows})
