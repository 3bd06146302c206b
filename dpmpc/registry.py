"""Things that are chosen by name: laws of noise, backends, methods of learning, links. One entry a thing.

An entry is `name -> "module:attribute"`, imported when it is first asked for. Our own are listed where the registry is
made; those of other packages are entry points of its group in their own pyproject.toml:

    [project.entry-points."dpmpc.laws"]
    staircase = "my_package.staircase:STAIRCASE"

Every process of a run finds them that way, and the command line's choices are read off the registry.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any, Generic, TypeVar

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property

T = TypeVar("T")


@lru_cache(maxsize=1)
def _points(path: tuple[str, ...]) -> Any:
    """Those of all packages, on this path of modules: read once for all registries."""
    return metadata.entry_points()


def entry_points(group: str) -> metadata.EntryPoints:
    """Those of a group."""
    found: metadata.EntryPoints = _points(tuple(sys.path)).select(group=group)
    return found


class Registry(Generic[T]):
    """The things of one kind, by name. `kind` is what messages call one; `group` is that of the entry points. `fits`:
    whether another package's thing is one."""

    def __init__(
        self, kind: str, group: str, own: Mapping[str, str], fits: Callable[[Any], bool] = lambda thing: True
    ) -> None:
        self.kind, self.group, self._fits = kind, group, fits
        self._own = dict(own)
        self._loaded: dict[str, T] = {}
        self._warned: set[str] = set()

    def names(self) -> tuple[str, ...]:
        """All names, our own first."""
        return tuple(self._targets)

    def __getitem__(self, name: str) -> T:
        """The thing called `name`. Errors: UsageError when there is none, or another package's cannot be loaded."""
        if name not in self._loaded:
            target = self._own.get(name) or self._targets.get(name)
            if target is None:
                raise UsageError(
                    f"a {self.kind} is one of {', '.join(self.names())}; got {name!r}; choose one, or install the "
                    "package that has it",
                    code="choice",
                )
            try:
                thing = _load(target)
            except (Exception, SystemExit) as error:  # the latter of a module that reads sys.argv, as some do
                if name in self._own:
                    raise
                said = " ".join(f"{type(error).__name__}: {error}".split())
                raise UsageError(
                    f"a {self.kind} of another package must import; {name!r} is {target}, which fails with {said}; "
                    "mend or uninstall that package"
                ) from error
            if name not in self._own and not self._fits(thing):
                raise UsageError(
                    f"a {self.kind} of another package must be one; {name!r} is {target}, of type "
                    f"{type(thing).__name__}; mend or uninstall that package"
                )
            self._loaded[name] = thing
        return self._loaded[name]

    @property
    def own_alone(self) -> bool:
        """Whether no other package adds to it."""
        return self._targets.keys() == self._own.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def items(self) -> list[tuple[str, T]]:
        """All of them, loaded; another package's that cannot be is left out, with one warning."""
        found = []
        for name in self.names():
            try:
                found.append((name, self[name]))
            except UsageError as error:
                self._warn(name, error.message)
        return found

    @cached_property
    def _targets(self) -> dict[str, str]:
        found = dict(self._own)
        for point in entry_points(group=self.group):
            if found.setdefault(point.name, point.value) != point.value:
                self._warn(
                    f"{point.name} {point.value}",
                    f"a {self.kind}'s name belongs to one package; {point.name!r} is {found[point.name]}, and"
                    f" {point.value} claims it too, which is not used; uninstall one of them",
                )
        return found

    def _warn(self, what: str, text: str) -> None:
        """One warning for each thing that is wrong."""
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(text, UserWarning, stacklevel=3)


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
