"""What the fork server of test_resume imports once: a party's modules, mpyc among them."""

import dpmpc.aggregation.party  # noqa: F401
from dpmpc.mpc.session import import_mpyc

import_mpyc()
