"""What goes wrong: bad input, ports, processes that die or never come. One line, an exit code, no process left."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from tests.refusals import refuses
from tests.runs import (
    HANG,
    alive,
    children_of,
    dpmpc,
    errors_of,
    own_addresses,
    rows,
    run,
    small,
    started,
    wait_until,
)

SMALL_RUN = "train --data synthetic --max-rows 100 --dimension 3 --owners 2 --delta 1e-3 --no-evaluate".split()
LONG = [*SMALL_RUN, *"--iterations 100000 -M 3".split()]

BAD = [
    (["--csv", "nowhere.csv", "--target", "y", "--owners", "2"], "nowhere.csv"),
    (["--csv", "good.csv", "--target", "outcome", "--owners", "2"], "outcome"),
    (["--csv", "good.csv", "--target", "y", "--owners-column", "clinic"], "clinic"),
    (["--csv", "three.csv", "--target", "y", "--task", "logistic", "--owners", "2"], "two values"),
    (["--csv", "commas.csv", "--target", "y", "--owners", "2", "--preprocessing", "records"], "state --decimal ,"),
    (["--csv", "good.csv", "--owners", "2"], "--target"),
    (["--data", "breast-cancer"], "--owners"),
    (["--data", "tulips", "--owners", "2"], "breast-cancer"),
    (["--data", "adult", "--data-dir", ".", "--owners", "2"], "adult.data"),
    (["--data", "breast-cancer", "--csv", "good.csv", "--owners", "2"], "leave out --data or --csv"),
    (["--data", "breast-cancer", "--owners", "2", "--epsilon", "0"], "epsilon"),
    (["--data", "breast-cancer", "--owners", "2", "--epsilon", "-1"], "epsilon"),
    (["--data", "breast-cancer", "--owners", "2", "--epsilon", "nan"], "epsilon"),
    (["--data", "breast-cancer", "--owners", "2", "--delta", "0"], "delta"),
    (["--data", "breast-cancer", "--owners", "2", "--delta", "1"], "delta"),
    (["--data", "breast-cancer", "--owners", "2", "--delta", "1e-18"], "delta"),
    (["--data", "breast-cancer", "--owners", "500"], "455"),
    (["--data", "breast-cancer", "--owner-sizes", "100,0"], "record"),
    (["--data", "breast-cancer", "--owner-sizes", "400,400"], "455"),
    (["--data", "breast-cancer", "--owner-sizes", "a,b"], "whole numbers"),
    (["--data", "breast-cancer", "--owners", "2", "--grid-bits", "2"], "--grid-bits"),
    (["--data", "breast-cancer", "--owners", "2", "--grid-bits", "50"], "grid steps"),
    (["--data", "breast-cancer", "--owners", "2", "--method", "output", "--lam", "1e-7", "--grid-bits", "40"], "grid"),
    (["--data", "breast-cancer", "--owners", "2", "--method", "output", "--iterations", "5"], "one release"),
    (["--data", "breast-cancer", "--owners", "2", "-M", "3", "-T", "2"], "threshold"),
    (["--data", "breast-cancer", "--owners", "2", "-M", "0"], "parties"),
    (["--data", "breast-cancer", "--owners", "2", "-I", "7", "-M", "3"], "-I"),
    (["--data", "breast-cancer", "--owners", "2", "-P", "10.0.0.1:1", "-P", "10.0.0.2:1", "-I", "0"], "--tls"),
    (["--data", "breast-cancer", "--owners", "2", "--lam", "0"], "--lam"),
    (["--data", "breast-cancer", "--owners", "2", "--sampler", "log-laplace", "--noise", "gaussian"], "--sampler"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad")
    records = [f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    (path / "good.csv").write_text("\n".join(["u,v,y", *records]) + "\n")
    (path / "three.csv").write_text(
        "\n".join(["u,v,y", *(f"{i % 7},{i % 5},{'abc'[i % 3]}" for i in range(60))]) + "\n"
    )
    commas = [f"{i % 7},{i % 5};{'ab'[i % 2]}" for i in range(60)]
    (path / "commas.csv").write_text("\n".join(["u;y", *commas]) + "\n")
    return path


@pytest.mark.parametrize(("arguments", "named"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_line_with_exit_code_2(
    arguments: list[str], named: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --plan-only, which does in this process all that a run checks before it connects."""
    from dpmpc.cli import main as cli

    monkeypatch.chdir(folder)
    given = arguments if "--delta" in arguments else [*arguments, "--delta", "1e-5"]
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", *given, "--out", "out", "--overwrite", *([] if "-I" in given else ["--plan-only"])])
    lines = capsys.readouterr().err.strip().splitlines()
    assert exit_.value.code == 2 and len(lines) == 1 and lines[0].startswith("error: ") and named in lines[0], lines


