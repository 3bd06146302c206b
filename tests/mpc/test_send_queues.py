"""What `tests/endurance/pause_reader.py` counts: bytes that a process has sent to another one that reads nothing."""

import contextlib
import os
import socket
import sys

import pytest

from dpmpc.mpc.transport.addresses import bound_socket
from tests.endurance.pause_reader import queued

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@linux
def test_bytes_that_nobody_takes_are_in_the_senders_queue() -> None:
    """Both ends are this process's."""
    with contextlib.ExitStack() as stack:
        bound = stack.enter_context(bound_socket())
        bound.listen()
        sender = stack.enter_context(socket.create_connection(bound.getsockname()))
        reader = stack.enter_context(bound.accept()[0])
        sender.setblocking(False)
        me, sent = os.getpid(), 0
        assert queued({"sender": me}, me) == {}
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += sender.send(bytes(1 << 16))
        assert 0 < queued({"sender": me}, me)["sender"] <= sent
        assert queued({"sender": me}, os.getppid()) == {}, "to another process nothing was sent"
        while sent:
            sent -= len(reader.recv(1 << 20))
        while queued({"sender": me}, me):  # until the last of it is confirmed
            pass
