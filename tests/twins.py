"""Twins of kernels, each result worked out once, however many kinds of processor it is compared on."""

import hashlib
from typing import Any

import numpy as np


class Remembering:
    """Methods of a twin that return what they find. One that changes what it is given is not to be called here."""

    def __init__(self, twin: Any) -> None:
        self._twin, self._found = twin, dict[Any, Any]()

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            key = name, _named(given)
            if key not in self._found:
                self._found[key] = getattr(self._twin, name)(*given)
            return self._found[key]

        return call


def _named(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, hashlib.blake2b(np.ascontiguousarray(value)).digest()
    return tuple(map(_named, value)) if isinstance(value, tuple | list) else value
