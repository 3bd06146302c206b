"""A synthetic table whose processes were killed between its releases, and whose files say something else when they are
started again: refused, or all costs what was promised."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium import start as starting
from dpmpc.consortium.placement import Placement
from dpmpc.errors import DpmpcError, PeerError, UsageError, owner_text
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.records.origins import PUBLIC
from dpmpc.run.files import WHOLE
from dpmpc.run.once import OPENED
from dpmpc.run.stages import RunStages, StagePart
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.tables.synth_plan import plan_of_synthesis
from tests.aggregation.histories import least_epsilon
from tests.aggregation.mutants import RECORDS, mutate, text_of, words_of
from tests.aggregation.owners_losses import lost_by
from tests.machines import sites
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")

COLUMNS = Columns((
    Quantity("x", -1.0, 1.0, (-1.0, 0.0, 1.0)), category("c", ("a", "b", "d")),
    Quantity("y", 0.0, 50.0, (0.0, 10.0, 30.0, 50.0)), category("s", ("f", "m")),
))  # fmt: skip
SITES = "012"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plan.json, records, and what three sites have that were killed after their first release."""
    folder, rng = tmp_path_factory.mktemp("killed"), np.random.default_rng(4)
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "role": "both", "parties": 3}
    plan_of_synthesis(COLUMNS, "c", (), (RECORDS,) * 3, "ward", None, settings, PUBLIC, hopeless=True).write(
        folder / "plan.json"
    )
    for site in SITES:
        x = rng.normal(0, 0.4, RECORDS)
        rows = zip(x, rng.choice(["a", "b", "d"], RECORDS), 25 + 20 * x, rng.choice(["f", "m"], RECORDS), strict=True)
        lines = [f"{a:.3f},{c},{y:.2f},{s}" for a, c, y, s in rows]
        (folder / f"{site}.csv").write_text("\n".join(["x,c,y,s", *lines, ""]))

    take = starting._part_of

    def dies(part: StagePart, *given: Any, **more: Any) -> None:
        if part.stage is None:
            raise PeerError("killed")
        take(part, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starting, "_part_of", dies)
        ends = again(folder)
    assert [str(end) for end in ends] == ["killed"] * 3
    assert all((folder / site / "first" / OPENED).is_file() for site in SITES)
    return folder


def again(folder: Path, wait: float = 60.0) -> list[DpmpcError | None]:
    return sites(folder / "plan.json", folder, [folder / f"{site}.csv" for site in SITES], wait=wait)


def copied(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "copy"))


def goes_on(folder: Path) -> Plan:
    """The plan that site 0 goes on with, of the files that it has. Errors: UsageError."""

    def own(part: StagePart, where: Placement) -> None:
        assert part.stage is None, "the stage is over"

    file = folder / "plan.json"
    stages = RunStages(Plan.read(file), Placement(out=folder / "0", index="0", plan_file=file))
    stages.check()
    return stages.run(own, lambda text: None)[0]


def changed(folder: Path, name: str, change: Callable[[dict[str, Any]], None], where: str = SITES) -> None:
    for site in where:
        path = folder / site / "first" / name
        value = json.loads(path.read_text())
        change(value)
        path.write_text(text_of(value))


def test_whatever_plans_on_disk_say_a_process_goes_on_with_what_it_opened_leads_to(
    killed: Path, tmp_path: Path
) -> None:
    """Any field of any of the plans that a process keeps of a stage, put to anything: it is refused in a line, or is
    what follows after all."""
    folder, rng = copied(killed, tmp_path), random.Random(3)
    true = goes_on(folder)
    assert len(true.before) == 1 and true.released == Plan.read(folder / "plan.json").before
    refused, same = 0, 0
    for path in (folder / "0" / "first" / "plan.json", folder / "0" / "first" / WHOLE):
        text = path.read_text()
        words = words_of([json.loads(text)])
        for _ in range(25):
            path.write_text(text_of(mutate(json.loads(text), rng, words)))
            try:
                assert goes_on(folder) == true
                same += 1
            except UsageError as error:
                assert "\n" not in owner_text(error) or "^" in owner_text(error)
                refused += 1
        path.write_text(text)
    assert goes_on(folder) == true and refused > 30, (refused, same)


