"""Values, methods and modules that are made when they are first asked for."""

import dataclasses
import functools
import importlib
import operator
import os
import re
import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

__all__ = ["cached_property", "dataclass", "regex"]
T = TypeVar("T")
C = TypeVar("C", bound=type[Any])


class cached_property(functools.cached_property[T]):
    """As the library's, without its lock. Python 3.11 holds one lock for a property of a whole class while a value is
    made, so that two threads whose values ask for each other's, of any two instances, wait for ever. Two threads that
    ask at once may each make the value here; what is decorated is a pure function of its instance, and the last one
    made stays."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        values, name = instance.__dict__, self.attrname
        if name not in values:
            values[name] = self.func(instance)
        return values[name]


def exports(
    package: str,
    homes: Mapping[str, str],
    first: Callable[[], object] = lambda: None,
    absent: type[Exception] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are imported when they are first used: `homes` has
    each one's module. `first`: what a name needs before; it may refuse, as an import may. `absent`, of the refusal's
    class and AttributeError, is raised in its place, so that hasattr, completion and getmembers go on where something
    is not installed. The statement `from package import name` would lose an AttributeError's words: it gets the refusal
    itself."""
    refusals: tuple[Any, ...] = () if absent is None else absent.__bases__[:1]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            first()
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        except refusals as error:
            if absent is None or sys._getframe(1).f_code.co_name == "_handle_fromlist":  # of that statement
                raise
            raise absent(*error.args) from None

    return get, lambda: sorted(homes)


@functools.cache
def kernels(name: str) -> Any:
    """A module of compiled kernels, whose NumPy twins give the same bits; None where it is not there, as in what was
    installed without a compiler, and where DPMPC_NATIVE is off."""
    if os.environ.get("DPMPC_NATIVE", "") == "off":
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class _Regex:
    """A regular expression: its text, and the methods of what is compiled when one of them is first asked for."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, which takes some milliseconds for a long one: when the expression is first used."""
    return cast("re.Pattern[str]", _Regex(text, flags))


def _dataclass(
    cls: C | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False
) -> C | Callable[[C], C]:
    """As the library's, which compiles up to six methods a class as a module is imported: a third of the processor time
    of a command's imports. Here one is, `__init__`, when the first instance is made; the others are closures.

    A class that inherits from one, by the library's decorator or this, gets its fields, and is held to be frozen or not
    as it is.
    """
    if cls is None:
        return functools.partial(_dataclass, frozen=frozen, eq=eq, kw_only=kw_only)  # type: ignore[return-value]
    own = dict(vars(cls))
    inherits = any(map(dataclasses.is_dataclass, cls.__bases__))  # the library then compares who is frozen
    cls.__doc__ = cls.__doc__ or cls.__name__  # the library would write a signature
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, frozen=frozen and inherits)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _Init(cls, fields, frozen), "__repr__": _repr(fields)}
    if frozen and not inherits:
        cls.__dataclass_params__.frozen = True
        methods |= _refusing(cls, fields)
    if eq:
        methods["__eq__"] = _eq(fields)
        if own.get("__hash__") is None and "__eq__" in own:
            own.pop("__hash__", None)  # Python's, for a class with a comparison of its own
        methods["__hash__"] = _hash(fields) if frozen else None
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


class _LeftOut:
    """In place of an argument that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_LEFT_OUT = _LeftOut()


class _Init:
    """`__init__` of a class, compiled when it is first looked up."""

    def __init__(self, cls: type[Any], fields: tuple[Field[Any], ...], frozen: bool) -> None:
        self._cls, self._fields, self._frozen = cls, fields, frozen

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        made = _init(self._cls, self._fields, self._frozen)
        self._cls.__init__ = made
        return made if instance is None else made.__get__(instance)


def _init(cls: type[Any], fields: tuple[Field[Any], ...], frozen: bool) -> Any:
    parameters, named, body = ["self"], list[str](), list[str]()
    names: dict[str, Any] = {"__lazy_set": object.__setattr__, "__lazy_out": _LEFT_OUT}
    for field in fields:
        name, value, factory = field.name, field.name, field.default_factory is not MISSING
        if field.init:
            given = "=__lazy_out" if factory else "" if field.default is MISSING else f"=__lazy_{name}_"
            (named if field.kw_only else parameters).append(name + given)
        elif not factory:
            continue  # the class has it, or __post_init__ sets it
        names[f"__lazy_{name}_"] = field.default_factory if factory else field.default
        if factory:
            value = f"__lazy_{name}_() if {name} is __lazy_out else {name}" if field.init else f"__lazy_{name}_()"
        body.append(f" __lazy_set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if named:
        parameters += ["*", *named]
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or [" pass"]), names)  # noqa: S102  (names alone)
    made: Any = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return made


def _repr(fields: tuple[Field[Any], ...]) -> Any:
    @reprlib.recursive_repr()
    def __repr__(self: Any) -> str:
        said = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields if field.repr)
        return f"{type(self).__qualname__}({said})"

    return __repr__


def _eq(fields: tuple[Field[Any], ...]) -> Any:
    values = _values(field for field in fields if field.compare)

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash(fields: tuple[Field[Any], ...]) -> Any:
    values = _values(field for field in fields if (field.compare if field.hash is None else field.hash))

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _values(fields: Any) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in fields]
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda instance: tuple([getattr(instance, name) for name in names])


def _refusing(cls: type[Any], fields: tuple[Field[Any], ...]) -> dict[str, Any]:
    names = {field.name for field in fields}

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
