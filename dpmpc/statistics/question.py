"""A question as a value, in the one spelling that is printed back."""

from dpmpc.lazy import dataclass
from dpmpc.statistics.where import ALL, Where, word

Setting = float | str | tuple[float, ...]


@dataclass(frozen=True)
class AskedQuestion:
    """A question. `what`: its kind; `columns`: names, or that of a model, or terms of a model; `levels`: the quantiles
    that are asked for; `options`: those that were written, by name."""

    what: str
    columns: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    options: tuple[tuple[str, Setting], ...] = ()
    by: str | None = None
    where: Where = ALL
    weight: float = 1.0

    @property
    def title(self) -> str:
        """The question without its weight."""
        parts = [*map(word, self.columns), *(_spelt(level) for level in self.levels)]
        parts += [f"{name}={_spelt(value)}" for name, value in self.options]
        text = f"{self.what}({', '.join(parts)})" if parts else self.what
        text += f" by {word(self.by)}" if self.by is not None else ""
        return text + (f" where {self.where}" if self.where else "")

    def __str__(self) -> str:
        return self.title + ("" if self.weight == 1 else f" weight={_spelt(self.weight)}")

    def weighing(self, weight: float) -> "AskedQuestion":
        """The same question with another weight."""
        return AskedQuestion(self.what, self.columns, self.levels, self.options, self.by, self.where, weight)


def _spelt(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_spelt(part) for part in value)}]"
    return word(value) if isinstance(value, str) else f"{value!r}".removesuffix(".0")
