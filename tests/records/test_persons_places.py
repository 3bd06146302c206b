"""Records of persons: which are kept, who holds which place, and that public numbers do not move with a person."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import RecordError, UsageError, owner_text
from dpmpc.intake.staging import held
from dpmpc.local.evaluating import held_sizes, splitting, training_part
from dpmpc.local.named_records import load as load_run
from dpmpc.planning.request import Request
from dpmpc.records.dataset import Dataset
from dpmpc.records.loading import OpenTable, load, opened
from dpmpc.records.ownership import EMPTY, KeptOwners, shares
from dpmpc.records.persons import drawn_apart, kept, persons_at, persons_of, said_of
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
LINES = ["who,site,x,y", "b,n,1,0", "a,n,2,1", "b,s,3,0", "b,n,4,1", "a,n,5,0", "b,n,6,1", "007,s,7,0", "7,s,8,1"]


def written(folder: Path, lines: list[str]) -> str:
    path = folder / "records.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_the_first_records_of_each_person_at_each_owner_are_kept(tmp_path: Path) -> None:
    source = written(tmp_path, LINES)
    with opened(source, person=KeptOwners("who", 2, "site")) as (table, _):
        assert [row[0] for row in table.rows(f"CAST({table.text('x')} AS VARCHAR)")] == list("1234578")
        who = persons_of(table)
        assert who.tolist() == [3, 2, 3, 3, 2, 0, 1], "007 and 7 are two persons"
        assert persons_at(table, "0") == (4,)
        assert table.beyond == 1 and "1 record is not used: each person has 2 places" in said_of(table.beyond, 2)
    with opened(source, person=KeptOwners("who", 2)) as (table, _):
        assert [row[0] for row in table.rows(f"CAST({table.text('x')} AS VARCHAR)")] == [*"12357", "8"]


def test_a_record_without_person_is_refused_without_a_word_about_it(tmp_path: Path) -> None:
    with (
        pytest.raises(RecordError) as caught,
        opened(written(tmp_path, [*LINES, " ,s,9,0"]), person=KeptOwners("who", 2)),
    ):
        pass
    assert "who" in caught.value.message and "9" not in caught.value.message


def test_an_assumption_that_these_records_break_is_not_made(tmp_path: Path) -> None:
    """`person_owners`: b is at both sites, so no promise may assume that nobody is; 007 and 7 are two persons. Nothing
    is known of it where an owner has its own records alone."""
    source = written(tmp_path, LINES)
    for of in (KeptOwners("who", 2, "site"), KeptOwners("who", 2, "site", 2), KeptOwners("who", 2, None, 1)):
        with opened(source, person=of) as (table, _):
            assert table.n
    with (
        refuses("records", 1, "who") as said,
        opened(source, person=KeptOwners("who", 2, "site", 1)),
    ):
        pass
    assert "give person_owners=2" in owner_text(said.value) and "2" not in said.value.message
    request = Request(
        csv=source, target="y", owners_column="site", person="who", person_owners=1, delta=1e-5, evaluate=False,
        test_fraction=0.0,
    )  # fmt: skip
    with refuses("records", "who", 2):
        load_run(request)


def test_a_table_whose_texts_were_parsed_once_still_knows_its_persons(tmp_path: Path) -> None:
    """Ranges that are read off the records, and surveys, hold a table's columns and no others."""
    path = written(tmp_path, LINES)
    with opened(path, person=KeptOwners("who", 2, "site")) as (table, _):
        assert table.parsed
        again = held(table, ["x"])
        assert again.names == ("x",) and persons_of(again).tolist() == persons_of(table).tolist()
    person = KeptOwners("who", 2, "site")
    found = load(path, target="y", owners_column="site", drop=("who",), person=person, test_fraction=0.0)
    assert found.persons is not None and found.persons[0].tolist() == [3, 2, 3, 3, 2, 0, 1]


def test_places_of_owners() -> None:
    persons, groups = np.array([4, 2, 4, 9, 2, 4]), np.array([0, 0, 0, 1, 1, 1])
    split = shares(6, persons, groups, rows=3, seed=1)
    assert split.sizes.tolist() == [6, 9]
    assert split.order.tolist() == [1, EMPTY, EMPTY, 0, 2, EMPTY, 4, EMPTY, EMPTY, 5, EMPTY, EMPTY, 3, EMPTY, EMPTY]
    more = shares(6, persons, groups, rows=3, capacity=(2, 5), seed=1)
    assert more.sizes.tolist() == [6, 15] and (more.order >= 0).sum() == 6
    plain = shares(6, None, groups, capacity=(4, 3), seed=1)
    assert plain.order.tolist() == [0, 1, 2, EMPTY, 3, 4, 5]
    drawn = shares(6, persons, None, rows=3, owners=3, seed=1)
    assert drawn.sizes.tolist() == [3, 3, 3]
    for j in range(3):
        mine = drawn.order[3 * j : 3 * j + 3]
        assert len(set(persons[mine[mine >= 0]].tolist())) == 1, "an owner has all of a person's records"
    for capacity, error in (((1, 5), RecordError), ((2,), UsageError), ((2, 0), UsageError)):
        with pytest.raises(error):
            shares(6, persons, groups, rows=3, capacity=capacity, seed=1)


