"""What the fork server of test_resume imports once: a party's modules, mpyc among them."""

import dpmpc.aggregation.party
import dpmpc.mpc.backends.sharing
import dpmpc.privacy.gaussian_law  # noqa: F401
from dpmpc.mpc.mpyc_runtime import import_mpyc

import_mpyc()
