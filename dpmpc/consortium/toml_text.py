"""The text of a new `consortium.toml`: every key in its place, with what it is for; what has a default is commented
out and shows it."""

import json
import re
from collections.abc import Mapping, Sequence

from dpmpc.aggregation.plan.limits import OWN_WORD, limit_of, limited
from dpmpc.aggregation.plan.settings import Attendance, Choosing, Computing, Noise, PromiseSettings, Role
from dpmpc.lazy import dataclass
from dpmpc.planning.settings import LearningSettings
from dpmpc.settings import Declared, Settings, declared

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
            presence="".join(f"{_line(each)}\n" for each in _shown(Attendance) if each.name != "role"),
        ),
        _PARTIES,
        *(
            _PARTY.format(name=_text(f"{party}{i}"), address=_text(address), more=_MORE if i == 0 else "")
            for i, address in enumerate(f.addresses)
        ),
        _OWNERS,
        *(
            f'[[owners]]\nname = "{owner}{j}"\nrecords = {n}\n{"" if j else _COUNTED}\n'
            for j, n in enumerate(f.records)
        ),
        _RECORDS.format(
            here=here,
            positive=f'{here}positive = ["ill"]'.ljust(_COMMENT),
            negative=f'{here}negative = ["well"]'.ljust(_COMMENT),
            bounds=f"{here}[records.bounds]".ljust(_COMMENT),
            schema=_key("schema", f.schema, "schema.toml", always=f.schema is not None),
        ),
        _section(
            "learning",
            "without method, iterations and step: what `dpmpc advise` advises from public numbers",
            _shown(LearningSettings),
            {"method": f.method, "iterations": f.iterations},
        ),
        _section("privacy", "", _shown(PromiseSettings, Noise), {"epsilon": f.epsilon, "delta": f.delta}),
        _STATS,
        _section("mpc", "", _shown(Choosing, Computing)),
        "# What every site's limits.toml begins with, besides what the plan itself says. A site may change its own.\n",
        "\n".join(["[limits]", *(_limit(each) for each in limited().values() if each.name not in OWN_WORD)]) + "\n",
    ]
    return re.sub(r" +$", "", "".join(parts), flags=re.MULTILINE)


_NOT_HERE = ("engine", "parties")


def _shown(*groups: type[Settings]) -> list[Declared]:
    return [each for group in groups for each in declared(group).values() if each.name not in _NOT_HERE]


def _section(name: str, remark: str, settings: Sequence[Declared], given: Mapping[str, object] | None = None) -> str:
    """A section: a line a setting, as the declarations have it."""
    head = f"[{name}]".ljust(_COMMENT) + f"# {remark}" if remark else f"[{name}]"
    lines = [_line(each, (given or {}).get(each.name)) for each in settings]
    return "\n".join([head, *lines]) + "\n\n"


def _line(each: Declared, value: object = None) -> str:
    """One setting; commented out, with its default or an example, where nothing is said."""
    shown = each.setting.example or _text(each.default)
    written = f"# {each.name} = {shown}" if value is None else f"{each.name} = {_text(value)}"
    return f"{written.ljust(_COMMENT - 1)} # {each.setting.brief}" if each.setting.brief else written


def _limit(each: Declared) -> str:
    """One key of [limits], commented out, with an example."""
    limit = limit_of(each)
    shown = limit.example or each.setting.example or _text(each.default if limit.unsaid is None else limit.unsaid)
    several = limit.kind == tuple[str, ...] and not shown.startswith("[")
    return f"# {each.name} = {f'[{shown}]' if several else shown}".ljust(_COMMENT - 1) + f" # {limit.says}"


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
# A key that is commented out shows its default or an example. Where a rule chooses instead, the text beside it or
# above it says so; docs/settings.md has the rule of each.
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
{presence}
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
_STATS = """\
# [stats]                    # questions before training; without [learning], in place of it: bounds then suffice above
# queries = ["table1 by outcome", "median(age) by sex", "evaluate(risk)"]  # the language: docs/statistics.md
# share = 0.5                # of the promise, where the run trains too; columns that are no features: [stats.bounds]
# models = { risk = "model" }  # the run, beside this file, that evaluate(risk) is about
# hopeless = "allow"         # to ask even what the noise will drown

# [synth]                    # a synthetic table instead of training (docs/synth.md); [records] then needs bounds alone
# target = "outcome"         # the column that the rows are to tell most about
# cells = 12                 # of every column of numbers, even ones
# cuts = { age = [18, 40, 65, 90] }  # or edges; both are public
# digits = { weight = 1 }    # decimals of a column of numbers; without, as its cells are wide
# constraints = ["sex = M and role = wife"]  # what cannot be
# hopeless = "allow"         # to make even what the noise will drown

# [meet]                     # a first meeting instead of training (docs/meet.md): columns compared, by owner, under a
# columns = ["age", "sex"]   # small epsilon of its own; each site must allow it in its limits.toml
# target = "outcome"         # with a first schema of what is found
# classes = ["no", "yes"]    # of the target, where words that everybody knows; the positive one last
# twice = ["outcome"]        # columns with half the noise of the others
# named = ["sex"]            # columns whose words are named, where public lists have them

"""
_MORE = """\
# listen = "0.0.0.0:11365"   # where this party listens, if others call it at another address (NAT, a proxy)
# threads = 2                # that compute; without it, the cores of its machine
"""
_OWNERS = """\
# Owners hold records; how many is public. Nobody calls them.
"""
_COUNTED = """\
# capacity = 500             # in place of records, for all owners: public places; how many are filled stays private
# persons = 200              # in place of records, for all owners: where [privacy] names a column `person`
"""
_RECORDS = """\
# What maps every owner's records: a schema file (`dpmpc describe` drafts one), or bounds and a target here.
[records]
{schema}
{here}target = "outcome"
{positive}# logistic regression: the values that mean +1
{negative}# without it, all others
# classes = ["a", "b", "c"]  # softmax regression, instead of positive; of two the second is the positive one
# range = [0, 10]            # ridge regression, instead of positive
# preprocessing = "records"  # as bounds scale numbers; without it release 0 finds how they are spread within bounds
# basis = "additive"         # a curve for every number, not a straight line alone
# unknown = ["ward"]         # columns of which only the name is known: release 0 finds what they hold; for [stats] or
#                            # [synth] without [learning] all columns, or none
# named = ["ward"]           # those of them whose words are named too, where public lists have them
# spell = ["ward"]           # those whose words are opened first, of those that enough records of all together have
# word_list = "wards.txt"    # a public list of such words, one a line, beside those that everybody knows
# task = "logistic"          # follows from the target
# intercept = true           # a constant feature
# missing = "fill"           # "drop": a training record with a missing value does not count
# test_fraction = 0.2        # of each owner's records, held out: how good the model is, inside the promise; 0: none

{bounds}# public: [low, high], or a list of categories
{here}age = [0, 120]
{here}sex = ["f", "m"]

"""
