"""`dpmpc account` and `dpmpc budget` as a user calls them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dpmpc.cli.main import named
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity

account = named("account")
budget = named("budget")

RUN = "--owners 100 --smallest 500"
ISSUE = f"--epsilon 0.5 --delta 1e-3 --iterations 100 {RUN} --method gradient"


def ask(arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(account, [*arguments.split(), "--json"])
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.output)
    return answer


def test_a_promise_of_persons_says_how_many_records_of_each_are_kept() -> None:
    of_persons = f"{ISSUE} --neighbours person"
    said = CliRunner().invoke(account, of_persons.split())
    assert isinstance(said.exception, UsageError) and "add person_rows=K" in str(said.exception)
    # K places of 500 at each of 100 owners with weight 1/100, of which each moves a mean as a replaced record does
    one, five = ask(ISSUE)["sensitivity"]["l2"], ask(f"{of_persons} --person-rows 5")["sensitivity"]["l2"]
    assert five == pytest.approx(5 * 100 * one)
    assert ask(f"{of_persons} --person-rows 5 --person-owners 2")["sensitivity"]["l2"] == pytest.approx(5 * 2 * one)
    for wrong, why in ((f"{ISSUE} --person-rows 5", "add neighbours=person"),
                       (f"{of_persons} --person-rows 5 --person-owners 101", "got 101 of 100")):  # fmt: skip
        said = CliRunner().invoke(account, wrong.split())
        assert isinstance(said.exception, UsageError) and why in str(said.exception)


def test_the_command_of_the_issue_prints_every_calibration_and_every_method() -> None:
    result = CliRunner().invoke(account, ISSUE.split())
    assert result.exit_code == 0
    for text in ("0.0018441", "0.0030264", "0.0029735", "0.50905", "0.28251", "replaced"):
        assert text in result.output
    names = ["Pathak", "Local Out P", "Local Obj P", "Local Grad P", "MPC Out P", "MPC Grad P", "Rajkumar and Agarwal"]
    for name in names:
        assert name in result.output
    assert "warning: delta = 0.001 is not below 1/n" in result.output
    answer = ask(ISSUE)
    assert answer["solved_for"] == "sigma" and answer["scale"] == pytest.approx(1.8441e-3, abs=5e-8)
    assert [row["calibration"] for row in answer["calibrations"]] == ["tight", "zcdp", "paper"]
    assert set(names) <= {row["name"] for row in answer["literature"]}


def test_the_tables_fit_into_their_width_and_say_how_loose_a_bound_is() -> None:
    shown = CliRunner().invoke(account, ISSUE.split()).output
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 150
    for row in ask(ISSUE)["literature"]:
        line = next(line for line in shown.splitlines() if line.startswith(f"{row['name']} ["))
        cells = line.split()
        assert f"{row['epsilon']:.5g}" in cells and f"{row['delta']:.5g}" in cells and f"{row['scale']:.5g}" in cells
        assert row["law"] in cells and row["formula"] in line and line.rstrip().endswith(row["published"])
        claim = ", with Laplace noise at delta 0, with Gaussian at 0.001"
        assert f"all claim epsilon 0.5{claim}" in shown and row["claim"] in ("(0.5, 0)", "(0.5, 0.001)")
    poster = "--epsilon 0.5 --delta 1e-3 --iterations 1500 --owners 1000 --smallest 50 --dimension 122 --lam 0.001"
    (bound,) = (row for row in ask(poster)["risk"] if "equation (11)" in row["name"])
    assert bound["value"] == pytest.approx(8.38, abs=0.005) and "0.004 where this says 8.38" in bound["note"]


def test_every_direction_inverts_the_others() -> None:
    sigma = ask(ISSUE)["scale"]
    for unknown, given, expected in (
        ("epsilon", f"--delta 1e-3 --iterations 100 --sigma {sigma!r}", 0.5),
        ("delta", f"--epsilon 0.5 --iterations 100 --sigma {sigma!r}", 1e-3),
        ("iterations", f"--epsilon 0.5 --delta 1e-3 --sigma {sigma!r}", 100),
    ):
        answer = ask(f"{given} {RUN} --no-literature")
        assert answer["solved_for"] == unknown and "literature" not in answer
        assert answer[unknown] == pytest.approx(expected, rel=1e-9)
        assert all(row["holds"] for row in answer["calibrations"])


def test_the_printed_formula_is_marked_where_it_fails() -> None:
    output = (
        CliRunner().invoke(account, f"--epsilon 8 --delta 1e-3 --iterations 5 {RUN} --no-literature".split()).output
    )
    assert "NO" in next(line for line in output.splitlines() if line.startswith("paper"))
    rows = ask(f"--epsilon 0.5 --method output {RUN} --dimension 49")["calibrations"]
    assert [(row["calibration"], row["holds"]) for row in rows] == [
        ("l1", True),
        ("paper", False),
        ("l2-density", True),
    ]
    assert rows[1]["true_epsilon"] == pytest.approx(7 * 0.5)


def test_laplace_inverts_too() -> None:
    b = ask(f"--epsilon 0.5 --method output {RUN}")["scale"]
    assert b == pytest.approx(math.sqrt(122) * 2 / (100 * 500 * 0.01) / 0.5)
    assert ask(f"--scale {b!r} --method output {RUN}")["epsilon"] == pytest.approx(0.5)
    many = ask(f"--scale {b!r} --epsilon 5 --method output {RUN}")
    assert (many["solved_for"], many["iterations"]) == ("iterations", 10)
    assert "literature" in ask(f"--epsilon 0.5 --delta 1e-6 --method output {RUN}")


def test_output_with_gaussian_noise_size_weights_and_solver_certificate() -> None:
    answer = ask(
        "--epsilon 1 --delta 1e-6 --method output --law gaussian --owners 4 --smallest 10 --total 1000 --weights size "
        "--solver-tolerance 1e-4 --lam 0.1"
    )
    expected = 2 / (1000 * 0.1) + 330 / 1000 * 2 * 1e-4 / 0.1
    assert answer["sensitivity"]["l2"] == pytest.approx(expected)
    assert answer["scale"] == pytest.approx(gaussian_scale(1, 1e-6, expected))
    assert answer["iterations"] == 1


def test_the_grid_counts_everything() -> None:
    options = "--grid-bits 30 --security-bits 40 --sampler-tv 1e-18 --no-literature"
    answer = ask(f"{ISSUE} {options}")
    grid = answer["grid"]
    assert answer["sensitivity"]["parts"]["rounding"] == pytest.approx(math.sqrt(122) * 2.0**-30 / 100)
    assert grid["step"] == 2.0**-30 / 100
    assert grid["sensitivity_steps"] == pytest.approx(4e-5 * 100 * 2**30 + math.sqrt(122))
    assert grid["delta"] == pytest.approx(1e-3, rel=1e-9) and grid["epsilon"] == pytest.approx(0.5, rel=1e-12)
    assert grid["delta_parts"]["mpc"] == pytest.approx((1 + math.exp(0.5)) * 2.0**-40)
    assert grid["scale"] == pytest.approx(answer["scale"], rel=1e-7)
    inverse = ask(f"--sigma {grid['scale']!r} --delta 1e-3 --iterations 100 {RUN} {options}")["grid"]
    assert inverse["epsilon"] == pytest.approx(0.5, rel=1e-6)
    laplace = ask(f"--epsilon 0.5 --method output {RUN} {options}")["grid"]
    assert laplace["epsilon"] == pytest.approx(0.5, rel=1e-6) and 0 < laplace["delta"] < 1e-11
    assert "On the grid" in CliRunner().invoke(account, f"{ISSUE} {options}".split()).output
    perfect = ask(f"{ISSUE} --grid-bits 30 --no-literature")["grid"]  # no MPC, or one that is perfectly secure
    assert perfect["delta_parts"]["mpc"] == perfect["delta_parts"]["sampler"] == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        f"--epsilon 0 --delta 1e-3 --iterations 100 {RUN}",
        f"--epsilon -1 --delta 1e-3 --iterations 100 {RUN}",
        f"--epsilon 0.5 --delta 1 --iterations 100 {RUN}",
        f"--epsilon 0.5 --delta 0 --iterations 100 {RUN}",
        f"--epsilon nan --delta 1e-3 --iterations 100 {RUN}",
        f"--epsilon 0.5 --delta 1e-3 --iterations 0 {RUN}",
        f"--epsilon 0.5 --delta 1e-3 {RUN}",
        f"--epsilon 0.5 {RUN}",
        f"{ISSUE} --sigma 1",
        f"--sigma 0 --delta 1e-3 --iterations 100 {RUN}",
        "--epsilon 0.5 --delta 1e-3 --iterations 100 --owners 0 --smallest 5",
        "--epsilon 0.5 --delta 1e-3 --iterations 100 --owners 5 --smallest 0",
        "--epsilon 0.5 --delta 1e-3 --iterations 100 --owners 5 --smallest 10 --total 49",
        "--epsilon 0.5 --delta 1e-3 --iterations 100 --owners 1 --smallest 10 --total 11",
        f"{ISSUE} --dimension 0",
        f"{ISSUE} --G 0",
        f"--epsilon 0.5 --method output {RUN} --lam 0",
        f"{ISSUE} --grid-bits 20 --security-bits 2",
        f"{ISSUE} --grid-bits 30 --security-bits -5",
        f"{ISSUE} --grid-bits 30 --security-bits -2000",
        f"{ISSUE} --grid-bits 30 --sampler-tv -1",
        f"--sigma 0.01 --iterations 0 --delta 1e-3 {RUN}",
        f"--epsilon 0.5 --method output --delta 2 {RUN}",
    ],
)
def test_bad_input_is_one_line_that_names_the_rule_the_value_and_the_way_out(arguments: str) -> None:
    result = CliRunner().invoke(account, arguments.split())
    assert isinstance(result.exception, UsageError) and result.exception.exit_code == 2
    message = str(result.exception)
    assert "\n" not in message and message.count(";") == 2, message


def test_wrong_types_are_refused_by_click_with_code_2() -> None:
    for arguments in (f"--epsilon x {RUN}", "--epsilon 1", f"--method both {RUN}"):
        assert CliRunner().invoke(account, arguments.split()).exit_code == 2


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    sigma = gaussian_scale(1.0, 1e-5, 0.5, 50)
    mechanism = Mechanism("gaussian", False, sigma, Sensitivity.flat(0.5), 3)
    for run in ("a", "b"):
        for party in range(3):
            with Ledger(tmp_path / run / f"ledger_{party}.jsonl") as ledger:
                for k in range(20):
                    data = ("hospital-1", "hospital-2") if run == "a" else ("hospital-2",)
                    ledger.append(Entry(run, k, data, mechanism, planned=50, epsilon=1.0, delta=1e-5))
    return tmp_path


def test_budget_sums_runs_on_the_same_data_once_each(runs: Path) -> None:
    result = CliRunner().invoke(budget, [str(runs), "--json", "--budget", "1,1e-5"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    rows = {row["data"]: row for row in answer["data"]}
    assert (rows["hospital-1"]["runs"], rows["hospital-1"]["releases"]) == (1, 20)
    assert (rows["hospital-2"]["runs"], rows["hospital-2"]["releases"]) == (2, 40)
    assert (rows["hospital-1"]["releases_left"], rows["hospital-2"]["releases_left"]) == (30, 10)
    assert all(row["within_budget"] for row in rows.values()) and len(answer["ledgers"]) == 6
    text = CliRunner().invoke(budget, [str(runs), "--data", "hospital-2"]).output
    assert "hospital-2" in text and "hospital-1" not in text


def test_an_exceeded_budget_ends_with_code_1(runs: Path) -> None:
    result = CliRunner().invoke(budget, [str(runs), "--budget", "0.7,1e-5"])
    assert isinstance(result.exception, DpmpcError) and result.exception.exit_code == 1
    assert "hospital-2" in str(result.exception) and "hospital-1" not in str(result.exception)
    result = CliRunner().invoke(budget, [str(runs), "--budget", "0.7,0"])
    assert isinstance(result.exception, DpmpcError) and "inf" in result.output


def test_torn_lines_are_reported(runs: Path) -> None:
    for party in range(3):
        with (runs / "a" / f"ledger_{party}.jsonl").open("ab") as stream:
            stream.write(b'{"v":1')
    result = CliRunner().invoke(budget, [str(runs)])
    assert "3 torn lines" in result.output
    (runs / "c").mkdir()
    (runs / "c" / "ledger_0.jsonl").write_bytes(b'{"v":1')
    assert "1 of them could not be priced" in CliRunner().invoke(budget, [str(runs)]).output


@pytest.mark.parametrize(
    "arguments",
    [["--budget", "1"], ["--budget", "0,1e-5"], ["--budget", "1,2"], ["--delta", "0"], ["--data", "nobody"]],
)
def test_bad_budget_input(runs: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(budget, [str(runs), *arguments])
    assert isinstance(result.exception, UsageError) and str(result.exception).count(";") == 2


def test_no_ledger(tmp_path: Path) -> None:
    assert isinstance(CliRunner().invoke(budget, [str(tmp_path)]).exception, UsageError)
    assert isinstance(CliRunner().invoke(budget, [str(tmp_path / "none")]).exception, UsageError)
