"""Two versions by turns: the page shows the committed file, and what is counted there is what the backends count."""

import json
from pathlib import Path

import pytest

from dpmpc.benchmarks.studies import programs
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import count_draw
from dpmpc.privacy.law import LAWS

ROOT = Path(__file__).parents[2]
RESULTS = programs.cases(json.loads((ROOT / "benchmarks/results/turns-avx2.json").read_text(encoding="utf-8")))


def test_the_page_shows_the_committed_ratios() -> None:
    page = (ROOT / "docs" / "notes" / "cost.md").read_text(encoding="utf-8")
    assert programs.table(RESULTS) in page
    assert set(RESULTS) <= set(programs.CASES) and all(len(r["ratios"]["cpu"]) == 5 for r in RESULTS.values())


@pytest.mark.parametrize("name", RESULTS)
def test_what_was_counted_is_what_is_counted(name: str) -> None:
    case, new = RESULTS[name]["case"], RESULTS[name]["new"]
    backend, n = BACKENDS[case["backend"]], case["parties"]
    sampler = LAWS[case["law"]].sampler(case["sampler"], programs.SCALE)
    counted = count_draw(backend, sampler, case["count"], n, backend.threshold(n))
    sent = counted.bytes_with_headers(HEADER.size)
    assert new["rounds"] == counted.rounds and new["bytes"] == pytest.approx(sum(sent) / n, rel=1e-12)
