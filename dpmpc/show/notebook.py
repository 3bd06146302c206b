"""Progress in a notebook: a bar of tqdm where a kernel runs and tqdm is installed; nothing elsewhere.

A function of Python prints nothing by itself; who wants lines in a program gives it `progress=`.
"""

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

Told = Callable[[dict[str, Any]], object]


def in_kernel() -> bool:
    """Whether this process is a notebook's kernel."""
    module = sys.modules.get("IPython")
    get = getattr(module, "get_ipython", None)
    return getattr(get() if get is not None else None, "kernel", None) is not None


@contextlib.contextmanager
def progress(name: str, noun: str = "release") -> Iterator[Told]:
    """What is told of a run's events, and shows them: `{"event": "stage", "text"}`, `{"event": "plan", "releases",
    "first"}`, `{"event": "release" or "iteration", "done", "total"}`. `name`: before the bar."""
    made = _bar(name, noun) if in_kernel() else None
    if made is None:
        yield lambda event: None
        return
    try:
        yield _Told(made)
    finally:
        made.close()


@contextlib.contextmanager
def releases(name: str, total: int) -> Iterator[Callable[..., Any]]:
    """The same for the engine of runs: what it emits of so many releases."""
    with progress(name) as told:
        told({"event": "plan", "releases": total, "first": 0})
        yield lambda event, **fields: told({"event": event, **fields})


class _Told:
    """Moves a bar of tqdm."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, event: dict[str, Any]) -> object:
        kind = event["event"]
        if kind == "plan":
            self._bar.reset(total=event["releases"])
            self._bar.update(event["first"])
        elif kind == "stage":
            self._bar.set_postfix_str(str(event["text"])[:40])
        elif kind in ("release", "iteration"):
            if event.get("total"):
                self._bar.total = event["total"]
            self._bar.update(max(0, event["done"] - self._bar.n))
        return None


def _bar(name: str, noun: str) -> Any:
    """A bar; None where tqdm is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a notebook without ipywidgets, which gets a bar of text
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return tqdm(desc=name, unit=noun, leave=True)
