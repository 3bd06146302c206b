"""MPyC, imported: what processes that are forked from one that has imported it need not do themselves.

Nothing of a run is made here: a party's runtime and its keys are made in the party.
"""

from dpmpc.mpc.mpyc_runtime import import_mpyc

import_mpyc()
