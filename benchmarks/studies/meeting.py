"""How often a meeting of sites finds a wrong coding, and how often it says of equal sites that they differ.

    python -m dpmpc.benchmarks.studies.meeting [--draws 100] [--sites 5] [--minutes M] [--out FILE]

Each draw: sites draw the records of ten columns from one law (a clinic's: numbers, words, a label of prevalence 20 %),
one codes a column otherwise, the cells are counted as a run counts them, and the noise is that of the plan: its own
discrete sampler, evaluated in the clear. Found is the column at the site; a false alarm is any other site or column in
the whole meeting. Intervals are Clopper and Pearson's, of 95 %. Of all settings and codings `PASS` meetings are drawn
before more of any are, and FILE (CSV) is written after each pass: what is cut short is a result of fewer meetings, and
goes on from there when the same command is given again.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.lazy import dataclass
from dpmpc.meeting.differences import Difference, differences, weights_of
from dpmpc.meeting.source import MeetingSource
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg

Floats = NDArray[np.float64]
Column = Floats  # (n, 2) of each record: its number, its bucket; as a survey reads them
Words = Sequence[str]

DELTA = 1e-5
NONE, ALL = "nothing", "all of these"
SETTINGS = ((0.1, 1500), (0.5, 300))  # epsilon, records a site
PASS = 5  # meetings


def numbers(values: Floats) -> Column:
    """A column of numbers."""
    return np.column_stack([np.asarray(values, dtype=np.float64), np.full(len(values), -1.0)])


def words(name: str, codes: NDArray[np.int64], texts: Words) -> Column:
    """A column of texts."""
    places = np.array([bucket(name, text, BUCKETS) for text in texts], dtype=np.float64)
    return np.column_stack([np.full(len(codes), math.inf), places[codes]])


@dataclass(frozen=True)
class Coding:
    """A column, and how a site codes its values otherwise: from what it draws to the column as it is read."""

    name: str
    column: str
    wrong: Callable[[Any], Column]


SEX, SMOKES, STAGE = ("female", "male"), ("never", "former", "current"), ("I", "II", "III", "IV")
CODINGS = (
    Coding("age in months", "age", lambda v: numbers(12 * v)),
    Coding("labels exchanged", "died", lambda v: numbers(1.0 - v)),
    Coding("sex as 0 and 1", "sex", lambda v: numbers(v.astype(np.float64))),
    Coding("sex in other words", "sex", lambda v: words("sex", v, ("f", "m"))),
    Coding("three values as 0, 1 and 2", "smokes", lambda v: numbers(v.astype(np.float64))),
    Coding("three values in other words", "smokes", lambda v: words("smokes", v, ("nie", "frueher", "ja"))),
    Coding("four values as 1 to 4", "stage", lambda v: numbers(v + 1.0)),
    Coding("four values in other words", "stage", lambda v: words("stage", v, ("A", "B", "C", "D"))),
    Coding("height in metres", "height", lambda v: numbers(v / 100)),
    Coding("weight in pounds", "weight", lambda v: numbers(2.2046 * v)),
    Coding("glucose in mg/dL", "glucose", lambda v: numbers(18.02 * v)),
    Coding("creatinine in umol/L", "creatinine", lambda v: numbers(88.42 * v)),
)
_TEXTS: Mapping[str, Words] = {"sex": SEX, "smokes": SMOKES, "stage": STAGE}


def drawn(records: int, random: np.random.Generator) -> dict[str, Any]:
    """One site's values, before they are coded."""
    return {
        "age": np.clip(np.rint(random.normal(58, 17, records)), 18, 99),
        "sex": random.choice(2, records, p=(0.48, 0.52)),
        "weight": random.lognormal(math.log(76), 0.2, records),
        "height": random.normal(170, 10, records),
        "pressure": np.rint(random.normal(130, 18, records)),
        "creatinine": random.lognormal(math.log(0.95), 0.3, records),
        "glucose": random.lognormal(math.log(5.8), 0.22, records),
        "smokes": random.choice(3, records, p=(0.5, 0.3, 0.2)),
        "stage": random.choice(4, records, p=(0.4, 0.3, 0.2, 0.1)),
        "died": random.choice(2, records, p=(0.8, 0.2)).astype(np.float64),
    }


COLUMNS = tuple(drawn(1, np.random.default_rng(0)))


def coded(values: Mapping[str, Any], wrong: Coding | None) -> dict[str, Column]:
    """The columns of one site as they are read."""
    found = {}
    for name, value in values.items():
        if wrong is not None and wrong.column == name:
            found[name] = wrong.wrong(value)
        else:
            found[name] = words(name, value, _TEXTS[name]) if name in _TEXTS else numbers(value)
    return found


def planned(sites: int, records: int, epsilon: float) -> Plan:
    """The plan of a meeting of these columns."""
    return plan_of(
        MeetingSource(COLUMNS, sites, "died"), (records,) * sites, data_id="study", epsilon=epsilon, delta=DELTA
    )


