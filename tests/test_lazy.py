"""Classes of values whose methods are made when they are needed, beside the library's own."""

import copy
import dataclasses
import inspect
import itertools
import pickle
import re
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from dpmpc import lazy


def of(decorate: Any, bases: tuple[type, ...] = (), name: str = "Made", body: str = "", **settings: Any) -> Any:
    """A class with these fields, by this decorator."""
    names: dict[str, Any] = {"dataclasses": dataclasses, "ClassVar": ClassVar, "bases": bases, "__name__": __name__}
    lines = "\n ".join(body.split(";"))
    exec(f"class {name}(*bases):\n {lines}\n", names)  # noqa: S102  (lines of this file)
    return decorate(**settings)(names[name])


BODIES = {
    "two": "a: int; b: str = 'x'".replace("; ", ";"),
    "one": "a: int",
    "none": "'said'",
    "factories": "a: int = 2;b: list = dataclasses.field(default_factory=list)",
    "some left out": "a: int;b: list = dataclasses.field(default_factory=list, init=False);c: int = 3",
    "of the class": "a: int;k: ClassVar[int] = 7;c: int = dataclasses.field(default=5, init=False)",
    "not compared": "a: int;b: int = dataclasses.field(default=1, compare=False, repr=False)",
    "not hashed": "a: int;b: int = dataclasses.field(default=1, hash=False)",
    "named only": "a: int = dataclasses.field(default=1, kw_only=True);b: int = 2",
    "after": "a: int;def __post_init__(self):;    object.__setattr__(self, 'seen', self.a)",
    "own repr": "a: int;def __repr__(self): return 'own'",
    "own comparison": "a: int;def __eq__(self, other): return True",
    "own hash": "a: int;def __hash__(self): return 3",
    "own both": "a: int;def __eq__(self, other): return True;def __hash__(self): return 3",
    "own init": "a: int;def __init__(self, other): object.__setattr__(self, 'a', other)",
    "names like ours": "_set: int;_left_out: int = 1;cls: int = 2",
}
SETTINGS: list[dict[str, Any]] = [
    dict(zip(("frozen", "eq", "kw_only"), values, strict=True)) for values in itertools.product([False, True], repeat=3)
]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((1,), {}), ((2,), {}), ((1, "y"), {}), ((), {"a": 1}), ((), {"a": 1, "b": 9}), ((1,), {"a": 1}),
    ((1, 2, 3, 4), {}), ((1,), {"other": 1}), ((5, 6, 7), {}), ((), {"_set": 1}),
]  # fmt: skip


def told(make: Any) -> Any:
    try:
        return make()
    except (TypeError, AttributeError) as error:  # FrozenInstanceError is one
        return type(error), str(error)


def seen(cls: Any) -> list[Any]:
    """Everything that a caller can see of a class and its instances."""
    found: list[Any] = [
        str(inspect.signature(cls)),
        [(each.name, each.type, each.default) for each in dataclasses.fields(cls)],
        cls.__match_args__,
        cls.__init__.__qualname__,
        cls.__init__.__module__,
        cls.__init__.__annotations__,
        cls.__hash__ is None,
    ]
    made = []
    for positional, named in CALLS:
        one = told(lambda positional=positional, named=named: cls(*positional, **named))
        found.append(one if isinstance(one, tuple) else (repr(one), vars(one)))
        if not isinstance(one, tuple):
            made.append(one)
    for one, other in itertools.product(made, made):
        found.append(one == other)
    for one in made:
        found += [
            one == 1,
            told(lambda one=one: hash(one) if cls.__hash__ is not object.__hash__ else "its own"),
            told(lambda one=one: dataclasses.asdict(one)),
        ]
        found.append(told(lambda one=one: repr(dataclasses.replace(one, a=4))))
        twin = copy.copy(one)
        for name in ("a", "b", "another"):
            found.append(told(lambda twin=twin, name=name: setattr(twin, name, 1)))
            found.append(told(lambda twin=twin, name=name: delattr(twin, name)))
        found.append(repr(vars(twin)))
    return found


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("body", BODIES)
def test_a_class_is_to_its_users_as_by_the_library(body: str, settings: dict[str, Any]) -> None:
    ours = seen(of(lazy.dataclass, body=BODIES[body], **settings))
    assert ours == seen(of(dataclasses.dataclass, body=BODIES[body], **settings))
    assert len(ours) > len(CALLS)


@pytest.mark.parametrize("frozen", [False, True])
def test_classes_inherit_across_both_decorators(frozen: bool) -> None:
    both = [lazy.dataclass, dataclasses.dataclass]
    found = []
    for above, below in itertools.product(both, both):
        base = of(above, body=BODIES["two"], name="Base", frozen=frozen)
        found.append(seen(of(below, (base,), body="c: int = 3", frozen=frozen)))
        assert seen(type("Plain", (base,), {}))  # undecorated
        with pytest.raises(TypeError, match="frozen"):
            of(below, (base,), body="c: int = 3", frozen=not frozen)
    assert found[0] == found[1] == found[2] == found[3]


@lazy.dataclass(frozen=True)
class Kept:
    first: int
    rest: tuple["Kept", ...] = ()


def test_an_instance_is_pickled_and_may_hold_itself() -> None:
    one = Kept(1, (Kept(2),))
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  (our own bytes)
    object.__setattr__(one, "rest", (one,))
    assert repr(one) == "Kept(first=1, rest=(...,))"


def test_a_command_compiles_no_class_as_it_is_imported() -> None:
    """But the start of those that it makes instances of then; that this counts is shown by a class of the library's."""
    code = (
        "import sys; texts = [];"
        "sys.addaudithook(lambda event, said: event == 'compile' and said[1] == '<string>' and texts.append(said[0]));"
        "import click, msgspec, numpy, cryptography, threadpoolctl, dataclasses; before = len(texts);"
        "import dpmpc.cli.train, dpmpc.consortium.start, dpmpc.aggregation.party.party, dpmpc.mpc.replicated.backend;"
        "count = lambda: sum('__eq__' in str(text) for text in texts[before:]);"
        "print(count()); dataclasses.dataclass(type('C', (), {'__annotations__': {'a': int}})); print(count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


def test_a_regular_expression_is_compiled_when_it_is_first_used() -> None:
    broken = lazy.regex("(")
    assert broken.pattern == "("
    with pytest.raises(re.error):
        broken.search("a")
    found = lazy.regex("(A+)b", re.I)
    assert [found.fullmatch(text) is not None for text in ("aAb", "b")] == [True, False]
    assert found.groups == 1 and found.sub(r"\1", "aab") == "aa"
