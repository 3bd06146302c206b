"""A Flower grid without a network: every message goes to a ClientApp in this process, one after the other.

Flower's own simulation starts processes and carries messages between them; here is nothing but the apps' own work, so
that it can be counted: the bytes of both directions as Flower would send them, the processor's seconds of clients and
of the server.
"""

import copy
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity


def record_bytes(content: RecordDict) -> int:
    """The bytes of a message's records: arrays, metrics, settings and their names."""
    total = 0
    for record in content.values():
        for key, value in record.items():
            total += len(key) + (len(value.data) if hasattr(value, "data") else _value_bytes(value))
    return total


def _value_bytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_value_bytes, value))
    return len(value) if isinstance(value, bytes | str) else 8


class InlineGrid(Grid):
    """See the module. `apps`: what a node runs, by node; nodes are numbered from 1 and have a partition each."""

    def __init__(
        self, apps: Sequence[Callable[[Message, Context], Message]], fails: Iterable[int] = (), *, keep: bool = False
    ) -> None:
        """`fails`: nodes that never answer but with an error; `keep`: what came up, for those who want to see it."""
        self._apps, self._fails = dict(enumerate(apps, start=1)), set(fails)
        self._contexts = {
            node: Context(
                run_id=1,
                node_id=node,
                node_config={"partition-id": node - 1, "num-partitions": len(apps)},
                state=RecordDict(),
                run_config={},
            )
            for node in self._apps
        }
        TaskIdentity.task_id = TaskIdentity.run_id = 1  # as Flower's own simulation does before a run
        TaskIdentity.node_id = SUPERLINK_NODE_ID
        self._numbers = itertools.count(1)
        self._waiting: dict[str, Message] = {}
        self.client_s = 0.0
        self.bytes_down = self.bytes_up = 0
        self.messages = 0
        self.seen: list[RecordDict] = []  # what came up, where it is kept: all that the server sees
        self._keep = keep

    def set_run(self, run: Any) -> None:
        pass

    @property
    def run(self) -> Any:
        return SimpleNamespace(run_id=1)

    def create_message(self, *arguments: Any, **settings: Any) -> Message:
        content, kind, node, group = arguments if arguments else (
            settings["content"], settings["message_type"], settings["dst_node_id"], settings["group_id"]
        )  # fmt: skip
        return Message(content, node, kind, group_id=group)

    def get_node_ids(self) -> Iterable[int]:
        return list(self._apps)

    def get_nodes(self) -> Iterable[Any]:
        return []

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        names = []
        for message in messages:
            name = str(next(self._numbers))
            message.metadata.__dict__["_message_id"] = name
            self._waiting[name] = self._answer(message)
            names.append(name)
        return names

    def _answer(self, message: Message) -> Message:
        node = message.metadata.dst_node_id
        self.messages += 1
        self.bytes_down += record_bytes(message.content)
        if node in self._fails:
            return Message(Error(code=ErrorCode.NODE_UNAVAILABLE, reason="the node has left"), reply_to=message)
        message.content = copy.deepcopy(message.content)  # a node has its own; the bytes of arrays are not copied
        begin = time.process_time()
        reply = self._apps[node](message, self._contexts[node])
        self.client_s += time.process_time() - begin
        if reply.has_content():
            self.bytes_up += record_bytes(reply.content)
            self.seen += [reply.content] * self._keep
        return reply

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._waiting.pop(name) for name in message_ids]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))
