"""Values made when they are first asked for."""

import threading

from dpmpc.lazy import cached_property


class One:
    def __init__(self) -> None:
        self.made: list[str] = []
        self.other: One | None = None
        self.meet: threading.Barrier | None = None

    @cached_property
    def first(self) -> str:
        return self._made("first")

    @cached_property
    def second(self) -> str:
        return self._made("second")

    def _made(self, name: str) -> str:
        self.made.append(name)
        if self.other is not None and self.meet is not None:
            self.meet.wait()
            return name + " after " + (self.other.second if name == "first" else self.other.first)
        return name


def test_a_value_is_made_once() -> None:
    one = One()
    assert (one.first, one.first, one.second) == ("first", "first", "second") and one.made == ["first", "second"]
    assert isinstance(One.first, cached_property)


def test_threads_whose_values_ask_for_each_others_do_not_wait_for_ever() -> None:
    """Both are inside a property when they ask for the other's: with a lock for each property of the class neither
    goes on."""
    meet = threading.Barrier(2)
    pair, found = (One(), One()), []
    for one in pair:
        one.other, one.meet = One(), meet
    threads = [
        threading.Thread(target=lambda: found.append(pair[0].first), daemon=True),
        threading.Thread(target=lambda: found.append(pair[1].second), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == ["first after second", "second after first"]
