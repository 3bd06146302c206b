"""dpmpc: one model, or one sum, from records that several owners may not show, with one copy of noise made inside MPC.

Owners' vectors are added up inside secure multi-party computation, the parties make one noise vector together that
nobody knows, add it after aggregation, and open only the noisy sum. A first mean, with three parties on this machine:

    import numpy as np, dpmpc
    vectors = np.random.default_rng(0).normal(size=(20, 1000))
    mean = dpmpc.private_mean(vectors, clip=1.0, epsilon=1.0, delta=1e-5)

Many releases under one promise; the noise of all of them is made ahead:

    with dpmpc.Aggregator(owners=20, dimension=1000, clip=1.0, epsilon=1.0, delta=1e-5, releases=100) as aggregator:
        for _ in range(100):
            mean = aggregator.mean(vectors)
        print(aggregator.guarantee)

By default neighbours differ in one owner's whole vector; `sensitivity=` states another unit, and the guarantee then
says that it is the caller's. `Plan`, `Owner`, `Party` and `Site` are the same over several machines; `train` and
`predict` are the commands of that name; `account` answers questions about budgets. New laws of noise, backends and
methods of learning are registered as entry points (docs/python.md).

Errors are `UsageError` (you asked for something that cannot be), `PeerError` (another process died, never came, or is
not what it should be), both `DpmpcError`; anything else is a bug in dpmpc.
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from dpmpc.aggregation.owner.aggregator import Aggregator
    from dpmpc.aggregation.owner.mean import private_mean
    from dpmpc.aggregation.owner.sites import Owner, Party, Site
    from dpmpc.aggregation.plan.guarantee import Promise
    from dpmpc.aggregation.plan.limits import Limits
    from dpmpc.aggregation.plan.plan import Plan
    from dpmpc.errors import DpmpcError, PeerError, UsageError
    from dpmpc.learning.account import account
    from dpmpc.learning.clipped import clipped_mean
    from dpmpc.learning.method import METHODS, Method
    from dpmpc.learning.predict import predict
    from dpmpc.local.trained import train
    from dpmpc.mpc.contract.backend import BACKENDS, Backend
    from dpmpc.privacy.law import LAWS, Law
    from dpmpc.tables.asked import stats
    from dpmpc.tables.meet import meet
    from dpmpc.tables.synth import synth

__all__ = [
    "BACKENDS",
    "LAWS",
    "METHODS",
    "Aggregator",
    "Backend",
    "DpmpcError",
    "Law",
    "Limits",
    "Method",
    "Owner",
    "Party",
    "PeerError",
    "Plan",
    "Promise",
    "Site",
    "UsageError",
    "account",
    "clipped_mean",
    "meet",
    "predict",
    "private_mean",
    "stats",
    "synth",
    "train",
]

_HOMES = {
    "BACKENDS": "mpc.contract.backend",
    "LAWS": "privacy.law",
    "METHODS": "learning.method",
    "Aggregator": "aggregation.owner.aggregator",
    "Backend": "mpc.contract.backend",
    "DpmpcError": "errors",
    "Law": "privacy.law",
    "Limits": "aggregation.plan.limits",
    "Method": "learning.method",
    "Owner": "aggregation.owner.sites",
    "Party": "aggregation.owner.sites",
    "PeerError": "errors",
    "Plan": "aggregation.plan.plan",
    "Promise": "aggregation.plan.guarantee",
    "Site": "aggregation.owner.sites",
    "UsageError": "errors",
    "account": "learning.account",
    "clipped_mean": "learning.clipped",
    "meet": "tables.meet",
    "predict": "learning.predict",
    "private_mean": "aggregation.owner.mean",
    "stats": "tables.asked",
    "synth": "tables.synth",
    "train": "local.trained",
}


def __getattr__(name: str) -> Any:
    """Imports a public name, or a package of dpmpc, when it is first used, so that a process loads only what it
    needs."""
    if name not in _HOMES:
        if not name.startswith("_") and find_spec(f"dpmpc.{name}") is not None:
            return importlib.import_module(f"dpmpc.{name}")
        raise AttributeError(f"module 'dpmpc' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpmpc.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
