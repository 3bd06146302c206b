"""The text of a new `consortium.toml`: every key in its place, with what it is for; what has a default is commented
out and shows it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dpmpc.aggregation.asked import Role
from dpmpc.learning.method import DEFAULT_METHOD

_COMMENT = 29  # the column that remarks begin in
_EXAMPLES = ("a.example:11365", "b.example:11365", "c.example:11365")


@dataclass(frozen=True)
class Founding:
    """What a new file is filled in with. `schema` None: bounds and a target in the file, as an example.
    `method`, `iterations` None: as advised."""

    addresses: Sequence[str] = _EXAMPLES
    records: Sequence[int] = (400, 250, 900)
    role: Role = "apart"
    schema: str | None = None
    data_id: str = "our records"
    epsilon: float = 1.0
    delta: float | None = 1e-5
    tls: bool = True
    method: str | None = None
    iterations: int | None = None


def text_of(founding: Founding) -> str:
    """The file."""
    f = founding
    party, owner = ("site", "site") if f.role == "both" else ("party", "owner")
    here = "" if f.schema is None else "# "
    parts = [
        _HEAD,
        _RUN.format(
            data_id=_key("data_id", f.data_id, None),
            role=_key("role", f.role, "apart"),
            tls=_key("tls", f.tls, True),
        ),
        _PARTIES,
        *(
            _PARTY.format(name=_text(f"{party}{i}"), address=_text(address), more=_MORE if i == 0 else "")
            for i, address in enumerate(f.addresses)
        ),
        _OWNERS,
        *(f'[[owners]]\nname = "{owner}{j}"\nrecords = {n}\n\n' for j, n in enumerate(f.records)),
        _RECORDS.format(
            here=here,
            positive=f'{here}positive = ["ill"]'.ljust(_COMMENT),
            negative=f'{here}negative = ["well"]'.ljust(_COMMENT),
            bounds=f"{here}[records.bounds]".ljust(_COMMENT),
            schema=_key("schema", f.schema, "schema.toml", always=f.schema is not None),
        ),
        _LEARNING.format(
            method=_key("method", f.method, DEFAULT_METHOD), iterations=_key("iterations", f.iterations, 50)
        ),
        _PRIVACY.format(epsilon=f.epsilon, delta=_key("delta", f.delta, 1e-5, always=True)),
        _MPC,
        _LIMITS,
    ]
    return "".join(parts)


def _key(name: str, value: object, default: object, *, always: bool = False) -> str:
    """A line; commented out where it is the default, or nothing."""
    if value is None or (value == default and not always):
        return f"# {name} = {_text(default if value is None else value)}".ljust(_COMMENT)
    return f"{name} = {_text(value)}".ljust(_COMMENT)


def _text(value: object) -> str:
    """A TOML value."""
    return json.dumps(value, ensure_ascii=False)


_HEAD = """\
#:schema consortium.schema.json
# One run over several machines, for all its sites: public facts only, no record and no key.
# A key that is commented out has the value shown, or is chosen as the text says.
#
#   dpmpc plan consortium.toml              checks this file and writes plan.json
#   dpmpc kit consortium.toml --out kits    writes a folder for every site

"""
_RUN = """\
[run]
{data_id}# the name under which budgets count what is spent on these records
# run_id = "first"           # 1 to 64 characters; without it, made from this file
{role}# "both": every owner is a party, one process a site
{tls}# false: loopback addresses only, and every user of that machine is trusted
# wait = 600                 # seconds for the other processes to come
# stall = 60                 # seconds of silence after which a process counts as lost
# min_owners = 2             # a release is made from so many owners at least; without it, from all of them
# release_wait = 10          # with min_owners: seconds that a release waits for owners that are connected

"""
_PARTIES = """\
# Parties compute on shares; each listens at its address for parties, and for owners on port + the number of parties.
"""
_PARTY = """\
[[parties]]
name = {name}
address = {address}
{more}
"""
_MORE = """\
# listen = "0.0.0.0:11365"   # where this party listens, if others call it at another address (NAT, a proxy)
# threads = 2                # that compute; without it, the cores of its machine
"""
_OWNERS = """\
# Owners hold records; how many is public. Nobody calls them.
"""
_RECORDS = """\
# What maps every owner's records: a schema file (`dpmpc describe` drafts one), or bounds and a target here.
[records]
{schema}
{here}target = "outcome"
{positive}# logistic regression: the values that mean +1
{negative}# without it, all others
# classes = ["a", "b", "c"]  # softmax regression, instead of positive
# range = [0, 10]            # ridge regression, instead of positive
# task = "logistic"          # follows from the target
# intercept = true           # a constant feature
# missing = "fill"           # "drop": a training record with a missing value does not count

{bounds}# public: [low, high], or a list of categories
{here}age = [0, 120]
{here}sex = ["f", "m"]

"""
_LEARNING = """\
[learning]                   # without method, iterations and step: what `dpmpc advise` advises from public numbers
{method}# or "output", "functional", ...
{iterations}
# lam = 0.001                # mean loss + lam/2 |theta|^2
# weights = "equal"          # or "size": an owner weighs as many records as it has
# step = 1.0
# radius = 10.0              # project onto the ball of this radius
# average = "tail"           # or "none", "all": the model is the mean of so many iterates
# residual_clip = 1.0        # ridge regression
# solver_tolerance = 1e-8    # method output

"""
_PRIVACY = """\
[privacy]
epsilon = {epsilon}
{delta}# well below 1/n; leave it out for a pure promise
# neighbours = "record"      # or "owner": all records of one owner
# calibration = "tight"      # or "zcdp", "paper"
# law = "gaussian"           # or "laplace"
# sensitivity = "theta"      # or "fixed"
# sampler = "discrete"
# grid_bits = 20             # without it, fine enough to add at most 0.5 % to the sensitivity
# security_bits = 40.0

"""
_MPC = """\
[mpc]
# security = "semi-honest"   # or "active": any one of three parties may cheat
# check_owners = "zero"      # parties check owners' shares and norms; "stop": one that fails ends the run
# backend = "sharing"        # without it, the one that computes less
# link = "lan"               # of two servers: "wan", or a number of Mb/s, for one on which bytes are dear
# threshold = 1              # so many parties together learn nothing; without it, the largest
# pool = true                # noise is made ahead; without it, for methods of many releases

"""
_LIMITS = """\
# What every site's limits.toml begins with, besides what the plan itself says. A site may change its own.
[limits]
# epsilon = 1.0
# delta = 1e-5
# threshold = 1
# neighbours = "record"
# data_id = "our records"
# budget_epsilon = 2.0       # of all runs on these records together, held against the site's own ledgers
# budget_delta = 2e-5
# assumptions = false        # whether the promise may rest on what is not proved
# schema = "0123456789abcdef"  # the digest of the schema
# security = "semi-honest"   # "active": parties must be checked
# check_owners = false       # true: owners must be checked
"""
