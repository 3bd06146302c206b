"""`dpmpc bench` for two servers: what is measured beside what, and the table that is printed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dpmpc.benchmarks import noise, parties, suite
from dpmpc.benchmarks import result_file as records
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.quartiles import Figure
from dpmpc.benchmarks.result_file import Record
from dpmpc.benchmarks.studies import two_servers
from dpmpc.cli.bench import command
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import count_draw
from tests.refusals import refuses

PUBLISHED = "m = 100, d = 200, the sum alone: 1.06 s (Tian et al. 2016"
TIMES = Figure(0.1, 0.1, 0.1, 1)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int, str]]:
    """(law, backend, parties, network) of what would be measured."""
    found: list[tuple[str, str, int, str]] = []

    def measure_sampler(law: str, name: str, n: int, count: int, times: int, backend: str) -> noise.NoiseCost:
        found.append((law, backend, n, "loopback"))
        return noise.NoiseCost(law, name, backend, n, count, TIMES, 12, 800 * count, {"ands": 183})

    def measure_draw(what: parties.Draw) -> Record:
        found.append((what.law, what.backend, what.parties, what.network))
        return Record("parties", {}, {}, {"draw": TIMES, "few": TIMES})

    monkeypatch.setattr(noise, "measure_sampler", measure_sampler)
    monkeypatch.setattr(noise, "measure_draw", measure_draw)
    return found


def said(*words: str) -> str:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("backend", ["ot", "garbled"])
def test_noise_of_two_servers_is_measured_beside_three_parties(backend: str, drawn: list[tuple[str, ...]]) -> None:
    text = said("noise", "--backend", backend, "--no-plain", "--network", "loopback,lan,wan")
    due = {
        (law, each, n, network)
        for law in suite.EXACT
        for each, n in ((backend, 2), ("sharing", 3))
        for network in ("loopback", "lan", "wan")
    }
    assert set(drawn) == due
    assert PUBLISHED in text and f"discrete (gaussian, {backend}, wan)" in text and "(laplace, lan)" in text


def test_the_link_names_the_backend_and_parties_that_are_named_stay_alone(drawn: list[tuple[str, ...]]) -> None:
    said("noise", "--link", "wan", "--no-plain", "--law", "gaussian", "-M", "2")
    assert set(drawn) == {("gaussian", "ot-k8", 2, "loopback")}
    with refuses("together", "backend=garbled", setting="link"):
        said("noise", "--link", "wan", "--backend", "garbled")
    with refuses("usage", "--sampler"):
        said("noise", "--sampler", "box-muller", "--network", "lan")
    refused = CliRunner().invoke(command, ["noise", "--network", "lan,moon"])
    assert refused.exit_code == 2 and "takes loopback, lan, wan, separated by commas; got 'moon'" in refused.output


@pytest.mark.parametrize("backend", ["ot", "garbled"])
def test_releases_of_two_servers_are_measured_beside_three_parties(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[BenchCell] = []

    def run_cells(cells: Sequence[BenchCell], *_: Any) -> list[Record]:
        asked.extend(cells)
        raise UsageError("enough")

    monkeypatch.setattr(suite, "run_cells", run_cells)
    with refuses("usage", "enough"):
        said("iteration", "-d", "122,200", "--backend", backend, "--network", "loopback,wan")
    assert asked == [
        BenchCell(dimension=d, parties=n, backend=each, network=network)
        for network in ("loopback", "wan")
        for n, each in ((2, backend), (3, "sharing"))
        for d in (122, 200)
    ]


def test_the_page_on_cost_shows_the_committed_results() -> None:
    """And what was counted then is what the backends count now."""
    root = Path(__file__).parents[2]
    committed = records.read(root / "benchmarks" / "results" / "two-servers.json")
    assert two_servers.page(committed) in (root / "docs" / "cost.md").read_text(encoding="utf-8")
    assert {BenchCell(**r.key) for r in committed.find("iteration")} == set(two_servers.cells())
    drawn = committed.find("noise")
    assert {(r.key["backend"], r.key["parties"]) for r in drawn} == set(two_servers.WHO)
    sampler = parties.Draw("ot", "gaussian", 2, 1).sampler
    for record in drawn:
        key = record.key
        entry = BACKENDS[key["backend"]]
        now = count_draw(entry, sampler, key["count"], key["parties"], entry.threshold(key["parties"]))
        sent = max(now.bytes_with_headers(HEADER.size)) / key["count"]
        assert (record.counts["rounds"], record.counts["bytes_a_sample"]) == (now.rounds, sent), record.title()


@pytest.mark.slow
def test_a_draw_of_two_servers_over_a_line_is_measured() -> None:
    few, many = noise.measure_over("lan", "gaussian", 2, 200, 1, "ot")
    assert (few.count, many.count, few.network) == (parties.FEW, 200, "lan")
    assert few.rounds == 14 and many.bytes > few.bytes
