"""The fault matrix: every double runs through real parties, and exactly the lines of evidence that should catch it do.

False alarms: 16 tests at 1e-9 a run. A fault is missed with a smaller probability still: the nearest, noise of 0.7
times the scale, is 20 standard deviations away.
"""

import asyncio
import re
import unittest.mock
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.aggregation.party.party import PartyJob, run_party
from dpmpc.cli.verify import command
from dpmpc.errors import UsageError
from dpmpc.mpc.checked.executor import CheckedExecutor
from dpmpc.mpc.shamir_checked.engine import ManyCheckedEngine
from dpmpc.processes.worker import Emit, Log
from dpmpc.verify.audit import check_audit
from dpmpc.verify.canaries import Canaries, canary_plan
from dpmpc.verify.fresh import by_parties
from dpmpc.verify.statistics import check_statistics
from dpmpc.verify.structure import check_structure
from dpmpc.verify.verification import Case, affordable, seconds_of, verify_fresh, verify_run
from tests import faulty
from tests.refusals import refuses

DOCS = Path(__file__).parents[2] / "docs" / "verify.md"


@pytest.mark.slow
@pytest.mark.parametrize("fault", faulty.MATRIX, ids=lambda fault: fault.what)
def test_each_fault_is_caught_by_the_evidence_that_should(fault: faulty.Fault, tmp_path: Path) -> None:
    plan = canary_plan("gaussian", 3, *fault.shape, epsilon=2, delta=1e-3, parties=3, threshold=1)
    canaries = Canaries(plan, 1, fault.vectors)
    outcome = by_parties(plan, canaries, tmp_path / "run", send=fault.send, **fault.role)
    evidence = (
        check_structure(tmp_path / "run"),
        check_statistics([outcome.sample()]),
        check_audit([outcome.trials("MPC")]),
    )
    assert {line.name for line in evidence if not line.holds} == fault.caught_by, [line.failed for line in evidence]


def test_every_line_of_evidence_is_needed() -> None:
    alone = {line for fault in faulty.MATRIX if len(fault.caught_by) == 1 for line in fault.caught_by}
    assert alone == {faulty.STRUCTURE, faulty.STATISTICS, faulty.AUDIT}


def test_the_docs_show_the_matrix() -> None:
    assert faulty.table() in DOCS.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_party_that_changes_its_own_share_ends_the_run(tmp_path: Path) -> None:
    """Shares of one party alone enter the openings of some parties and not of others."""
    plan = canary_plan("gaussian", 2, 4, 3, epsilon=2, delta=1e-3, parties=3, threshold=1)
    with refuses("peer", "release 0"):
        by_parties(plan, Canaries(plan, 1), tmp_path / "run", **faulty.party_with("one_share_changed"))


@pytest.mark.slow
def test_fresh_verification_and_verification_of_its_run(tmp_path: Path) -> None:
    case = Case("laplace", 2, 12, 300, 2.0, 0.0, 3, 1, "discrete")
    told: list[dict[str, Any]] = []
    result = verify_fresh([case], tmp_path, told.append, clear={"laplace": (4, 9000)})
    assert told[0]["text"].startswith("about ") and told[0]["text"].endswith(" s in all")
    assert [e["done"] for e in told if e["event"] == "iteration"] == list(range(1, 301))
    assert result.holds and result.to_json()["false_alarm"] < 1e-6
    assert [evidence.name for evidence in result.evidence] == ["structure", "statistics", "audit"]
    clear = result.to_json()["audit"]["checks"][-1]
    assert 0.6 < clear["found"] <= clear["claimed"]  # the diagonal of 4 coordinates, in 9,000 trials

    run = tmp_path / "laplace_2"
    answer = CliRunner().invoke(command, [str(run), "--structure", "--details"], standalone_mode=False)
    assert answer.return_value == 0 and "structure" in answer.output and (run / "verify.json").exists()
    (run / "party_0.opened.bin").write_bytes(b"")
    text = (run / "party_0.transcript.jsonl").read_text().replace('"event":"add"', '"event":"sum"', 1)
    (run / "party_0.transcript.jsonl").write_text(text)
    answer = CliRunner().invoke(command, [str(run), "--structure"], standalone_mode=False)
    assert answer.return_value == 1 and "FAILS" in answer.output


@pytest.mark.parametrize("arguments", [[], ["somewhere", "--fresh"]])
def test_verify_wants_a_run_or_fresh_releases(arguments: list[str]) -> None:
    answer = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert isinstance(answer.exception, UsageError) and "--fresh" in str(answer.exception)


def test_fresh_releases_do_not_replace_a_run(tmp_path: Path) -> None:
    plan = canary_plan("gaussian", 2, 4, 3, epsilon=2, delta=1e-3, parties=3, threshold=1)
    (tmp_path / "plan.json").write_text('{"data":"hospital"}')
    (tmp_path / "ledger_0.jsonl").write_text("spent\n")
    with refuses("usage", setting="work"):
        by_parties(plan, Canaries(plan, 1), tmp_path)
    assert (tmp_path / "ledger_0.jsonl").exists()