def test_another_sum_than_was_opened_leads_to_no_second_release(killed: Path, tmp_path: Path) -> None:
    folder = copied(killed, tmp_path)
    path = folder / "0" / "first" / "owners.opened.bin"
    content = path.read_bytes()
    for k in (len(content) // 2, len(content) - 3):
        path.write_bytes(content[:k] + bytes([content[k] ^ 0x55]) + content[k + 1 :])
        with pytest.raises(UsageError):
            goes_on(folder)
    for path in (folder / "0" / "first").glob("*.opened.bin"):
        path.unlink()
    with refuses("over", "first", setting="out"):
        goes_on(folder)


def cheapen(value: dict[str, Any]) -> None:
    """The first release: its noise would be more than it was, so that the second could have less."""
    value["promise"]["epsilon"] /= 2


def test_what_all_sites_files_say_alike_is_not_believed_and_the_whole_costs_what_was_promised(
    killed: Path, tmp_path: Path
) -> None:
    """Files that say another price of the first release are refused at every site with nothing spent; as they were,
    the run goes on to its end, where both releases, as parties drew their noise, lose nearly what was promised and no
    more: by distances between encoded records, and Gaussian integrals."""
    folder = copied(killed, tmp_path)
    changed(folder, "plan.json", cheapen)
    ends = again(folder)
    assert all(isinstance(end, UsageError) and "do not agree on it" in str(end) for end in ends), ends
    assert len(merge(read_ledgers(folder))) == 1
    for site in SITES:
        shutil.copy(killed / site / "first" / "plan.json", folder / site / "first" / "plan.json")
    assert again(folder) == [None] * 3
    entries = merge(read_ledgers(folder))
    assert [(entry.run.partition("+")[2], entry.release) for entry in entries] == [("first", 0), ("", 0)]
    plan = Plan.read(folder / "plan.json")
    assert 0.95 < lost_by(plan, "record", 1e-5, np.random.default_rng(2)) <= 1.0
    mu2 = sum((entry.mechanism.sensitivity.l2 / entry.mechanism.scale) ** 2 for entry in entries)
    assert 0.95 < least_epsilon(mu2, {}, 1e-5) <= 1.0


def test_a_first_release_cannot_have_cost_less_than_it_did(killed: Path, tmp_path: Path) -> None:
    """Where every plan on disk says so, and they agree with each other, ledgers do not."""
    folder = copied(killed, tmp_path)
    plan = Plan.read(folder / "plan.json")
    cheap = replace(plan, source=replace(plan.source, epsilon=0.2))  # type: ignore[type-var]
    assert cheap.derived.mechanism.scale < plan.derived.mechanism.scale
    cheap.write(folder / "plan.json")
    with refuses("over", "first", setting="out"):
        goes_on(folder)
    for site in SITES:
        for name, each in ((WHOLE, cheap), ("plan.json", cheap.first)):
            each.write(folder / site / "first" / name)
    ends = again(folder)
    assert all(isinstance(end, UsageError) and "do not agree on it" in str(end) for end in ends), ends
    assert len(merge(read_ledgers(folder))) == 1


@pytest.mark.parametrize("lost", ["party_1.transcript.jsonl", "opened.npy", ""])
def test_a_site_that_lost_files_goes_on(killed: Path, tmp_path: Path, lost: str) -> None:
    """Without files that say nothing new the run goes on. A site that knows no more that the stage is over asks there,
    and hears from those that have gone on what was opened; no release is made twice."""
    folder = copied(killed, tmp_path)
    path = folder / "1" / "first" / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    ends = again(folder)
    entries = merge(read_ledgers(folder))
    assert len(entries) == 2 and len({(entry.run, entry.release) for entry in entries}) == len(entries)
    assert ends == [None] * len(ends), ends
