"""What the fork server of test_resume imports once: a party's modules."""

import dpmpc.aggregation.party.party
import dpmpc.mpc.replicated.backend
import dpmpc.privacy.gaussian_law  # noqa: F401
