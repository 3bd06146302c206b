"""What `dpmpc train` does when nothing but the budget is said, held against what it did before: runs of the program
itself, in the clear.

Before: 50 iterations of step 1/(L + lambda), records' influence taken as 2G at every theta, and for a file without
public bounds ranges read off the records. Now: advised length and step, influence at theta, and a private survey. Both
ways share a seed's split into training, test and owners; noise is the library's own, fresh in each run, so the
differences are paired by split alone.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.plan.here import Here
from dpmpc.codec import loads
from dpmpc.folders import passing_folder
from dpmpc.lazy import dataclass
from dpmpc.local.launcher import train
from dpmpc.planning.request import Request
from dpmpc_experiments.plan import Check, Plan
from dpmpc_experiments.report import table
from dpmpc_experiments.summary import interval

OWNERS, DELTA = 5, 1e-4
BEFORE: Mapping[str, Any] = {"iterations": 50, "spread": "fixed"}
OFF_THE_RECORDS: Mapping[str, Any] = {"preprocessing": "records"}
WAYS = ("before", "now")
Pairs = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Setting:
    """An embedded set at one epsilon. `file`: as a CSV file, of which no bounds are known."""

    data: str
    epsilon: float
    file: bool = False

    @property
    def ridge(self) -> bool:
        """Whether its target is a quantity, and its score an error."""
        return self.data == "diabetes"

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.data}{' as a file without bounds' if self.file else ''}, epsilon = {self.epsilon:g}"


SETTINGS = (
    Setting("breast-cancer", 0.5),
    Setting("breast-cancer", 1.0),
    Setting("breast-cancer", 2.0),
    Setting("synthetic", 0.5),
    Setting("synthetic", 2.0),
    Setting("diabetes", 1.0),
    Setting("diabetes", 4.0),
    Setting("breast-cancer", 1.0, file=True),
    Setting("breast-cancer", 2.0, file=True),
)  # not diabetes as a file: a surveyed target has a range of its own, and the errors of both ways another unit each
QUICK = (Setting("breast-cancer", 1.0),)


def compare(folder: Path, plan: Plan) -> Pairs:
    """Test scores (accuracy, or mean squared error for diabetes) of both ways by setting; defaults.csv keeps every
    run."""
    path = folder / "defaults.csv"
    known = _read(path)
    seeds = plan.seeds(40, 3)
    found: Pairs = {}
    for setting in QUICK if plan.quick else SETTINGS:
        for way in WAYS:
            key = f"{setting.name}|{way}|{seeds[0]}|{len(seeds)}"
            if key not in known:
                known[key] = [score(setting, way, seed) for seed in seeds]
                _write(path, known)
            found.setdefault(setting.name, {})[way] = known[key]
    return found


def score(setting: Setting, way: str, seed: int) -> float:
    """The test score of one run of `dpmpc train` on this seed's split."""
    options: dict[str, Any] = dict(BEFORE) if way == "before" else {}
    with passing_folder() as folder:
        if setting.file:
            options |= {"csv": str(write_set(setting.data, folder / "records.csv")), "target": "target"}
            options |= {"task": "ridge" if setting.ridge else "logistic"}
            options |= OFF_THE_RECORDS if way == "before" else {}
        else:
            options["data"] = setting.data
        request = Request(owners=OWNERS, epsilon=setting.epsilon, delta=DELTA, engine="clear", seed=seed, **options)
        train(request, Here(out=folder / "run"))
        utility = loads((folder / "run" / "report.json").read_text(encoding="utf-8"))["utility"]
    return float(utility["test_mse" if setting.ridge else "test_accuracy"])


def write_set(name: str, path: Path) -> Path:
    """scikit-learn's set as a CSV file with its raw columns and "target"."""
    from sklearn import datasets  # slow to import

    # diabetes in its own units: the scaled columns of scikit-learn's default were read off the records
    bunch = datasets.load_diabetes(scaled=False) if name == "diabetes" else datasets.load_breast_cancer()
    target = bunch.target if name == "diabetes" else np.where(bunch.target == 0, "malignant", "benign")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*map(str, bunch.feature_names), "target"])
        for values, label in zip(bunch.data.tolist(), target.tolist(), strict=True):
            writer.writerow([*values, label])
    return path


def verdict(setting: str, ways: Mapping[str, Sequence[float]]) -> tuple[float, float, str]:
    """(now - before in the direction that is better, half its 95 % interval by pairs, gained, lost or equal)."""
    sign = -1.0 if setting.startswith("diabetes") else 1.0
    gained, half = interval([sign * (b - a) for a, b in zip(ways["before"], ways["now"], strict=True)])
    return gained, half, "gained" if gained > half else "lost" if gained < -half else "equal within the interval"


def checks(found: Pairs) -> list[Check]:
    """One statement: on how many settings the defaults lose."""
    words = {setting: verdict(setting, ways)[2] for setting, ways in found.items()}
    lost = [setting for setting, word in words.items() if word == "lost"]
    counts = ", ".join(f"{word} on {sum(w == word for w in words.values())}" for word in dict.fromkeys(words.values()))
    lower = [now for setting, ways in found.items() if (now := verdict(setting, ways)[0]) < 0]
    fell = f"; the mean falls on {len(lower)}, by {-max(lower):.3f} to {-min(lower):.3f}" if lower else ""
    what = "embedded sets: train's defaults against what they were"
    return [Check(what, "no loss beyond the interval", counts + fell,
                  "holds" if not lost else f"does not hold: lost on {'; '.join(lost)}")]  # fmt: skip


def notes(found: Pairs) -> list[str]:
    """A table of all settings, with intervals."""
    lines = []
    for setting, ways in found.items():
        gained, half, word = verdict(setting, ways)
        means = []
        for way in WAYS:
            mean, wide = interval(ways[way])
            means.append(f"{mean:.3f} +- {wide:.3f}")
        lines.append([setting, str(len(ways["now"])), *means, f"{gained:+.3f} +- {half:.3f}", word])
    head = ["embedded set", "splits", "before", "now", "gain, by pairs", "verdict"]
    return [
        f"`dpmpc train` with its defaults on the embedded sets, {OWNERS} owners, delta = {DELTA}, every split with "
        "noise of its own: test accuracy, and for diabetes the mean squared error of a target in [-1, 1]. Before: 50 "
        "iterations of step 1/(L + lambda), sensitivity 2G, and ranges read off a file's records, outside the promise. "
        "Now everything is inside.",
        "", *table(head, lines), "",
    ]  # fmt: skip


def _read(path: Path) -> dict[str, list[float]]:
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        found = {line[0]: [float(x) for x in line[1:]] for line in csv.reader(file)}
    return {key: sample for key, sample in found.items() if all(map(math.isfinite, sample))}


def _write(path: Path, known: Mapping[str, Sequence[float]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([[key, *sample] for key, sample in known.items()])
