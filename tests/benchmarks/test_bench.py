"""The cost suite: formulas against hand counts and real processes, figures against closed forms, comparisons."""

import csv
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import dpmpc
from dpmpc.benchmarks import counts, parties, parties_plot, scale, suite, tables
from dpmpc.benchmarks import result_file as records
from dpmpc.benchmarks.bare import MessageSizes
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.compare import compare, notch
from dpmpc.benchmarks.counts import NETWORKS, NetworkLink, network_seconds
from dpmpc.benchmarks.iteration import PARTS, WARM_UP, check_counts, measure, measure_limit, repetitions, split
from dpmpc.benchmarks.network import Network, named, namespaces
from dpmpc.benchmarks.quartiles import Figure, figure, slope
from dpmpc.benchmarks.relay import Gate
from dpmpc.benchmarks.result_file import Record, Results
from dpmpc.cli.bench import command
from dpmpc.errors import UsageError
from dpmpc.mpc.contract import backend
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.noise.draw import count_draw
from dpmpc.privacy.law import LAWS, sampler_names
from tests.refusals import refuses

LOOPBACK = Network("loopback")
HEADER = 24  # bytes of a frame before its payload, by the wire format's description
BARRIER = 2 * (HEADER + 24)  # of three parties: a token and a number to each other one
SEED = 24  # bytes that stand for the vectors of one of t parties


