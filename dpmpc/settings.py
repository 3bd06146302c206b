"""Settings: what a user may say of a run. Each is declared once, as a field of a frozen dataclass, with its check,
unit, default and help; command line, files, keywords and the tables in the docs are projections of that.

    @dataclass(frozen=True, kw_only=True)
    class Noise(Settings):
        grid_bits: int | None = setting(None, "Grid step 2^-F.", metavar="F", rule="rounding adds at most 0.5 %")

None is "not said" on every surface: the default holds, or the rule that the declaration states. A class that needs
several groups inherits them, so that fields are read flat and written by group.
"""

import difflib
import functools
import inspect
import math
import operator
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import lru_cache
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Required, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

import msgspec

from dpmpc.errors import UsageError
from dpmpc.folders import EMPTY, said_path
from dpmpc.lazy import dataclass
from dpmpc.registry import Registry

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_PATHS = ("PATH", "DIR", "SOURCE")  # metavars
_KINDS = {str: "a text", int: "a whole number", float: "a finite number", bool: "True or False"}


@dataclass(frozen=True)
class Setting:
    """One setting. `help`: what it is for, a sentence or two; `brief`: a few words beside it in a file; `rule`: what is
    taken where nothing is said and the default does not tell; `unit`: of its number; `check`: called with name and
    value, raises where it is out of range; `choices`: what it is one of, where its type does not say, and `details` of
    each; `flags`: its names on the command line, where they are not its own; `flag_value`: what the flag alone means;
    `example`: a value, as TOML writes it, where the default is none."""

    help: str
    brief: str = ""
    rule: str = ""
    unit: str = ""
    check: Callable[[str, Any], object] | None = None
    choices: Callable[[], Iterable[str]] | None = None
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    flag_value: str | None = None
    example: str = ""
    details: Callable[[], Iterable[tuple[str, str]]] | None = None
    limit: "Limit | None" = None


@dataclass(frozen=True)
class Limit:
    """How an organisation limits a setting of plans that others make: a plan's value `keeps` a limit or not, and of two
    limits the `stricter` holds. `says`: "at most" and so on; `unsaid`: the limit of those who say none; `kind`: its
    type, where that is not the setting's; `example`: likewise, as TOML writes it."""

    says: str
    keeps: Callable[[Any, Any], bool]
    stricter: Callable[[Any, Any], Any]
    unsaid: Any = None
    kind: Any = None
    example: str = ""


def at_most(unsaid: float | None = None) -> Limit:
    """For what lowers privacy where it is larger."""
    return Limit("at most", operator.le, min, unsaid)


def at_least(unsaid: float | None = None, kind: Any = None) -> Limit:
    """For what lowers privacy or security where it is smaller."""
    return Limit("at least", operator.ge, max, unsaid, kind)


def ranked(*weakest_first: str) -> Limit:
    """For one of several of which each is more than those before."""
    rank = {name: place for place, name in enumerate(weakest_first)}
    return Limit(
        "at least",
        lambda value, limit: rank[value] >= rank[limit],
        lambda a, b: max(a, b, key=rank.__getitem__),
        example=f'"{weakest_first[-1]}"',
    )


def one_of() -> Limit:
    """For what is neither more nor less: the limit is a list of those that will do."""
    return Limit(
        "one of",
        lambda value, limit: value in limit,
        lambda a, b: tuple(each for each in a if each in b),
        kind=tuple[str, ...],
    )


def same() -> Limit:
    """For names: there is one that will do."""
    return Limit("exactly", operator.eq, _same)


def _same(a: Any, b: Any) -> Any:
    if a != b:
        said = f"two limits must name the same; one says {a!r}, the other {b!r}; leave one out"
        raise UsageError(said, code="together")
    return a


def setting(default: T, help: str, **more: Any) -> T:
    """A field of a class of settings; see `Setting`."""
    return field(default=default, metadata={"setting": Setting(help, **more)})