def meet_once(plan: Plan, wrong: Coding | None, random: np.random.Generator) -> dict[str, list[Difference]]:
    """What one meeting says, by column; site 0 codes one otherwise."""
    meeting = plan.source
    assert isinstance(meeting, MeetingSource)
    total = np.zeros(plan.dimension)
    for site, records in enumerate(plan.sizes):
        mine = meeting.asks.encode(coded(drawn(records, random), wrong if site == 0 else None))
        total += meeting.placed(mine, site)
    step = plan.grid.step
    noise = clear_noise(plan.derived.sampler, plan.dimension, Prg(random.bytes(32))) * step
    counts, scale = meeting.counts(total + noise), plan.derived.mechanism.scale * step
    scales = np.array([scale / meeting.asks.times(name) for name in meeting.columns])
    weights = weights_of(counts, plan.sizes, scales)
    return {
        name: differences(counts[:, k], plan.sizes, float(scales[k]), weights.size, weights[:, k])
        for k, name in enumerate(meeting.columns)
    }


@dataclass(frozen=True)
class Counted:
    """Of so many draws: in how many the wrong coding was found, and in how many anything else was said."""

    coding: str
    draws: int
    found: int
    alarms: int


def study(
    codings: Sequence[Coding | None], draws: int, sites: int, records: int, epsilon: float, seed: int
) -> list[Counted]:
    """The counts of each coding; None: nothing is coded otherwise."""
    plan, counts = planned(sites, records, epsilon), []
    for k, wrong in enumerate(codings):
        random, hits, alarms = np.random.default_rng((seed, k)), 0, 0
        for _ in range(draws):
            said = {(name, each.site) for name, found in meet_once(plan, wrong, random).items() for each in found}
            there = set() if wrong is None else {(wrong.column, 0)}
            hits += bool(said & there)
            alarms += bool(said - there)
        counts.append(Counted(NONE if wrong is None else wrong.name, draws, hits, alarms))
    return counts


def within(count: int, draws: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of 95 % of a share."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, count, draws - count + 1)) if count else 0.0
    return low, float(beta.ppf(0.975, count + 1, draws - count)) if count < draws else 1.0


def rows_of(counted: Mapping[tuple[float, int, str], Counted]) -> list[list[str]]:
    """The lines of the file: each setting and coding with its shares and their intervals, then the false alarms of all
    meetings of a setting."""
    rows = [["epsilon", "records", "coding", "meetings", "found", "low", "high", "alarms", "low", "high"]]
    for epsilon, records in dict.fromkeys(key[:2] for key in counted):
        mine = [row for key, row in counted.items() if key[:2] == (epsilon, records)]
        draws, alarms = sum(row.draws for row in mine), sum(row.alarms for row in mine)
        for row in (*mine, Counted(ALL, draws, 0, alarms)):
            shares = [(row.found, row.coding not in (NONE, ALL)), (row.alarms, True)]
            numbers = []
            for count, said in shares:
                told = (count / row.draws, *within(count, row.draws))
                numbers += [f"{share:.4f}" if said else "" for share in told]
            rows.append([f"{epsilon:g}", str(records), row.coding, str(row.draws), *numbers])
    return rows


def counted_in(path: Path | None) -> dict[tuple[float, int, str], Counted]:
    """What a file of earlier meetings has counted; nothing of none."""
    found = dict[tuple[float, int, str], Counted]()
    if path is None or not path.exists():
        return found
    with path.open(newline="", encoding="utf-8") as file:
        for row in list(csv.reader(file))[1:]:
            draws = int(row[3])
            hits, alarms = (round(float(share or 0) * draws) for share in (row[4], row[7]))
            if row[2] != ALL:
                found[float(row[0]), int(row[1]), row[2]] = Counted(row[2], draws, hits, alarms)
    return found


def table_of(path: Path) -> list[str]:
    """The file as a table of Markdown, a line a coding, both settings side by side; the last: false alarms of all."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    settings = list(dict.fromkeys((row[0], row[1]) for row in rows))
    heads = [
        f"epsilon {epsilon}, {int(records):,} records a site: found | anything else said"
        for epsilon, records in settings
    ]
    lines = [f"| one of five sites has | {' | '.join(heads)} |", "| --- |" + " --- | --- |" * len(settings)]
    for coding in dict.fromkeys(row[2] for row in rows):
        cells = []
        for setting in settings:
            (row,) = [row for row in rows if (row[0], row[1]) == setting and row[2] == coding]
            cells += [_of_interval(row[4:7]), _of_interval(row[7:10])]
        lines.append(f"| {coding} | {' | '.join(cells)} |")
    return lines


def _of_interval(numbers: Sequence[str]) -> str:
    share, low, high = numbers
    return f"{float(share):.3f} ({float(low):.3f} to {float(high):.3f})" if share else ""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="of each setting and coding")
    parser.add_argument("--sites", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0, help="no pass begins after so many")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    end, counted = time.monotonic() + 60 * given.minutes, counted_in(given.out)
    for first in range(min((row.draws for row in counted.values()), default=0), given.draws, PASS):
        if time.monotonic() > end:
            break
        draws = min(PASS, given.draws - first)
        for epsilon, records in SETTINGS:
            for row in study((None, *CODINGS), draws, given.sites, records, epsilon, given.seed + first):
                key = epsilon, records, row.coding
                before = counted.get(key, Counted(row.coding, 0, 0, 0))
                counted[key] = Counted(
                    row.coding, before.draws + draws, before.found + row.found, before.alarms + row.alarms
                )
        if given.out is not None:
            with given.out.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(rows_of(counted))
    for line in rows_of(counted) if given.out is None else table_of(given.out):
        print(line if isinstance(line, str) else "  ".join(line))


if __name__ == "__main__":
    main()
