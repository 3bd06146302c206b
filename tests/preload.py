"""What the fork server of test_resume imports once: a party's modules, mpyc among them."""

import dpmpc.party  # noqa: F401
from dpmpc.session import import_mpyc

import_mpyc()
