"""Two sites of each country's habits: what nobody knows of their columns is surveyed over machines, and each site maps
its own file by the plan that follows, every field read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.stages import after_first, noise_of
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.intake import staging as holding
from dpmpc.intake.table import Table
from dpmpc.learning.survey import Survey
from dpmpc.local.named_records import load_owner
from dpmpc.planning.request import Request
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Schema
from tests.intake.abroad import ABROAD
from tests.intake.exports import EXPORTS, GERMAN, JAPANESE, Export

pytestmark = pytest.mark.usefixtures("small_tables")

EACH, COLUMNS = 400, 3  # of each kind


@pytest.mark.slow
@pytest.mark.parametrize("export", [*EXPORTS, *ABROAD], ids=lambda e: e.name)
def test_sites_with_the_habits_of_a_country_are_surveyed_and_read(export: Export, tmp_path: Path) -> None:
    """Noise makes no column of every record vanish: its counts are some 27 deviations of it."""
    files = []
    for site in range(2):
        (tmp_path / str(site)).mkdir()
        files.append(export.write(tmp_path / str(site), EACH, seed=site + 1))
    kinds = {
        k: [name for name, kind in export.kinds.items() if kind == k] for k in ("number", "date", "time", "category")
    }
    features = tuple(name for some in kinds.values() for name in some[:COLUMNS])
    low, high = export.classes
    draft = Schema((), Labels(export.target, (high,), (low,)), unknown=features)
    asked: dict[str, Any] = {"owner_sizes": (EACH, EACH), "epsilon": 22.0, "delta": 1e-5}
    asked |= {"iterations": 2, "step": 1.0, "basis": "linear", "method": "gradient"}
    request = Request(schema="schema.json", evaluate=False, test_fraction=0.0, data_id=export.name, **asked)
    plan, _ = plan_of_machines(request, draft, (EACH, EACH), complete=True)
    total = np.zeros(plan.first.dimension)
    for path in files:
        with opened(CsvFile(path), spelling=export.spelling) as (table, _):
            (mean,) = plan.first.source.means(table, np.zeros(EACH, dtype=np.int64), (EACH,))
            assert not table.run("SELECT 1 FROM duckdb_tables() WHERE table_name = 'briefly'")
        total += mean[0] * EACH
    noise = np.random.default_rng(1).normal(0, noise_of(plan.first), len(total))
    after = after_first(plan, np.rint((total + noise) / plan.first.grid.step))
    assert after.schema is not None
    found = Schema.from_json(after.schema)
    numbers = {*kinds["number"], *kinds["date"], *kinds["time"]} & {*features}
    columns = {column.name: column for column in found.columns}
    assert numbers <= columns.keys()
    assert all(columns[name].number for name in numbers)  # type: ignore[union-attr]
    for site, path in enumerate(files):
        mine = Request(csv=str(path), spelling=export.spelling, planned=True, evaluate=False)
        data = load_owner(mine, after, site)
        assert (data.n, data.d) == (EACH, len(found.feature_names)) and not any(each.unread for each in data.counts)
        spread = np.asarray(data.X).std(axis=0)
        of = [k for k, name in enumerate(found.feature_names) if name in numbers]
        assert (spread[of] > 0).all()


@pytest.mark.parametrize("export", [GERMAN, JAPANESE], ids=lambda e: e.name)
def test_a_survey_of_few_records_holds_them_and_adds_up_the_same(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit what it adds up of the file as it stands."""
    file, names = export.write(tmp_path, 90), tuple(name for name in export.columns if name)
    survey = Survey((), texts=names)
    queries, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: queries.append(query) or run(self, query))

    def means() -> tuple[bytes, int]:
        queries.clear()
        with opened(CsvFile(file), spelling=export.spelling) as (table, _):
            (mean,) = survey.means(table, np.arange(90) // 45, (45, 45))
        return mean.tobytes(), sum("CREATE OR REPLACE TEMP TABLE briefly" in query for query in queries)

    held = means()
    monkeypatch.setattr(holding, "_FEW", 89)
    plain = means()
    assert held[0] == plain[0] and held[1] > 0 == plain[1]
