"""Statistics against what they claim: distances searched for, and the coverage of every kind of interval.

    python -m dpmpc.benchmarks.studies.stats search --sets 10000
    python -m dpmpc.benchmarks.studies.stats coverage --data adult --repeat 200
    python -m dpmpc.benchmarks.studies.stats joint --data adult --repeat 200
    python -m dpmpc.benchmarks.studies.stats survival --trials 5000
    python -m dpmpc.benchmarks.studies.stats effects --repeat 1000
    python -m dpmpc.benchmarks.studies.stats timing
    python -m dpmpc.benchmarks.studies.stats language --lines 100000

`search` makes random sets of questions and looks for two records whose vectors lie farther apart than claimed.
`coverage` counts how often intervals hold the truth (`stats_coverage`), `joint` does so where one plan asks, trains and
evaluates (`stats_study`).
`survival` does so where it is hardest (`stats_survival`). `effects` is about ratios of models (`stats_effects`).
`timing` measures one release (`stats_timing`).
`language` reads lines of a generator, right and wrong ones (`stats_language`). `lines` prints what docs/statistics.md
says of files that `coverage --out` and `survival --out` wrote (`stats_docs`).
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dpmpc.benchmarks.studies.stats_coverage import adult, made, run
from dpmpc.benchmarks.studies.stats_docs import lines
from dpmpc.benchmarks.studies.stats_effects import effects, effects_again, predict_again
from dpmpc.benchmarks.studies.stats_language import lines_hold
from dpmpc.benchmarks.studies.stats_real import real_tables
from dpmpc.benchmarks.studies.stats_study import run as joint
from dpmpc.benchmarks.studies.stats_survival import run as survived
from dpmpc.benchmarks.studies.stats_timing import LIMITS
from dpmpc.benchmarks.studies.stats_timing import run as timed
from dpmpc.errors import DpmpcError
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target
from dpmpc.statistics.blocks import CellCounts, Distance, Moments, Products, Tree
from dpmpc.statistics.cells import Field, RecordFields, Values
from dpmpc.statistics.columns import Category, Column, Columns, Quantity, category
from dpmpc.statistics.compile import merged
from dpmpc.statistics.kind import parts_of
from dpmpc.statistics.layout import Layout, Unit
from dpmpc.statistics.query import parse
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.scores import Feature, ScoreModel

COLUMNS = Columns(
    (
        category("sex", ("F", "M")),
        category("marital status", ("single", "married", "in", "widow, or not")),
        Category("treated", ("no", "yes"), (("0", 0), ("1", 1)), others=0),
        Quantity("age", 18.0, 90.0),
        Quantity("capital-gain", 0.0, 100000.0),
        Quantity("score", -1.0, 1.0),
    )
)
_FEATURES = (Numeric("u", -1.0, 1.0), Numeric("v", 0.0, 5.0))
_TARGETS: dict[str, Target] = {
    "two": Labels("sick", ("1",), ("0",)),
    "several": Classes("stage", ("I", "II", "III")),
    "number": Range("cost", 0.0, 9.0),
}
MODELS = {
    name: ScoreModel.of(
        Schema(_FEATURES, target, True, "fill", "public"), np.linspace(-1, 2, 9 if name == "several" else 3)
    )
    for name, target in _TARGETS.items()
}
_NUMBERS = ("age", "capital-gain", "score")
_GROUPS = ("sex", "marital status", "treated")
_KINDS = {"CellCounts": CellCounts, "Moments": Moments, "Tree": Tree, "Products": Products}


def random_line(rng: np.random.Generator) -> str:
    """A line of the language that asks something sensible of COLUMNS."""

    def name(text: str) -> str:
        return f'"{text}"' if " " in text else text

    def some(names: Sequence[str], least: int, most: int) -> list[str]:
        count = int(rng.integers(least, most + 1))
        return [name(str(n)) for n in rng.choice(names, size=min(count, len(names)), replace=False)]

    number = str(rng.choice(_NUMBERS))
    forms: dict[str, Callable[[], str]] = {
        "count": lambda: "count",
        "table": lambda: f"table({', '.join(some((*_GROUPS, number), 1, 2))}, bins={rng.integers(1, 8)})",
        "hist": lambda: f"hist({number}, cuts=[-3, 0, 1.5, 40])" if rng.random() < 0.3 else f"hist({number}, bins=6)",
        "mean": lambda: f"mean({number})" if rng.random() < 0.7 else f"mean({number}, range=[-0.5, 30])",
        "sd": lambda: f"sd({number})",
        "median": lambda: f"median({number}, leaves={1 << rng.integers(4, 7)})",
        "quantiles": lambda: f"quantiles({number}, 0.1, 0.9, leaves=16)",
        "table1": lambda: f"table1({', '.join(some((*_GROUPS, *_NUMBERS), 1, 3))})",
        "corr": lambda: f"corr({', '.join(some(_NUMBERS, 2, 3))})",
        "km": lambda: f"km({number}, treated, bins=5)",
        "lm": lambda: f"lm({', '.join(some(_NUMBERS, 2, 3))})",
        "evaluate": lambda: f"evaluate({rng.choice(list(MODELS))}, cells={rng.integers(8, 33)})",
    }
    line = forms[str(rng.choice(list(forms)))]()
    left = [group for group in _GROUPS if name(group) not in line]
    if left and rng.random() < 0.4:
        line += f" by {name(str(rng.choice(left)))}"
    conditions = {
        "sex": ("sex = F", "sex in {F, M}"),
        "marital status": ('"marital status" in {single, "in"}', '"marital status" = "widow, or not"'),
        "treated": ("treated = yes",),
        "age": ("age in 30..50", "age = 18"),
        "score": ("score in -0.5..0.25",),
    }
    if rng.random() < 0.4:
        chosen = rng.choice(list(conditions), size=int(rng.integers(1, 3)), replace=False)
        line += " where " + " and ".join(str(rng.choice(conditions[str(c)])) for c in chosen)
    return line + (f" weight={rng.uniform(0.2, 5):.3g}" if rng.random() < 0.3 else "")


def layout_of(queries: Sequence[AskedQuestion], columns: Columns = COLUMNS, unit: Unit | None = None) -> Layout:
    """The release of some questions."""
    each = [(part, query.weight) for query in queries for part in parts_of(query, columns, MODELS)]
    answered_by = merged([part for part, _ in each])
    return Layout.of(((answered_by[part].block, weight) for part, weight in each), unit)


def random_records(layout: Layout, rng: np.random.Generator, n: int) -> RecordFields:
    """Records that may be anything, ends and absences oftenest."""
    values: dict[Field, Values] = {}
    for field in layout.fields:
        if isinstance(field, Quantity):
            ends = [field.low, field.high, (field.low + field.high) / 2, -1e300, 1e300, np.nan]
            inside = rng.uniform(field.low, field.high, n)
            values[field] = np.where(rng.random(n) < 0.7, rng.choice(ends, n), inside)
        elif isinstance(field, Feature):
            assert isinstance(field.column, Numeric)
            ends = [field.column.low, field.column.high, -1e300, 1e300, np.nan]
            values[field] = np.where(rng.random(n) < 0.5, rng.choice(ends, n), rng.normal(size=n))
        else:
            assert isinstance(field, Category)
            values[field] = rng.integers(-2, len(field.levels), n)
    return RecordFields(n, values)


def ratios(layout: Layout, rng: np.random.Generator, n: int = 80) -> tuple[float, float, float]:
    """Found over claimed for one record replaced: the largest of L1, L2 and Linf over pairs of n random records. What
    owners and persons move is so many times what a record does. Errors: AssertionError where a record that is there or
    not moves the sum farther than is claimed."""
    vectors = layout.encode(random_records(layout, rng, n), np.arange(n), n).astype(np.float64)
    found = np.zeros(3)
    for row in vectors:
        found = np.maximum(found, _norms(vectors - row))
    each = [block.reach(scale).absent for block, scale in zip(layout.blocks, layout.scales, strict=True)]
    l2 = float(np.sqrt(sum(d.l2**2 for d in each))) * (1 + 1e-12)
    alone = _over(_norms(vectors), Distance(sum(d.l1 for d in each), l2, max(d.linf for d in each)))
    assert max(alone) <= 1, f"present or absent: {alone}"
    return _over(found, layout.distance((1,)))


def _norms(away: Values) -> Values:
    """(3,) the largest L1, L2 and Linf norm of some vectors."""
    away = np.abs(away)
    return np.array([away.sum(axis=1).max(), np.sqrt(np.einsum("nd,nd->n", away, away).max()), away.max()])


def _over(found: Values, claimed: Distance) -> tuple[float, float, float]:
    each = zip(found, (claimed.l1, claimed.l2, claimed.linf), strict=True)
    first, second, third = (float(a / b) if b else (np.inf if a else 0.0) for a, b in each)
    return first, second, third


def random_columns(rng: np.random.Generator) -> Columns:
    """COLUMNS with other bounds and levels, where no condition of `random_line` names them."""
    low = float(rng.choice([0.0, -1e6, 1e-9, 2.5]))
    gain = Quantity("capital-gain", low, low + float(rng.choice([1e-3, 1.0, 365.25, 1e9, 1e15])))
    known = ("single", "married", "in", "widow, or not", *(f"level {k}" for k in range(int(rng.integers(0, 9)))))
    status = category("marital status", known)
    other: dict[str, Column] = {"capital-gain": gain, "marital status": status}
    return Columns(tuple(other.get(column.name, column) for column in COLUMNS.columns))


def search(sets: int, seed: int = 1, say: bool = True) -> float:
    """Looks at `sets` random sets of questions; the largest ratio. Errors: AssertionError where one exceeds 1."""
    rng = np.random.default_rng(seed)
    worst, best = 0.0, dict.fromkeys(_KINDS, 0.0)
    for _ in range(sets):
        lines = [random_line(rng) for _ in range(int(rng.integers(1, 5)))]
        columns = random_columns(rng)
        layout = layout_of([parse(line, columns, tuple(MODELS)) for line in lines], columns)
        found = ratios(layout, rng)
        assert max(found) <= 1, f"{lines}: {found}"
        worst = max(worst, *found)
        if len(layout.blocks) == 1:
            for name, kind in _KINDS.items():
                if isinstance(layout.blocks[0], kind):
                    best[name] = max(best[name], found[1])
    if say:
        print(f"{sets} sets: found over claimed at most {worst:.9f}; L2, of one block: {best}")
    return worst


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    searching = commands.add_parser("search")
    searching.add_argument("--sets", type=int, default=10000)
    searching.add_argument("--seed", type=int, default=1)
    covering = commands.add_parser("coverage")
    covering.add_argument("--data", choices=("adult", "made"), default="made")
    covering.add_argument("--data-dir", type=Path, help="of adult [$DPMPC_DATA]")
    covering.add_argument("--repeat", type=int, default=200)
    covering.add_argument("--n", type=int, nargs="+", default=[500, 2000, 20000])
    covering.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0])
    covering.add_argument("--only", nargs="+", default=(), metavar="GROUP", help="such as survival, or 'of several'")
    covering.add_argument("--out", type=Path, help="a CSV file: its rows of the same cells are replaced")
    whole = commands.add_parser("joint")
    whole.add_argument("--data", choices=("adult", "made"), default="made")
    whole.add_argument("--data-dir", type=Path, help="of adult [$DPMPC_DATA]")
    whole.add_argument("--repeat", type=int, default=200)
    whole.add_argument("--n", type=int, nargs="+", default=[8000, 20000])
    whole.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    survival = commands.add_parser("survival")
    survival.add_argument("--trials", type=int, default=5000)
    survival.add_argument("--n", type=int, nargs="+", default=[500, 2000, 20000])
    survival.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0])
    survival.add_argument("--out", type=Path, help="a CSV file: its rows of the same cells are replaced")
    ratios = commands.add_parser("effects")
    ratios.add_argument("--repeat", type=int, default=1000)
    ratios.add_argument("--n", type=int, nargs="+", default=[2000, 5000, 20000, 100_000])
    ratios.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    ratios.add_argument("--data-dir", type=Path, help="of real tables [$DPMPC_DATA]")
    ratios.add_argument("--only", nargs="+", default=(), metavar="SETTING")
    ratios.add_argument("--seed", type=int, default=1)
    ratios.add_argument("--out", type=Path, help="a folder: in effects.csv rows of the same cells are replaced")
    ratios.add_argument("--drawn", type=int, default=0, metavar="MANY", help="designs that nobody chose, besides")
    ratios.add_argument("--missing", action="store_true", help="only cells of which the file has fewer releases")
    ratios.add_argument("--predict", action="store_true", help="only what a dry run says now, of the file's")
    ratios.add_argument("--again", action="store_true", help="only what fell short in the file, of another seed")
    timing = commands.add_parser("timing")
    timing.add_argument("--data-dir", type=Path, help="of adult [$DPMPC_DATA]")
    timing.add_argument("--only", nargs="+", default=(), choices=tuple(LIMITS))
    timing.add_argument("--rows", type=int, default=1_000_000)
    docs = commands.add_parser("lines")
    docs.add_argument("folder", type=Path, help="with the files of --out: coverage.csv, survival.csv")
    language = commands.add_parser("language")
    language.add_argument("--lines", type=int, default=100_000)
    language.add_argument("--seed", type=int, default=1)
    try:
        _do(parser.parse_args())
    except DpmpcError as error:
        raise SystemExit(f"error: {error.spelt(lambda name, value: '--' + name.replace('_', '-'))}") from None


def _do(asked: argparse.Namespace) -> None:
    if asked.command == "search":
        search(asked.sets, asked.seed)
    elif asked.command == "lines":
        print(*lines(asked.folder), sep="\n")
    elif asked.command == "language":
        print(", ".join(f"{many} {what}" for what, many in sorted(lines_hold(asked.lines, asked.seed).items())))
    elif asked.command == "joint":
        texts = adult(asked.data_dir) if asked.data == "adult" else made()
        if joint(texts, asked.repeat, tuple(asked.n), tuple(asked.epsilon)):
            raise SystemExit("some kinds of intervals hold the truth too rarely")
    elif asked.command == "survival":
        if survived(asked.trials, tuple(asked.n), tuple(asked.epsilon), asked.out):
            raise SystemExit("some tests reject too often, or some late intervals hold the truth too rarely")
    elif asked.command == "effects":
        more = tuple(real_tables(asked.data_dir))
        if asked.again:
            effects_again(asked.out or Path(), more)
        elif asked.predict:
            predict_again(asked.out or Path(), more)
        else:
            sizes, epsilons, only = asked.n, asked.epsilon, asked.only
            effects(asked.out, asked.repeat, sizes, epsilons, only, asked.seed, more, asked.missing, asked.drawn)
    elif asked.command == "timing":
        if timed(asked.only, asked.rows, asked.data_dir):
            raise SystemExit("some releases take more than is asked of them")
    elif run(
        asked.data, asked.data_dir, asked.repeat, tuple(asked.n), tuple(asked.epsilon), tuple(asked.only), asked.out
    ):
        raise SystemExit("some kinds of intervals hold the truth too rarely")


if __name__ == "__main__":
    main()
