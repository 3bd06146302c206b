"""Made-up records of three owners, for runs over several machines: what is public of them, and a CSV file an owner."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.planning.request import Request
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target

OWNERS, EACH = 3, 400
TARGETS: dict[str, Target] = {
    "two classes": Labels("outcome", ("yes",), ("no",)),
    "three classes": Classes("outcome", ("low", "middle", "high")),
    "a quantity": Range("outcome", -50.0, 50.0),
}


def draft(what: str = "two classes") -> Schema:
    """A range that is public, and columns of which nothing is."""
    return Schema((Numeric("age", 0.0, 150.0),), TARGETS[what], unknown=("dose", "ward"))


def files(folder: Path, what: str = "two classes") -> list[Path]:
    """A CSV file an owner."""
    rng = np.random.default_rng(3)
    found = []
    for owner in range(OWNERS):
        age, dose = rng.integers(18, 90, EACH), rng.normal(130, 20, EACH).round(1)
        ward = rng.choice(["north", "south"], EACH)
        score = (age - 54) / 10 + (dose - 130) / 15 + 3 * (ward == "north") + rng.normal(0, 0.3, EACH)
        outcome: Any = np.where(score > 1.5, "yes", "no")
        if what == "three classes":
            outcome = np.array(["low", "middle", "high"])[np.digitize(score, [-1, 3])]
        elif what == "a quantity":
            outcome = score.round(3)
        found.append(folder / f"owner{owner}.csv")
        with found[-1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["ward", "age", "dose", "outcome"])
            writer.writerows(zip(ward, age, dose, outcome, strict=True))
    return found


BOTH: dict[str, Any] = {"role": "both", "parties": 3, "backend": "shamir"}


def planned(folder: Path, what: str = "two classes", **changes: Any) -> Path:
    """A plan made without any record."""
    folder.mkdir(parents=True, exist_ok=True)
    draft(what).write(folder / "schema.json")
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "owner_sizes": (EACH,) * OWNERS, "iterations": 4}
    plan_only(Request(schema=str(folder / "schema.json"), **asked | changes), Placement(out=folder / "plan"))
    return folder / "plan" / "plan.json"
