"""Things that are chosen by name: laws of noise, backends, methods of learning, links. One entry a thing.

An entry is `name -> "module:attribute"`, imported when it is first asked for. Our own are listed where the registry is
made; those of other packages are entry points of its group in their own pyproject.toml:

    [project.entry-points."dpmpc.laws"]
    staircase = "my_package.staircase:STAIRCASE"

Every process of a run finds them that way, and the command line's choices are read off the registry.
"""

import importlib
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from dpmpc.errors import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """The things of one kind, by name. `kind` is what messages call one; `group` is that of the entry points."""

    def __init__(self, kind: str, group: str, own: Mapping[str, str]) -> None:
        self.kind, self.group = kind, group
        self._own = dict(own)
        self._loaded: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """All names, our own first. Errors: another package takes one of them."""
        return tuple(self._targets)

    def __getitem__(self, name: str) -> T:
        """The thing called `name`. Errors: UsageError when there is none."""
        if name not in self._loaded:
            target = self._own.get(name) or self._targets.get(name)
            if target is None:
                raise UsageError(
                    f"a {self.kind} is one of {', '.join(self.names())}; got {name!r}; choose one, or install the "
                    "package that has it"
                )
            self._loaded[name] = _load(target)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def items(self) -> list[tuple[str, T]]:
        """All of them, loaded."""
        return [(name, self[name]) for name in self.names()]

    @cached_property
    def _targets(self) -> dict[str, str]:
        found = dict(self._own)
        for point in entry_points(group=self.group):
            if found.setdefault(point.name, point.value) != point.value:
                raise UsageError(
                    f"a {self.kind}'s name belongs to one package; {point.name!r} is taken, and {point.value} claims "
                    "it too; uninstall one of them"
                )
        return found


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