# -- counts ----------------------------------------------------------------------------------------------------------
def test_counts_of_a_release_by_hand() -> None:
    found = counts.release_counts(BenchCell(dimension=122, owners=100, parties=3))
    assert found.parties_bytes == (BARRIER + HEADER + 8 * 122,) * 3  # one share vector to one successor
    assert found.results_bytes == HEADER + 8 * 123  # the opened vector and a count of bytes
    assert found.inputs_bytes == (HEADER + SEED, *(HEADER + 8 * 122 * 100,) * 2)  # one of three is expanded
    assert found.owners_bytes == sum(found.inputs_bytes)
    assert found.busiest_bytes == HEADER + 8 * 122 * 100 + BARRIER + HEADER + 8 * 122
    assert found.received_bytes == -(-found.owners_bytes // 3) + BARRIER + HEADER + 8 * 122
    assert found.rounds == 2
    assert counts.owner_bytes(BenchCell(parties=5)) == 3 * (HEADER + 8 * 122) + 2 * (HEADER + SEED)
    seven = 6 * (HEADER + 24) + 3 * (HEADER + 8 * 122)  # all others; t = 3 successors
    assert counts.release_counts(BenchCell(parties=7)).parties_bytes == (seven,) * 7
    two = counts.release_counts(BenchCell(parties=2, backend="ot"))
    assert two.parties_bytes == (2 * HEADER + 64 + 8 * 122,) * 2 and two.rounds == 2  # a promise, then salt and share


def test_long_inputs_travel_in_frames_with_consents() -> None:
    m, d, a_frame = 50_000, 122, (1 << 19) // 122
    frames = -(-m // a_frame)
    found = counts.release_counts(BenchCell(dimension=d, owners=m))
    assert found.owners_bytes == 2 * (frames * HEADER + 8 * m * d) + frames * (HEADER + SEED)
    assert found.results_bytes == (frames - 4) * HEADER + HEADER + 8 * (d + 1)
    expanded, *whole = MessageSizes.of(BenchCell(dimension=d, owners=m)).inputs
    assert len(expanded) == frames and sum(expanded) == frames * (HEADER + SEED)
    for inputs in whole:
        assert len(inputs) == frames and sum(inputs) == frames * HEADER + 8 * m * d


@pytest.mark.parametrize("parties", [1, 3, 5, 7])
def test_bare_openings_go_to_t_successors(parties: int) -> None:
    t, message = (parties - 1) // 2, HEADER + 8 * 122
    opening = MessageSizes.of(BenchCell(parties=parties)).opening
    assert len(opening) == 2 * (parties > 1)
    for sent in opening[:1]:
        assert sent == tuple(
            tuple(((i + k) % parties, HEADER + 24) for k in range(1, parties)) for i in range(parties)
        )  # fmt: skip
    for sent in opening[1:]:
        assert sent == tuple(
            tuple(((i + k) % parties, message) for k in range(1, t + 1)) for i in range(parties)
        )  # fmt: skip


class Lopsided:
    """What a backend of two parties counts whose shares differ in size, and of which one opens in two rounds."""

    def threshold(self, parties: int) -> int:
        return 1

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return (16, 8 * owners * dimension)

    def count_barrier(self, said: int, parties: int) -> backend.Counts:
        return backend.Counts()

    def count_opening(self, dimension: int, parties: int, threshold: int) -> backend.Counts:
        return backend.Counts(rounds=2, bytes_sent=(21, 8 * dimension), messages_sent=(2, 1))


def test_counts_are_the_backends_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backend.BACKENDS._loaded, "lopsided", Lopsided())
    cell = BenchCell(dimension=10, owners=4, parties=2, backend="lopsided")
    found = counts.release_counts(cell)
    assert found.parties_bytes == (21 + 2 * HEADER, 80 + HEADER) and found.rounds == 2
    assert found.inputs_bytes == (16 + HEADER, 320 + HEADER)
    assert found.owners_bytes == 336 + 2 * HEADER and counts.owner_bytes(cell) == 16 + 80 + 2 * HEADER
    assert found.received_bytes == -(-(336 + 101 + 5 * HEADER) // 2)
    traffic = MessageSizes.of(cell)
    assert traffic.inputs == ((16 + HEADER,), (320 + HEADER,))
    assert traffic.opening == ((((1, 35),), ((0, 104),)), (((1, 34),), ()))  # 69 bytes in two messages: a round each
    wan = NETWORKS["wan"]
    assert found.busiest_bytes == 320 + HEADER - (-(101 + 3 * HEADER) // 2)
    bytes_in = found.busiest_bytes + found.results_bytes
    assert network_seconds(cell, wan) == pytest.approx((2 + 2) * 0.02 + bytes_in / 12.5e6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        BenchCell(dimension=10, owners=3),
        BenchCell(dimension=7, owners=2, parties=5, pool=False, method="output", law="laplace"),
    ],
    ids=str,
)
def test_real_processes_send_what_the_formula_says(cell: BenchCell) -> None:
    # `measure` raises when any release of any party differs in bytes sent, bytes received or rounds; here the record
    # is held against an AND count and a number of rounds that come from the counting engine by another route.
    measured = measure(cell, LOOPBACK, 4, limit=False)
    assert measured.total.repetitions == 4
    assert measured.counts["rounds"] == 2  # the barrier, and the opening
    assert measured.counts["noise_ands_a_coordinate"] > 100
    assert measured.noise_offline > 0 if cell.pool else measured.noise_offline == 0
    assert 1 << 24 < measured.peak_party < 1 << 30


def _answers(cell: BenchCell, **wrong: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What owners and parties report of one release, and one party with something wrong."""
    one, noise = counts.release_counts(cell), counts.noise_counts(cell, 1)
    parties = []
    for i in range(cell.parties):
        received = one.inputs_bytes[i] + one.parties_bytes[i]
        row = {"to": one.parties_bytes[i], "owners": one.results_bytes, "in": received, "rounds": one.rounds}
        ahead = {"ahead": noise.bytes_by_party[i], "ahead rounds": noise.rounds}
        if i == 1:
            row |= {k: v for k, v in wrong.items() if k in row}
            ahead |= {k: v for k, v in wrong.items() if k in ahead}
        parties.append({"counts": [list(row.values())], "ahead": list(ahead.values())})
    return {"bytes_sent": [one.owners_bytes]}, parties


WRONG = [
    {},
    {"to": 1001},
    {"owners": 0},
    {"in": 98_625},
    {"rounds": 3},
    {"ahead": 7},
    {"ahead rounds": 30},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_count_that_differs_is_refused(wrong: dict[str, int]) -> None:
    owners, parties = _answers(BenchCell(), **wrong)
    if not wrong:
        check_counts(BenchCell(), 1, owners, parties)
        with refuses("failed", 5):
            check_counts(BenchCell(), 1, {"bytes_sent": [5]}, parties)
        return
    with refuses("failed", "dpmpc.benchmarks.counts"):
        check_counts(BenchCell(), 1, owners, parties)


# -- times -----------------------------------------------------------------------------------------------------------
def test_parts_add_up_to_the_owners_time_whatever_the_overlap() -> None:
    rng = np.random.default_rng(1)
    n, releases = 3, 6
    begins = np.arange(releases) * 10.0
    steps = rng.uniform(0.1, 1.0, (n, releases, 8)).cumsum(axis=2)
    times = begins[:, None] + steps
    ends = times.max(axis=(0, 2)) + 0.3
    parties = [{"times": t.tolist(), "adding": rng.uniform(0, 3, releases).tolist()} for t in times]
    parts = split({"begins": begins, "ends": ends, "sharing": rng.uniform(0, 3, releases)}, parties)
    assert tuple(parts) == PARTS
    assert all((values >= 0).all() for values in parts.values())
    np.testing.assert_allclose(sum(parts.values()), ends - begins)


def test_a_stage_ends_when_the_last_party_ended_it() -> None:
    # party 1 collects late, party 0 is late with its ledger: the parts follow the later one each time
    early, late = [0, 1, 2, 3, 4, 10, 11, 12], [0, 5, 6, 7, 8, 9, 13, 14]
    parties = [{"times": [early], "adding": [0.5]}, {"times": [late], "adding": [0.25]}]
    parts = split({"begins": [0.0], "ends": [15.0], "sharing": [1.0]}, parties)
    found = {name: float(values[0]) for name, values in parts.items()}
    assert found == {"share": 1, "network in": 3.75, "aggregate": 0.25, "noise online": 1, "add": 1, "ledger": 2,
                     "open": 4, "out": 2}  # fmt: skip


def test_figures_and_slopes_against_closed_forms() -> None:
    assert figure([4, 1, 3, 2, 5]) == Figure(3, 2, 4, 5)
    sizes = [1e3, 1e4, 1e5]
    exact = slope(sizes, [7 * x**0.8 for x in sizes])
    assert exact.value == pytest.approx(0.8) and exact.low == pytest.approx(0.8) and exact.points == 3
    # log costs 0, 1, 3 at log sizes 0, 1, 2: slope 1.5, residuals 1/6, -1/3, 1/6, standard error sqrt(1/12)
    bent = slope(np.exp([0.0, 1.0, 2.0]).tolist(), np.exp([0.0, 1.0, 3.0]).tolist())
    assert bent.value == pytest.approx(1.5)
    assert bent.high - bent.value == pytest.approx(12.7062 * (1 / 12) ** 0.5, rel=1e-4)


def _results(cost: Any, offline: Any = lambda d: 1e-6 * d) -> Results:
    rows = []
    for d in (1_000, 3_000, 10_000, 30_000, 100_000):
        cell = BenchCell(dimension=d)
        figures = {"without ledger": figure([cost(d)])}
        values = {"noise_offline_s": offline(d)}
        rows.append(Record("iteration", cell.key(), counts.counts_record(cell, 1), figures, values))
    return Results({}, "full", tuple(rows))


def test_growth_worse_than_linear_is_flagged() -> None:
    verdicts = {row["cost"]: row["worse_than_linear"] for row in scale.growth(_results(lambda d: 1e-7 * d**1.2))}
    assert verdicts == {"online": True, "noise ahead": False, "bytes received": False}
    target = next(row for row in scale.targets(_results(lambda d: 1e-7 * d**1.2)) if "coordinate" in row["target"])
    assert target["found"] == pytest.approx(100**0.2) and not target["met"]
    target = next(row for row in scale.targets(_results(lambda d: 1e-7 * d)) if "coordinate" in row["target"])
    assert target["found"] == pytest.approx(1) and target["met"]
    falling = scale.targets(_results(lambda d: 1.0 + 1e-7 * d))
    spread, rise = (row for row in falling if "coordinate" in row["target"])
    assert not spread["met"] and rise["met"] and rise["found"] == pytest.approx(1)


# -- networks --------------------------------------------------------------------------------------------------------
def test_prediction_by_hand() -> None:
    cell, wan = BenchCell(), NETWORKS["wan"]
    bytes_in = HEADER + 97_600 + BARRIER + HEADER + 976
    assert network_seconds(cell, wan) == pytest.approx(2 * 0.04 + (bytes_in + HEADER + 984) / 12.5e6)
    noise = counts.noise_counts(cell, 1)
    online = network_seconds(cell, wan, noise) - network_seconds(cell, wan)
    assert online == pytest.approx(noise.rounds * 0.02 + noise.bytes / 12.5e6)


def test_the_relays_gate_lets_bytes_through_at_its_rate() -> None:
    gate = Gate(1000.0)
    assert gate.pass_through(5.0, 100) == pytest.approx(5.1)
    assert gate.pass_through(5.0, 100) == pytest.approx(5.2)  # behind the first
    assert gate.pass_through(9.0, 100) == pytest.approx(9.1)
    assert Gate(None).pass_through(5.0, 10**9) == 5.0


@pytest.mark.slow
def test_the_relay_delays_a_release_by_two_round_trips() -> None:
    slow = Network("slow", NetworkLink.of(60.0, 100.0), "relay")
    limit = measure_limit(BenchCell(dimension=10, owners=2), slow, 3)
    assert limit.total.median >= 0.1199  # no load of the machine makes it shorter
    assert limit.open.median >= 0.0599


def _namespace_list() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and ip")
def test_namespaces_carry_a_release_and_are_removed() -> None:
    try:
        with namespaces(3, None) as places:
            tag = places.prefixes[0][-1].rsplit("-", 1)[0]
            assert tag in _namespace_list()
            traffic = MessageSizes.of(BenchCell(dimension=10, owners=2)).to_json()
            owners, parties = places.run("dpmpc.benchmarks.bare", {"traffic": traffic, "rounds": 4})
            assert len(owners["seconds"]) == 4 and len(parties) == 3
    except UsageError as error:
        pytest.skip(str(error))
    assert tag not in _namespace_list()


def test_networks_have_names() -> None:
    assert named("loopback") == LOOPBACK
    assert named("wan").how in ("netem", "relay")
    with refuses("choice", "moon"):
        named("moon")


# -- processes -------------------------------------------------------------------------------------------------------
def test_a_failing_process_ends_the_measurement_with_its_cause() -> None:
    with LOOPBACK.places(2) as places, refuses("file"):
        places.run("dpmpc.benchmarks.release", {"plan": "{}"})


def test_a_failing_relay_ends_the_measurement_with_its_cause() -> None:
    traffic = MessageSizes.of(BenchCell(dimension=10, owners=2)).to_json()
    with Network("slow", NetworkLink.of(60.0, 100.0), "relay").places(3) as places:
        (relay,) = places.background
        broken = replace(relay, arguments={**relay.arguments, "routes": [["not a socket", "", 0, 0, 1]]})
        with refuses("failed", "the relay"):
            replace(places, background=(broken,)).run("dpmpc.benchmarks.bare", {"traffic": traffic, "rounds": 4})


def test_no_socket_of_a_measurement_is_left_open() -> None:
    for network in (LOOPBACK, Network("slow", NetworkLink.of(60.0, 100.0), "relay")):
        with network.places(3) as places:
            sockets = [s for pair in places.sockets for s in pair]
            sockets += [s for job in places.background for s in job.sockets]
            assert len({s.getsockname() for s in sockets}) == (6 if network is LOOPBACK else 6 + 3 + 3)
        assert all(s.fileno() == -1 for s in sockets)


# -- result files ----------------------------------------------------------------------------------------------------
def _row(seconds: Figure, limit: float = 1.0, **changed: int) -> Record:
    cell = BenchCell()
    figures = {"total": seconds, "without ledger": seconds, "limit": Figure(limit, limit, limit, 9)}
    values = {"noise_offline_s": 1.0}
    return Record("iteration", cell.key(), counts.counts_record(cell, 1) | changed, figures, values)


def test_comparison_finds_counts_exactly_and_times_beyond_their_noise() -> None:
    machine = {"processor": "x", "cores": 2, "system": "s"}
    base = Figure(1.0, 0.9, 1.1, 100)  # notch +- 0.0314
    assert notch(base) == pytest.approx((0.9686, 1.0314))

    def changes(row: Record) -> list[tuple[str, str]]:
        found = compare(Results(machine, "quick", (_row(base),)), Results(machine, "quick", (row,)))
        return [(c.name, c.verdict) for c in found.changes]

    assert changes(_row(base)) == []
    assert changes(_row(base, bytes_owners=292_873)) == [("bytes_owners", "worse")]  # one byte more
    assert changes(_row(base, rounds=0)) == [("rounds", "better")]
    assert changes(_row(base, new_kind=7)) == []  # nobody counted it before
    found = compare(Results(machine, "quick", (_row(base, old_kind=7),)), Results(machine, "quick", (_row(base),)))
    assert [(c.name, c.old, c.new) for c in found.changes] == [("old_kind", 7, None)]
    assert changes(_row(Figure(1.04, 0.94, 1.14, 100))) == []  # notches overlap
    assert changes(_row(Figure(1.3, 1.2, 1.4, 100))) == [("total", "worse"), ("without ledger", "worse")]
    assert changes(_row(Figure(0.7, 0.6, 0.8, 100))) == [("total", "better"), ("without ledger", "better")]
    assert changes(_row(Figure(1.3, 0.9, 1.7, 9))) == []  # too few, too scattered
    assert changes(_row(Figure(1.3, 1.2, 1.4, 100), limit=1.3)) == []  # the machine was slower
    other = Results({**machine, "cores": 64}, "quick", (_row(base),))
    assert not compare(Results(machine, "quick", ()), other).same_machine


def test_result_files_come_back_as_written(tmp_path: Path) -> None:
    results = suite.results(True, lambda: [_row(Figure(1, 1, 2, 3))])
    path = tmp_path / "r.json"
    records.write_json(results, path)
    assert records.read(path) == results
    assert {"commit", "versions", "processor", "kernels", "cores", "load", "load_after"} <= results.machine.keys()
    records.write_csv(results, tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["dimension"], row["total.median"], row["bytes_owners"]) == ("122", "1", "195296")
    path.write_text('{"schema": "other"}')
    with refuses("file"):
        records.read(path)


def test_units_for_people() -> None:
    from dpmpc.benchmarks.plot import seconds

    assert [seconds(x) for x in (3.0, 0.0123, 4.5e-6)] == ["3 s", "12.3 ms", "4.5 µs"]
    assert [tables.size(x) for x in (216, 2_008, 48.8e6)] == ["216 B", "2.01 kB", "48.8 MB"]


# -- the command -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_command_measures_writes_plots_and_compares(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = CliRunner()
    file = tmp_path / "r.json"
    done = run.invoke(
        command,
        [
            "iteration",
            "-d",
            "10,20",
            "-m",
            "2",
            "--rtt",
            "40",
            "--bandwidth",
            "100",
            "--out",
            str(file),
            "--csv",
            str(tmp_path / "r.csv"),
        ],
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    row = json.loads(file.read_text())["records"][0]
    assert row["counts"]["bytes_party_to_parties"] == BARRIER + HEADER + 80
    local = row["seconds"]["total"]["median"]
    assert row["values"]["predicted_s"] == pytest.approx(local + 0.08, abs=1e-3)  # four half round trips
    assert row["seconds"]["limit"]["repetitions"] == row["seconds"]["total"]["repetitions"] >= 5
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 3
    same = run.invoke(command, ["compare", str(file), str(file)])
    assert same.exit_code == 0 and "2 cells in both: 0 figures better, 0 worse" in same.output
    results = records.read(file)
    for name, cells in (("growth", [BenchCell(dimension=d) for d in (10, 122, 1000)]), ("breakdown", [BenchCell()])):
        rows = tuple(replace(results.records[0], key=cell.key()) for cell in cells)
        records.write_json(replace(results, records=rows), file)
        drawn = run.invoke(command, ["plot", str(file), "--out", str(tmp_path)], catch_exceptions=False)
        assert drawn.exit_code == 0
        assert (tmp_path / f"r-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_have_suffixes() -> None:
    option = next(p for p in command.commands["iteration"].params if p.name == "dimensions")
    assert option.process_value(click.Context(command), "1M,20k,3") == [1_000_000, 20_000, 3]
    for wrong in ("1m", "1kk", "k", "1.5k", "", "1,,2"):
        with pytest.raises(click.BadParameter, match="whole numbers separated by commas"):
            option.process_value(click.Context(command), wrong)


def test_laws_samplers_and_backends_are_those_installed() -> None:
    for name in ("iteration", "noise"):
        params = {p.name: p for p in command.commands[name].params}
        assert params["law"].opts == ["--law", "--noise"]
        for option, names in (("law", LAWS.names()), ("sampler", sampler_names()), ("backend", BACKENDS.names())):
            assert tuple(params[option].type.choices) == names  # type: ignore[attr-defined]
    assert suite.cross(sampler="log-laplace")[0] == BenchCell(law="laplace", sampler="log-laplace")
    assert suite.cross(law="laplace", method="output")[0] == BenchCell(method="output", law="laplace", pool=False)


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    run = CliRunner()
    assert "such as 10,122,1k" in run.invoke(command, ["iteration", "-d", "ten"]).output
    assert "from 1 on; got 0" in run.invoke(command, ["iteration", "-m", "0"]).output
    with refuses("missing"):
        run.invoke(command, ["iteration", "--rtt", "4"], standalone_mode=False, catch_exceptions=False)
    with refuses("path"):
        run.invoke(command, ["plot", str(tmp_path / "none.json")], standalone_mode=False, catch_exceptions=False)


def test_the_profiles_hold_the_cells_that_the_targets_speak_of() -> None:
    full, quick = suite.cells(False), suite.cells(True)
    for cell in (
        BenchCell(),
        BenchCell(owners=50_000),
        BenchCell(dimension=100_000),
        BenchCell(dimension=1_000),
        BenchCell(pool=False),
    ):
        assert cell in full
    assert BenchCell() in quick
    assert {c.parties for c in full} == {2, 3, 5, 7} and {c.network for c in full} == {"loopback", "lan", "wan"}
    assert {c.dimension for c in full} == {200, *suite.DIMENSIONS} and {c.owners for c in full} == set(suite.OWNERS)
    assert len(full) == len(set(full))
    assert set(suite.scale_cells(False)) >= {BenchCell(dimension=100_000), BenchCell(owners=50_000)}


def test_a_release_over_a_slow_network_is_measured_less_often() -> None:
    """150 of them took a minute a cell."""
    assert repetitions(BenchCell(network="wan"), False) == 40 < repetitions(BenchCell(network="lan"), False)


def test_the_page_on_cost_shows_the_committed_results() -> None:
    """And what was counted then is what the formulas say now, of results of this version."""
    committed = records.read(Path(__file__).parents[2] / "benchmarks" / "results" / "full.json")
    cells = committed.find("iteration")
    assert len(cells) > 60  # tests/test_site.py holds the page against the file
    if committed.machine["versions"]["dpmpc"] != dpmpc.__version__:
        return  # which the page says
    for record in cells:
        cell, now = BenchCell(**record.key), counts.release_counts(BenchCell(**record.key))
        assert (record.counts["bytes_party_to_parties"],) * cell.parties == now.parties_bytes, record.title()
        assert record.counts["bytes_owners"] == now.owners_bytes, record.title()
    for record in cells[::9]:
        cell = BenchCell(**record.key)
        assert record.counts == counts.counts_record(cell, WARM_UP + repetitions(cell, False)), record.title()


def test_the_pages_on_many_parties_show_the_committed_results() -> None:
    """And what was counted then is what the backends count now."""
    root = Path(__file__).parents[2]
    committed = records.read(root / "benchmarks" / "results" / "parties.json")
    table = parties_plot.rows(committed.records)
    assert tables.markdown(table) in (root / "docs" / "many-parties.md").read_text(encoding="utf-8")
    assert {r.key["parties"] for r in committed.records} == set(parties.NUMBERS)
    assert {r.key["network"] for r in committed.records} == {"loopback", "lan", "wan"}
    sampler = parties.Draw("shamir", "gaussian", 3, 1).sampler
    for record in committed.records:
        key = record.key
        now = count_draw(BACKENDS[key["backend"]], sampler, key["samples"], key["parties"], key["threshold"])
        sent = max(now.bytes_with_headers(HEADER)) / key["samples"]
        assert (record.counts["exchanges"], record.counts["bytes_a_sample"]) == (now.rounds, sent), record.title()


def test_replicated_sharing_is_measured_where_it_can_be() -> None:
    rows = parties.draws((3, 7, 16), False)
    local = [(d.parties, d.backend) for d in rows if d.network == "loopback"]
    many, few = ["shamir", "shamir-checked"], {3: ["sharing", "checked"], 7: ["sharing"], 16: []}
    assert local == [(n, each) for n in (3, 7, 16) for each in (*many, *few[n])]
    assert [d.parties for d in rows if d.network == "wan"] == [3, 7, 16]


@pytest.mark.slow
def test_noise_is_measured_against_the_number_of_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    few = [parties.Draw("shamir", "gaussian", 3, 200, repetitions=1), parties.Draw("sharing", "gaussian", 3, 200)]
    few.append(parties.Draw("shamir", "laplace", 4, 200, "lan", 1))
    monkeypatch.setattr(parties, "draws", lambda *_: few)
    done = CliRunner().invoke(
        command, ["parties", "-M", "3", "--png", str(tmp_path / "p.png"), "--out", str(tmp_path / "p.json")],
        catch_exceptions=False,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    found = records.read(tmp_path / "p.json").records
    assert [(r.key["backend"], r.key["network"]) for r in found] == [
        ("shamir", "loopback"), ("sharing", "loopback"), ("shamir", "lan")
    ]  # fmt: skip
    assert all(r.values["samples_a_second"] > 0 and r.counts["exchanges"] > 9 for r in found)
    refused = CliRunner().invoke(command, ["parties", "-M", "33"])
    assert refused.exit_code and "up to 32; got 33" in str(refused.exception)