@dataclass(frozen=True)
class Declared:
    """A setting where it is declared: its name, group, type without None, whether None may stay, default."""

    name: str
    group: type
    kind: Any
    optional: bool
    default: Any
    setting: Setting

    @property
    def choices(self) -> tuple[str, ...]:
        """What it is one of; () for anything of its type."""
        if get_origin(self.kind) is Literal:
            return tuple(get_args(self.kind))
        return () if self.setting.choices is None else tuple(self.setting.choices())

    def taken(self, value: Any) -> Any:
        """The value as this setting holds it. Errors: UsageError, the rule, the value, the way out."""
        if value is None:
            return None if self.optional else self.default
        registry = getattr(self.setting.choices, "__self__", None)
        if isinstance(registry, Registry) and isinstance(value, str) and value != self.default:
            registry[value]  # refuses an unknown one
            return value
        if self.choices:
            if value not in self.choices and value != self.default:
                raise UsageError(
                    f"<<{self.name}>> must be one of {', '.join(self.choices)}; got {value!r}; choose one of them",
                    code="choice",
                )
            return value
        kind = self.kind if self.kind in _KINDS else None
        if kind is str and isinstance(value, PathLike):
            value = fspath(value)
        good = kind is None or isinstance(value, {float: Real, int: Integral}.get(kind, kind))
        if kind is int and isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
            good = True
        if not good or (isinstance(value, bool) and kind is not bool) or (kind is float and not _finite(value)):
            what = "a list" if kind is None else _KINDS[kind]
            raise UsageError(f"<<{self.name}>> must be {what}; got {_brief(value)}; give one", code="type")
        if self.kind is Path:
            value = said_path(value, self.name)
        elif isinstance(value, str) and not value and self.setting.metavar in _PATHS:
            raise UsageError(EMPTY.format(name=self.name), code="type")
        elif get_origin(self.kind) is tuple and isinstance(value, list):
            value = tuple(value)
        value = value if kind not in (int, float) else kind(value)
        if self.setting.check is not None:
            self.setting.check(f"<<{self.name}>>", value)
        return value


def _finite(value: Any) -> bool:
    """Whether it is a number that a float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number without end, nearly
        return False


def _brief(value: Any) -> str:
    """A value in an error's line: as it is written, or its type alone, of a table for one, whose values are records."""
    return repr(value) if isinstance(value, str | Real) else f"a {type(value).__name__}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A group of settings, or a class that inherits several; every value is checked when it is made."""

    def __post_init__(self) -> None:
        for each in declared(type(self)).values():
            value = getattr(self, each.name)
            taken = each.taken(value)
            if taken is not value:
                object.__setattr__(self, each.name, taken)


@lru_cache(maxsize=64)
def _declared(kind: Any) -> Mapping[str, Declared]:
    found: dict[str, Declared] = {}
    for group in kind.__mro__:
        own = inspect.get_annotations(group)
        if not own or not issubclass(group, Settings):
            continue
        hints = get_type_hints(group)
        for each in fields(group):
            if each.name in own and "setting" in each.metadata and each.name not in found:
                inner, optional = _without_none(hints[each.name])
                default = None if each.default is MISSING else each.default
                found[each.name] = Declared(each.name, group, inner, optional, default, each.metadata["setting"])
    return types.MappingProxyType(found)


def declared(kind: type) -> Mapping[str, Declared]:
    """The settings of a class, by name, in the order of its groups."""
    return _declared(kind)


def groups(kind: type) -> tuple[type, ...]:
    """The groups that a class inherits, in order."""
    return tuple(dict.fromkeys(each.group for each in declared(kind).values()))


def values_of(value: object, *kinds: type) -> dict[str, Any]:
    """The settings of these groups that `value` holds, flat."""
    return {name: getattr(value, name) for kind in kinds for name in declared(kind) if hasattr(value, name)}


# What others call a setting -> what it is here.
_ELSEWHERE = {
    "C": ("lam", "lam, as 1 / (C n) of n records"), "alpha": ("lam", "lam, as alpha / n of n records"),
    "max_iter": ("iterations", "iterations"), "learning_rate": ("step", "step"), "eta0": ("step", "step"),
    "solver": ("method", "method"),
}  # fmt: skip