def test_held_out_persons_are_in_no_training_record() -> None:
    persons = np.random.default_rng(1).integers(0, 40, 300)
    train, test = drawn_apart(persons, 0.25, 3)
    assert not set(persons[train]) & set(persons[test]) and len(set(persons[test])) == 10
    assert sorted([*train, *test]) == list(range(300))


def hospital(person: list[tuple[float, int]], who: str = "p7") -> list[str]:
    """Lines of 20 persons at two sites; these records are those of one of them, among the others."""
    rng = np.random.default_rng(5)
    others = [f"p{k},{'ns'[k % 2]},{rng.normal():.3f},{k % 2}" for k in range(20) for _ in range(k % 4 + 1) if k != 7]
    own = [f"{who},{site},{x},{y}" for x, y in person for site in "ns"]
    return ["who,site,x,y", *others[:11], *own, *others[11:]]


def mapped(folder: Path, lines: list[str], **asked: Any) -> tuple[Request, Dataset, tuple[int, ...]]:
    given: dict[str, Any] = {
        "records": written(folder, lines), "target": "y", "owners_column": "site", "person": "who", "person_rows": 3,
        "bounds": str(folder / "bounds.json"), "positive": "1", "delta": 1e-5, "figures": "plain", **asked,
    }  # fmt: skip
    (folder / "bounds.json").write_text('{"x": [-3, 3], "y": ["0", "1"]}', encoding="utf-8")
    request = Request(**given)
    dataset, split = load_run(request, folder)
    return request, dataset, tuple(int(size) for size in split.sizes)


def test_public_numbers_do_not_move_with_a_persons_records(tmp_path: Path) -> None:
    """One record, two, more than are kept; nothing but that person's places is another."""
    found = [mapped(tmp_path, hospital(rows)) for rows in ([(0.5, 0)], [(0.5, 0), (1.0, 1)], [(9.0, 1)] * 8)]
    assert len({sizes for _, _, sizes in found}) == 1
    assert len({held_sizes(request, dataset, 2)[1] for request, dataset, _ in found}) == 1
    first, second, many = (np.column_stack([d.train.X, d.train.y]) for _, d, _ in found)
    for other in (second, many):
        assert (first != other).any(axis=1).sum() <= 2 * 3, "three places at each of two sites"
    assert not first[~first.any(axis=1)].any() and (~first[:, :-1].any(axis=1)).sum() > 0
    with_all, sizes = found[1][1], found[1][2]
    assert len(with_all.train.y) == sum(sizes) and set(np.unique(with_all.train.y)) <= {-1.0, 0.0, 1.0}


def test_capacity_hides_how_many_there_are(tmp_path: Path) -> None:
    lines = hospital([(0.5, 0)])
    one = mapped(tmp_path, lines, capacity=(30, 40))
    fewer = mapped(tmp_path, [line for line in lines if not line.startswith("p7,")], capacity=(30, 40))
    assert one[2] == fewer[2] == (90, 120)
    plain = mapped(tmp_path, lines, capacity=(70, 70), person=None, ids="who", neighbours="record")
    assert plain[2] == (70, 70) and (~plain[1].train.X.any(axis=1)).sum() > 80
    with pytest.raises(RecordError) as caught:
        mapped(tmp_path, lines, capacity=(2, 40))
    assert not any(character.isdigit() for character in caught.value.message)


def test_what_leaves_records_out_does_not_go_with_persons(tmp_path: Path) -> None:
    for more in ({"missing": "drop"}, {"max_rows": 20}):
        with refuses("together", "drop", "max_rows", setting="missing"):
            mapped(tmp_path, hospital([(0.5, 0)]), **more)


def test_a_table_that_is_open_keeps_its_own_persons(tmp_path: Path) -> None:
    with opened(written(tmp_path, LINES), person=KeptOwners("who", 1)) as (table, private):
        public: Any = {"x": [0.0, 9.0], "y": ["0", "1"]}
        source = OpenTable(table, private)
        again = load(
            source, target="y", bounds=public, drop=("who", "site"), test_fraction=0.0, person=KeptOwners("who", 1)
        )
        assert again.n == 4 and again.persons is not None and len(again.persons[0]) == 4
        assert kept(table, KeptOwners("who", 1)).n == 4


def test_parts_of_persons_are_by_their_own_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever names records besides: a person whose records lay in both parts would pay for both."""
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    lines = [f"{k},p{k % 900},{'ns'[k % 2]},{k % 7},{k % 2}" for k in range(1800)]
    asked = {"ids": "number", "drop": ("number",), "figures": None, "epsilon": 10.0, "person_rows": 2}
    source = written(tmp_path, ["number,who,site,x,y", *lines])
    (tmp_path / "bounds.json").write_text('{"x": [0, 7], "y": ["0", "1"]}', encoding="utf-8")
    request = Request(records=source, target="y", owners_column="site", person="who", positive="1", delta=1e-5,
                      bounds=str(tmp_path / "bounds.json"), **asked)  # type: ignore[arg-type]  # fmt: skip
    assert splitting(request) is not None and training_part(request, 3600, "records.csv").startswith("person:")
    dataset, _ = load_run(request, tmp_path)
    assert dataset.persons is not None
    train, held = (set(part.tolist()) for part in dataset.persons)
    assert not train & held and len(held) > 100
