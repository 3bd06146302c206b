"""The names under which a Flower run's messages carry what dpmpc adds to them, and what the two sides say when Flower
is not installed."""

from dpmpc.errors import UsageError

RECORD = "dpmpc"  # a ConfigRecord; in both directions
PLAN = "plan"  # digest of plan and keys, hexadecimal
RELEASE = "release"
TOKEN = "attempt"  # what the parties drew when they met, hexadecimal
TOLD = "told"  # what each party remembers of owners' accounts: `heads`
OWNER = "owner"  # offered by the server; in a reply, the client's own
BOUND = "bound"  # of clipping, where it adapts
SHARES = "dpmpc.shares"  # an ArrayRecord: the sealed shares, by party
SEALED = "dpmpc.sealed"  # how an Array of it is to be read: as it is
REFUSED = "this client takes no part in what was asked; its own log says why"  # whatever the reason is


def needs_flower(error: ImportError) -> UsageError:
    """What to raise where Flower cannot be imported."""
    return UsageError(f"dpmpc.flower needs Flower; {error}; pip install 'flwr[simulation]'")
