"""Errors that a user can act on. Each message says the rule, then the value, then the way out; never a secret.

A bug in dpmpc is an AssertionError or any other exception; these are the ones that are not bugs.
"""


class DpmpcError(Exception):
    """Something could not be done. The command line prints the message in one line and exits with `exit_code`."""

    exit_code = 1


class UsageError(DpmpcError):
    """The caller asked for something that cannot be (a bad value, a missing file or column)."""

    exit_code = 2


class PeerError(DpmpcError):
    """Another process of the run died, never came, or spoke another protocol."""

    exit_code = 3


class CheatError(PeerError):
    """A check of what the parties do has failed: one of them cheats, or computes wrongly. The run is over for good."""

    exit_code = 4


class OwnerError(PeerError):
    """An owner has failed the parties' checks, in a run that ends then. Nothing of the release was spent."""

    exit_code = 5


def error_of(message: str, exit_code: int) -> DpmpcError:
    """The error that another process reported by its message and exit code."""
    for kind in (UsageError, PeerError, CheatError, OwnerError):
        if kind.exit_code == exit_code:
            return kind(message)
    error = DpmpcError(message)
    error.exit_code = exit_code
    return error