def test_an_error_is_one_line_and_leaves_no_traceback(folder: Path) -> None:
    result = dpmpc(
        "train",
        "--csv",
        folder / "good.csv",
        "--target",
        "outcome",
        "--owners",
        2,
        "--delta",
        "1e-5",
        "--out",
        folder / "x",
    )
    lines = result.stderr.strip().splitlines()
    assert result.returncode == 2 and lines[-1].startswith("error: ") and "Traceback" not in result.stderr
    assert dpmpc("train", "--epsilon", 0, "--debug", "--data", "diabetes").stderr.count("Traceback") == 1


def test_a_large_delta_is_a_warning(tmp_path: Path) -> None:
    report = run(small(delta=0.05, engine="clear"), tmp_path / "run")
    assert any("1/n" in text for text in report["warnings"])


def test_no_directory_is_overwritten_that_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear")
    with refuses("over", tmp_path, setting="overwrite"):
        run(small(), tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_killing_any_party_ends_all_with_a_message(victim: int, tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path / "run", "--no-pool") as process:
        wait_until(lambda: rows(tmp_path / "run") > 5)
        pids = children_of(process.pid)
        assert len(pids) == 3
        os.kill(pids[victim], signal.SIGKILL)
        errors = errors_of(process)
        assert process.returncode == 3
    assert f"error: every process must live until the end of the run; party {victim} was killed (SIGKILL)" in errors
    assert "--resume" in errors and "Traceback" not in errors and alive(pids) == [] and rows(tmp_path / "run") > 5


def test_no_party_outlives_a_killed_owners_process(tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path / "run", "--no-pool") as process:
        wait_until(lambda: rows(tmp_path / "run") > 2)
        pids = children_of(process.pid)
        process.kill()
        process.wait()
    wait_until(lambda: alive(pids) == [])


def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path / "run", "--no-pool") as process:
        wait_until(lambda: rows(tmp_path / "run") > 2)
        pids = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        errors = errors_of(process)
        assert process.returncode == 130, errors
    assert "stopped by the user" in errors and "Traceback" not in errors and alive(pids) == []


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with bound_socket() as taken:
        taken.listen()
        base = endpoint_of(taken).port
        with refuses("addresses", 0, f"127.0.0.1:{base}", setting="base_port"):
            run(small(), tmp_path / "run", base_port=base)


def test_an_owners_port_in_use_is_named(tmp_path: Path) -> None:
    plan = Plan.create(owners=2, dimension=3, clip=1.0, delta=1e-3, epsilon=1.0)
    with bound_socket() as taken:
        taken.listen()
        here = [endpoint_of(taken)] * 3
        job = PartyJob(plan, 1, here, here, Here(out=tmp_path, wait=1.0))
        with refuses("not-yet", 1, here[0], setting="listen"):
            asyncio.run(run_party(job, lambda text: None, lambda event, **fields: None))


def test_a_party_that_never_comes_is_named(tmp_path: Path) -> None:
    common = ["train", "--data", "synthetic", "--max-rows", "60", "--owners", "4", "--delta", "1e-3"]
    common += [*own_addresses(3), "--wait", "3"]
    with (
        started(*common, "-I", 0, "--out", tmp_path / "p0") as first,
        started(*common, "-I", 1, "--out", tmp_path / "p1") as second,
    ):
        errors = [errors_of(party) for party in (first, second)]
        assert [first.returncode, second.returncode] == [3, 3]
    assert any("missing: party" in text and "2 (127." in text for text in errors), errors


