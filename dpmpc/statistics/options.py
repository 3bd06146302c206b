"""Options of questions: what may be written for one, and what holds where nothing is."""

from itertools import pairwise

from dpmpc.lazy import dataclass
from dpmpc.statistics.question import Setting
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.syntax import WrittenOption as Given

MOST_BINS, LEAST_LEAVES, MOST_LEAVES = 10_000, 16, 4096


@dataclass(frozen=True)
class Option:
    """A word, unless a subclass says otherwise. `default`: its value where it is not written."""

    default: Setting | None = None

    def check(self, reading: Reading, given: Given) -> Setting:
        """The value as it is kept. Errors: refused, with a caret."""
        return given.value


@dataclass(frozen=True)
class Whole(Option):
    """A whole number; `power`: of two."""

    least: int = 1
    most: int = MOST_BINS
    power: bool = False

    def check(self, reading: Reading, given: Given) -> Setting:
        name, value, place = given.name.text, given.value, given.place
        if not isinstance(value, float) or value != int(value) or not self.least <= value <= self.most:
            rule = f"{name} is a whole number from {self.least} to {self.most}"
            reading.refuse(place, rule, f"write {name}={min(self.least * 8, self.most)}", "range")
        if self.power and int(value) & (int(value) - 1):
            reading.refuse(place, f"{name} are a power of two", f"write {name}={1 << int(value).bit_length()}")
        return value


@dataclass(frozen=True)
class Amount(Option):
    """A number between two others."""

    low: float = 0.0
    high: float = 1.0

    def check(self, reading: Reading, given: Given) -> Setting:
        name, value = given.name.text, given.value
        if not isinstance(value, float) or not self.low < value < self.high:
            way = f"write {name}={min(self.low * 2 + 0.2, self.high / 2):g}"
            reading.refuse(given.place, f"{name} is a number between {self.low:g} and {self.high:g}", way, "range")
        return value


@dataclass(frozen=True)
class Increasing(Option):
    """Numbers that increase, at least two; `two`: just two."""

    two: bool = False

    def check(self, reading: Reading, given: Given) -> Setting:
        name, value = given.name.text, given.value
        grows = isinstance(value, tuple) and all(a < b for a, b in pairwise(value))
        if not grows or not isinstance(value, tuple) or len(value) < 2 or (self.two and len(value) != 2):
            what = "two numbers, low < high" if self.two else "at least two numbers that increase"
            reading.refuse(given.place, f"{name} is {what}", f"write {name}=[0, 10]")
        return value


@dataclass(frozen=True)
class Choice(Option):
    """One of these words."""

    words: tuple[str, ...] = ()

    def check(self, reading: Reading, given: Given) -> Setting:
        if given.value not in self.words:
            name = given.name.text
            reading.refuse(given.place, f"{name} are {' or '.join(self.words)}", f"write {name}={self.words[0]}")
        return given.value


@dataclass(frozen=True)
class OfColumn(Option):
    """A column of categories."""

    def check(self, reading: Reading, given: Given) -> Setting:
        return reading.names(1, 1, False, [given.place])[0]


@dataclass(frozen=True)
class OfNumber(Option):
    """A column of numbers."""

    def check(self, reading: Reading, given: Given) -> Setting:
        return reading.names(1, 1, True, [given.place])[0]
