"""As what a process of a plan is known to the others: by its greeting, its certificate, the account that it shows."""

import hashlib

from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.derivation import derivation
from dpmpc.aggregation.plan.plan import Plan


def greeting(plan: Plan, attempt: Attempt, secret: str = "", sites: bytes = b"") -> bytes:
    """What processes must agree on before anything else is said: the digest of plan and attempt, and of the sources by
    which each derives; with that of the list of all sites' keys (`sites`), where they have one; with the secret of a
    run that one process started, a digest that only its own processes know."""
    agreed = hashlib.sha256(b"dpmpc sources\0" + derivation(plan) + plan.digest(attempt)).digest()
    if sites:
        agreed = hashlib.sha256(b"dpmpc sites\0" + sites + agreed).digest()
    return hashlib.sha256(b"dpmpc secret\0" + secret.encode() + agreed).digest() if secret else agreed


def certificate_name(plan: Plan, first: int, end: int) -> str:
    """`owners` for a process that plays all owners, `owner7` for one that plays owner 7 alone; no other has a
    certificate."""
    if (first, end) == (0, plan.owners):
        return "owners"
    return f"owner{first}" if end == first + 1 else f"owners {first}..{end - 1}"


def shows_accounts(plan: Plan, secret: str = "") -> bool:
    """Whether owners show the heads of their accounts: of data with a name, in a run of several machines. Public."""
    return not secret and plan.of_named_data


def owner_of_account(plan: Plan, first: int, end: int) -> str:
    """Under what name a process's account is remembered: its site's, where the plan has names, else its
    certificate's."""
    names = plan.names
    return names.owners[first] if names is not None and end == first + 1 else certificate_name(plan, first, end)