def test_a_party_with_another_plan_is_refused(tmp_path: Path) -> None:
    common = ["train", "--data", "synthetic", "--max-rows", "60", "--owners", "4", "--delta", "1e-3"]
    common += [*own_addresses(2), "-T", "0", "--wait", str(HANG), "--run-id", "x"]
    with (
        started(*common, "--lam", "0.01", "-I", 0, "--out", tmp_path / "p0") as first,
        started(*common, "--lam", "0.02", "-I", 1, "--out", tmp_path / "p1") as second,
    ):
        error = errors_of(first)
        assert first.returncode == 3 and second.poll() is None  # the right one may still come
    why = "all parties must run with the same parameters"
    assert f"refuses this process: {why}" in error and "Traceback" not in error
    assert why in (tmp_path / "p1" / "party_1.log").read_text()


def test_another_plan_is_called_another_plan(tmp_path: Path) -> None:
    """Although it leads to another run id."""
    common = ["train", "--data", "synthetic", "--max-rows", "60", "--owners", "4", "--delta", "1e-3"]
    common += [*own_addresses(2), "-T", "0", "--wait", str(HANG)]
    with (
        started(*common, "--epsilon", "1", "-I", 0, "--out", tmp_path / "p0") as first,
        started(*common, "--epsilon", "2", "-I", 1, "--out", tmp_path / "p1"),
    ):
        error = errors_of(first)
    assert first.returncode == 3 and "all parties must run with the same parameters" in error, error
    assert "copy plan.json again" in error and error.count("error: ") == 1


@pytest.mark.parametrize(("victim", "backend"), [(1, "sharing"), (2, "sharing"), (1, "mpyc")])
def test_a_stopped_party_is_named_by_everybody(victim: int, backend: str, tmp_path: Path) -> None:
    """It still holds its connections, and its kernel answers; nothing else of it does."""
    with started(*LONG, "--out", tmp_path / "run", "--no-pool", "--stall", "3", "--backend", backend) as process:
        wait_until(lambda: rows(tmp_path / "run") > (2 if backend == "sharing" else 0))
        pids = children_of(process.pid)
        os.kill(pids[victim], signal.SIGSTOP)
        errors = errors_of(process)
        assert process.returncode == 3
    named = f"party {victim} left the run without a word (nothing was heard of it for 3 s, stall)"
    assert named in errors and "Traceback" not in errors and alive(pids) == []
    for i in {0, 1, 2} - {victim}:
        assert named in (tmp_path / "run" / f"party_{i}.log").read_text()


def test_an_owner_that_fails_is_named_at_every_party_but_not_why(tmp_path: Path) -> None:
    """What an owner's error says may come from its records; what it is told by a party, nobody hides."""
    plan = Plan.create(owners=2, dimension=3, clip=1.0, delta=1e-3, epsilon=1.0, releases=5, parties=1)
    bound = bound_socket(), bound_socket()
    here, there = endpoint_of(bound[0]), endpoint_of(bound[1])
    numbers = bound[0].detach(), bound[1].detach()
    job = PartyJob(plan, 0, [here], [there], Here(out=tmp_path, wait=HANG), sockets=numbers)

    async def party() -> str:
        with pytest.raises(PeerError) as raised:
            await run_party(job, lambda text: None, lambda event, **fields: None)
        return str(raised.value)

    class Secret(Exception):
        pass

    def owner() -> None:
        with (
            contextlib.suppress(Secret),
            Aggregator.of_plan(plan, addresses=[there], owners=(1, 2)) as aggregator,
            Aggregator.of_plan(plan, addresses=[there], owners=(0, 1)),
        ):
            aggregator.wait_for_noise()
            raise Secret("record 17 has the value 'Jane Doe'")

    async def both() -> str:
        told = asyncio.ensure_future(party())
        await asyncio.to_thread(owner)
        return await told

    told = asyncio.run(both())
    assert told == "owner 0 failed by a fault of its own; its own log says more (told by owner 0)"


def test_an_owners_folder_is_not_resumed_with_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    result = dpmpc("train", "--resume", tmp_path)
    assert result.returncode == 2 and "--resume needs the request.json" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
