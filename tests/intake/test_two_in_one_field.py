"""Fields that have an age and a sex in one, and limits with decimal commas: each is said once, by what it is."""

from pathlib import Path
from typing import Any

import pytest

from dpmpc.intake.lint import of_sexes
from tests.intake.test_abroad import looked_at
from tests.intake.test_other_countries import N, noted, table
from tests.tables import write

pytestmark = pytest.mark.usefixtures("small_tables")


@pytest.mark.parametrize(
    "field", ["{age}Y/{MF}", "{age} yrs/{male}", "{MF}/{age}", "{age}/{MF}", "{age}J./{WM}", "{age} лет / {жм}"]
)
def test_an_age_and_a_sex_in_one_field_are_no_unit(field: str, tmp_path: Path) -> None:
    def who(k: int) -> str:
        sexes = {"MF": "MF"[k % 2], "male": ("male", "female")[k % 2], "WM": "WM"[k % 2], "жм": "жм"[k % 2]}
        return field.format(age=1 + k % 80, **sexes)

    path = table(tmp_path, v=lambda k: k, who=who)
    found = looked_at(path)
    assert found.proposed.units == () and not found.asks
    (note,) = (note for note in found.notes if "'who'" in note)
    assert (
        "an age and a sex in one field" in note
        and any(f"'{who(k)}'" in note for k in range(N))
        and "write them as two columns" in note
    )


@pytest.mark.parametrize("units", [("mg/dL", "mg/L"), ("m/s", "km/h"), ("g/l",), ("Y/F",), ("kg/m", "kg/s")])
def test_units_with_a_slash_stay_units(units: Any, tmp_path: Path) -> None:
    assert not of_sexes(units)
    path = table(tmp_path, v=lambda k: k, dose=lambda k: f"{k % 50}.5 {units[k % len(units)]}")
    assert looked_at(path).proposed.units and not noted(path, "an age and a sex")


def test_a_limit_with_a_decimal_comma_is_said_once(tmp_path: Path) -> None:
    path = table(tmp_path, v=lambda k: k, lab=lambda k: f"<{k % 60},{k % 9}")
    (note,) = (note for note in looked_at(path).notes if "'lab'" in note)
    assert "the limit: <<spelling=Spelling(units=('<',))>>" in note.replace("\\x3c", "<")
    many = [f"<{k % 7000},{k % 9}{k % 11}{k % 13}" for k in range(21_000)]  # too many for their values to be counted
    path = write(tmp_path, "\n".join(["lab;y", *(f"{text};{'nj'[k % 2]}" for k, text in enumerate(many))]))
    (note,) = (note for note in looked_at(path).notes if "'lab'" in note)
    assert len(set(many)) > 20_000 and "the limit: <<spelling=Spelling(units=('<',))>>" in note
    other = table(tmp_path, v=lambda k: k, lab=lambda k: f"<{k}" if k % 20 == 0 else f"{k % 60}'{k % 9}\"")
    assert len([note for note in looked_at(other).notes if "'lab'" in note]) == 2  # of two kinds of fields
