"""The made-up tables that tutorials begin with."""

import csv
from pathlib import Path

from dpmpc.records.example import COLUMNS, SITES, hospitals
from dpmpc.records.schema import read_bounds
from tests.refusals import refuses


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_sites_make_up_the_whole_and_bounds_hold_every_value(tmp_path: Path) -> None:
    paths = hospitals(tmp_path / "a", 1000)
    whole = rows(tmp_path / "a" / "hospitals.csv")
    assert len(whole) == 1000 and list(whole[0]) == [*COLUMNS, "site"]
    for name, share in SITES.items():
        own = rows(tmp_path / "a" / f"{name}.csv")
        assert len(own) == round(1000 * share)
        assert own == [{key: row[key] for key in COLUMNS} for row in whole if row["site"] == name]
    assert list(rows(tmp_path / "a" / "new_patients.csv")[0]) == list(COLUMNS[:-1])
    for name, bound in read_bounds(tmp_path / "a" / "bounds.toml").items():
        for row in whole:
            assert row[name] in bound if isinstance(bound[0], str) else bound[0] <= float(row[name]) <= bound[1]
    hospitals(tmp_path / "b", 1000)
    assert [p.read_bytes() for p in paths] == [(tmp_path / "b" / p.name).read_bytes() for p in paths]
    hospitals(tmp_path / "c", 1000, seed=2)
    assert (tmp_path / "c" / "west.csv").read_bytes() != (tmp_path / "a" / "west.csv").read_bytes()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    hospitals(tmp_path, 100)
    with refuses("over", "hospitals.csv", setting="out"):
        hospitals(tmp_path, 100)
    with refuses("enough", 100, 99):
        hospitals(tmp_path / "new", 99)
    assert not (tmp_path / "new").exists()