def _nearest(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is none of these."""
    names = sorted(known)
    setting, said = _ELSEWHERE.get(name, ("", ""))
    if setting in names:
        return f"it is called {said} here"
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean '{near[0]}'?" if near else "leave it out"


def only_known(given: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Errors: UsageError for the first name that is none of `known`, with the nearest one."""
    names = set(known)
    for name in sorted(given.keys() - names):
        raise UsageError(f"{what} has no setting {name[:40]!r}; {_nearest(name, names)}", code="unknown")


class KeywordError(UsageError, TypeError):
    """A keyword that a function or class does not have."""

    code = "unknown"


def keywords(*kinds: type, **defaults: Any) -> Callable[[F], F]:
    """A decorator of a function whose keywords are settings: it says which they are, and names the nearest one where
    one is not known.

    The function takes them as `**given: Unpack[...]`, a TypedDict, from which type checkers and editors have their
    names and types; `inspect.signature` and `help` show the same names, with the defaults that these `kinds` declare,
    or that `defaults` says. What the TypedDict requires has none. A function of other keywords gets the nearest names
    alone."""

    def decorated(function: F) -> F:
        shown = _signature(function, kinds, defaults)
        known = {name for name, each in shown.parameters.items() if each.kind != each.VAR_KEYWORD}
        what = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            for name in given.keys() - known:
                raise KeywordError(f"{what} has no setting {name[:40]!r}; {_nearest(name, known)}")
            return function(*args, **given)

        called.__signature__ = shown  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorated


def _signature(
    function: Callable[..., Any], kinds: Sequence[type], defaults: Mapping[str, Any]
) -> inspect.Signature:
    """The function's signature, in which the keys of an unpacked TypedDict are keywords of their own."""
    own = inspect.signature(function)
    taken = [each for each in own.parameters.values() if each.kind != each.VAR_KEYWORD]
    for each in own.parameters.values():
        if each.kind == each.VAR_KEYWORD and get_origin(each.annotation) is Unpack:
            (typed,) = get_args(each.annotation)
            for name, kind in typed.__annotations__.items():
                required = name in typed.__required_keys__
                if name in defaults or required:
                    default = defaults.get(name, inspect.Parameter.empty)
                else:
                    default = shown_default(name, *kinds)
                kind = get_args(kind)[0] if get_origin(kind) is Required else kind
                taken.append(inspect.Parameter(name, each.KEYWORD_ONLY, default=default, annotation=kind))
    return own.replace(parameters=taken)


def shown_default(name: str, *kinds: type) -> Any:
    """What a signature shows as the default of a setting of one of these classes: None where a rule chooses."""
    each = next(each for kind in kinds for each in fields(kind) if each.name == name)
    return None if each.metadata["setting"].rule else each.default


def said(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said: without None."""
    return {name: value for name, value in given.items() if value is not None}


def part(
    name: str, *kinds: type, without: Iterable[str] = (), required: Iterable[str] = (), beside: type | None = None
) -> Any:
    """A section of a file that people write: a msgspec class of these groups' settings, None where nothing is said;
    `beside`: one whose keys it has too."""
    found: list[Any] = []
    for kind in kinds:
        for each in declared(kind).values():
            if each.name not in set(without):
                wanted = each.name in set(required)
                found.append((each.name, each.kind) if wanted else (each.name, each.kind | None, None))
    bases = None if beside is None else (beside,)
    return msgspec.defstruct(name, found, bases=bases, forbid_unknown_fields=True, kw_only=True)


def within(least: float, most: float, usual: str = "give a value between") -> Callable[[str, float], None]:
    """A check that a number lies in least..most."""

    def check(name: str, value: float) -> None:
        if not least <= value <= most:
            raise UsageError(f"{name} must lie in {least}..{most}; got {value}; {usual}", code="range")

    return check


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, types.UnionType):
        inner: Sequence[Any] = [each for each in get_args(hint) if each is not type(None)]
        return (inner[0] if len(inner) == 1 else Union[tuple(inner)]), len(inner) < len(get_args(hint))  # noqa: UP007
    return hint, False
