"""Values that are made when they are first asked for."""

import functools
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


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