def test_verify_names_a_bad_threshold_and_a_missing_run(tmp_path: Path) -> None:
    answer = CliRunner().invoke(command, ["--fresh", "-T", "2"], standalone_mode=False)
    assert isinstance(answer.exception, UsageError) and "2t < n" in str(answer.exception)
    with refuses("file", "plan.json"):
        verify_run(tmp_path / "nothing", tmp_path, lambda text: None)


def test_slow_backends_make_fewer_values_and_say_how_long_it_takes() -> None:
    fast = Case("gaussian", 10, 64, 1000, 2.0, 1e-3, 3, 1)
    assert affordable(fast) == fast and seconds_of(fast)[0] < 1
    slow = replace(fast, backend="mpyc", sampler="box-muller")
    fewer = affordable(slow)
    assert fewer.releases >= 200 and fewer.dimension >= 8
    assert fewer.releases * fewer.dimension < 5_000 and 20 * seconds_of(fewer)[0] < seconds_of(slow)[0]


class _Wrong(CheckedExecutor):
    """Of party 1: one bit of one AND is wrong."""

    async def layer(self, slots: Any, layer: Any, results: Any) -> Any:
        if self.batch.party == 1 and not self._kept:
            channel = self.batch.channel
            words = channel.words

            def wrong(outgoing: Any, *rest: Any) -> Any:
                channel.words = words  # type: ignore[method-assign]
                for message in outgoing.values():
                    message[0] ^= np.uint64(1)
                return words(outgoing, *rest)

            channel.words = wrong  # type: ignore[method-assign]
        return await super().layer(slots, layer, results)


class _WrongNumbers(ManyCheckedEngine):
    """Of party 1: one summand of one product is wrong."""

    async def _by_kings(self, summands: Any, rho: Any) -> Any:
        if self.party == 1 and not self._products:
            summands = summands.copy()
            summands[0] ^= np.uint64(1)
        return await super()._by_kings(summands, rho)


def cheating_party_of_many(*, job: dict[str, Any], emit: Emit, log: Log) -> None:
    """A party's role; party 1 cheats."""
    with unittest.mock.patch("dpmpc.mpc.shamir_checked.backend.ManyCheckedEngine", _WrongNumbers):
        asyncio.run(run_party(PartyJob.from_json(job), log, emit))


@pytest.mark.slow
def test_a_wrong_product_ends_a_checked_run_of_five(tmp_path: Path) -> None:
    """Before any share of an opening has left; an honest run holds in all eleven checks."""
    plan = canary_plan("gaussian", 2, 4, 3, epsilon=2, delta=1e-3, parties=5, threshold=2, backend="shamir-checked")
    with refuses("cheat", "16777216.0"):
        by_parties(
            plan, Canaries(plan, 1), tmp_path / "bad", role="tests.verify.test_verify_faults:cheating_party_of_many"
        )
    transcripts = [tmp_path / "bad" / f"party_{i}.transcript.jsonl" for i in range(5)]
    assert any('"abort"' in path.read_text() for path in transcripts)
    assert not any('"send"' in path.read_text() for path in transcripts)
    by_parties(plan, Canaries(plan, 1), tmp_path / "good")
    evidence = check_structure(tmp_path / "good")
    assert evidence.holds and evidence.checks[-1].name == "parties were checked" and len(evidence.checks) == 11


def cheating_party(*, job: dict[str, Any], emit: Emit, log: Log) -> None:
    """A party's role; party 1 cheats."""
    with unittest.mock.patch("dpmpc.mpc.checked.executor.CheckedExecutor", _Wrong):
        asyncio.run(run_party(PartyJob.from_json(job), log, emit))


@pytest.mark.slow
def test_a_wrong_bit_in_a_circuit_ends_a_checked_run(tmp_path: Path) -> None:
    """And an honest run of checked parties holds in all eleven checks, unless a verdict in a transcript is changed."""
    plan = canary_plan("gaussian", 2, 4, 3, epsilon=2, delta=1e-3, parties=3, threshold=1, backend="checked")
    with refuses("cheat", 16777216):
        by_parties(plan, Canaries(plan, 1), tmp_path / "bad", role="tests.verify.test_verify_faults:cheating_party")
    transcripts = [tmp_path / "bad" / f"party_{i}.transcript.jsonl" for i in range(3)]
    assert any('"abort"' in path.read_text() for path in transcripts)
    assert not any('"send"' in path.read_text() for path in transcripts)  # no share of an opening has left
    by_parties(plan, Canaries(plan, 1), tmp_path / "good")
    evidence = check_structure(tmp_path / "good")
    assert evidence.holds and evidence.checks[-1].name == "parties were checked" and len(evidence.checks) == 11
    path = tmp_path / "good" / "party_2.transcript.jsonl"
    text = path.read_text()
    assert '"event":"checked"' in text
    path.write_text("".join(line for line in text.splitlines(True) if '"event":"checked"' not in line))
    assert [check.name for check in check_structure(tmp_path / "good").checks if not check.holds] == [
        "parties were checked"
    ]
    path.write_text(re.sub(r'("event":"checked".*"digest":")..', r"\1zz", text))
    assert [check.name for check in check_structure(tmp_path / "good").checks if not check.holds] == [
        "parties were checked"
    ]
