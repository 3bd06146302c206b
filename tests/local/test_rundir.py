"""The run directory: what failed before its first release does not stand in the way; a run in progress does."""

import contextlib
import fcntl
import os
from functools import partial
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.here import Here
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.local import launcher
from dpmpc.local.job import OwnersJob
from dpmpc.local.owner_process import Progress
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.run.folder import alone, prepare
from dpmpc.run.once import unfinished
from tests.refusals import refuses
from tests.runs import dpmpc, own_addresses, small

SMALL = ["train", "--data", "synthetic", "--max-rows", "60", "--dimension", "2", "--owners", "2", "--delta", "1e-3"]
SMALL += ["--no-evaluate", "--iterations", "2", "-M", "3"]


def failed(out: Path) -> None:
    """What a run leaves that could not connect."""
    out.mkdir()
    for name in ("request.json", "plan.json", "owners.log", "party_0.log", "party_0.transcript.jsonl", "history.csv"):
        (out / name).write_text("something")
    for name in ("ledger_0.jsonl", "party_0.opened.bin", "owners.opened.bin"):
        (out / name).touch()


def test_what_failed_before_its_first_release_is_cleared_away(tmp_path: Path) -> None:
    out = tmp_path / "run"
    failed(out)
    prepare(out, overwrite=False, resume=False)
    assert [path.name for path in out.iterdir()] == ["ledger_0.jsonl"]


@pytest.mark.parametrize(
    "name", ["ledger_0.jsonl", "party_0.opened.bin", "owners.opened.bin", "report.json", "mine.txt"]
)
def test_a_release_a_report_or_a_strange_file_is_kept(tmp_path: Path, name: str) -> None:
    out = tmp_path / "run"
    failed(out)
    (out / name).write_text("something")
    before = sorted(out.iterdir())
    with refuses("over", out, setting="out"):
        prepare(out, overwrite=False, resume=False)
    assert sorted(out.iterdir()) == before


@pytest.mark.parametrize(("name", "free"), [("request.json.tmp", True), ("plan.json.tmp", True), ("mine.tmp", False)])
def test_a_half_of_a_first_file_is_nobodys_and_a_strange_one_is_kept(tmp_path: Path, name: str, free: bool) -> None:
    (tmp_path / name).write_text("something")
    for check in (partial(prepare, tmp_path, overwrite=False, resume=False), partial(unfinished, tmp_path, "answers")):
        with contextlib.nullcontext() if free else refuses("over", tmp_path, setting="out"):
            check()
        assert free or (tmp_path / name).read_text() == "something"
    folder = tmp_path / "of a stage"
    folder.mkdir()
    (folder / "plan.json.tmp").touch()
    with refuses("over", tmp_path, setting="out"):
        prepare(tmp_path, overwrite=False, resume=False)


def test_a_plan_that_was_made_ahead_is_kept(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    with refuses("over", tmp_path, setting="out"):
        prepare(tmp_path, overwrite=False, resume=False)


def test_a_command_that_failed_can_be_repeated(tmp_path: Path) -> None:
    with bound_socket() as taken:
        taken.listen()
        failed = dpmpc(*SMALL, "-B", endpoint_of(taken).port, "--out", tmp_path / "run")
        assert failed.returncode == 2 and "must listen" in failed.stderr
    assert dpmpc(*SMALL, "--out", tmp_path / "run").returncode == 0


@pytest.mark.parametrize("who", ["0", "owners"])
def test_a_process_that_waited_in_vain_can_be_started_again(tmp_path: Path, who: str) -> None:
    command = [*SMALL, "-I", who, *own_addresses(3), "--wait", "0.3", "--out", tmp_path / "run"]
    for _ in range(2):
        outcome = dpmpc(*command)
        assert outcome.returncode == 3 and "within 0.3 s" in outcome.stderr, outcome.stderr


@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_a_run_in_progress_is_left_alone(tmp_path: Path, more: list[str]) -> None:
    out = tmp_path / "run"
    failed(out)
    before = sorted(out.iterdir())
    descriptor = os.open(out, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        outcome = dpmpc(*SMALL, "--out", str(out), *more)
        assert outcome.returncode == 2 and "in use" in outcome.stderr
        assert sorted(out.iterdir()) == before
    finally:
        os.close(descriptor)
    with alone(out):  # free again
        pass


@pytest.mark.parametrize("planned", [False, True])
def test_a_run_that_ends_after_its_survey_began_is_carried_on(
    planned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party of its survey, or of its releases, has left: what was spent is not cleared away unasked."""
    out = tmp_path / "run"

    def fails(job: OwnersJob, path: Path, progress: Progress) -> None:
        path.touch()
        (out / "survey").mkdir()
        if planned:
            (out / "plan.json").touch()
        raise PeerError("party 1 has left")

    monkeypatch.setattr(launcher, "run_owners", fails)
    with pytest.raises(PeerError) as ended:
        launcher.train(small(), Here(out=out))
    assert "carry on with resume" in str(ended.value)
    with pytest.raises(UsageError) as again:
        prepare(out, overwrite=False, resume=False)
    assert "carry on with" in owner_text(again.value)
    prepare(out, overwrite=False, resume=True)
    prepare(out, overwrite=True, resume=False)
