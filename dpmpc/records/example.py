"""Made-up tables to try dpmpc on. They hold no person: every number is drawn here, the same for the same seed."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpmpc.errors import UsageError, sayable
from dpmpc.folders import OUT, make_folder

SITES: Mapping[str, float] = {"north": 0.5, "south": 0.3, "west": 0.2}  # their shares of the records
COLUMNS = ("age", "sex", "ward", "stay", "creatinine", "earlier", "readmitted")
_WARDS = ("cardiology", "medicine", "surgery")
_LEAST = 100
_NEW = 20
_BOUNDS = """\
# Public bounds: from knowledge of the subject, never from the records.
age = [18, 100]
sex = ["f", "m"]
ward = ["cardiology", "medicine", "surgery"]
stay = [0, 30]
creatinine = [30, 300]
earlier = [0, 10]
readmitted = ["no", "yes"]
"""


def hospitals(folder: Path, records: int = 3000, seed: int = 1) -> list[Path]:
    """Writes the table of three hospitals, and returns the files: all records with their site, a file a site, twenty
    new patients, public bounds. Errors: UsageError for too few records, or a file that is there already."""
    if records < _LEAST:
        raise UsageError(
            f"an example has {_LEAST} records or more; got {sayable(records)}; ask for more", code="enough"
        )
    rows = _patients(np.random.default_rng(seed), records + _NEW)
    new, rows = rows[:_NEW], rows[_NEW:]
    ends = [round(records * share) for share in np.cumsum(list(SITES.values()))]
    own = {name: rows[begin:end] for name, begin, end in zip(SITES, [0, *ends], ends, strict=False)}
    tables: dict[str, tuple[Sequence[str], list[list[str]]]] = {
        "hospitals.csv": ((*COLUMNS, "site"), [[*row, name] for name, part in own.items() for row in part]),
        **{f"{name}.csv": (COLUMNS, part) for name, part in own.items()},
        "new_patients.csv": (COLUMNS[:-1], [row[:-1] for row in new]),
    }
    paths = [folder / name for name in (*tables, "bounds.toml")]
    for path in paths:
        if path.exists():
            raise UsageError(
                f"an example is written into a folder that has none; {sayable(path)} is there; name another <<out>>",
                code="over",
            )
    make_folder(folder, OUT)
    for name, (head, lines) in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *lines])
    paths[-1].write_text(_BOUNDS, encoding="utf-8")
    return paths


def _patients(rng: np.random.Generator, n: int) -> list[list[str]]:
    """Rows of texts. Who is older, stays longer, has worse kidneys or came before is readmitted more often."""
    age = np.clip(rng.normal(64, 16, n), 18, 99).round()
    sex = rng.choice(("f", "m"), n)
    ward = rng.choice(_WARDS, n, p=(0.25, 0.45, 0.3))
    stay = np.clip(rng.gamma(2.0, 2.5, n), 0, 30).round()
    creatinine = np.clip(rng.lognormal(4.45, 0.3, n) + 0.3 * (age - 64), 35, 295).round()
    earlier = np.minimum(rng.poisson(0.8, n), 10)
    score = (
        0.05 * (age - 64) + 0.2 * (stay - 5) + 0.02 * (creatinine - 90) + 0.9 * (earlier - 0.8)
        + 0.7 * (ward == "cardiology") - 0.6 * (ward == "surgery") + 0.2 * (sex == "m") - 0.4
    )  # fmt: skip
    readmitted = rng.random(n) < 1 / (1 + np.exp(-1.5 * score))
    return [
        [f"{a:.0f}", str(s), str(w), f"{d:.0f}", f"{c:.0f}", str(e), "yes" if r else "no"]
        for a, s, w, d, c, e, r in zip(age, sex, ward, stay, creatinine, earlier, readmitted, strict=True)
    ]
