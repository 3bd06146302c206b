"""What goes wrong: bad input, ports, processes that die or never come. One line, an exit code, no process left, within
15 seconds."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from dpmpc.errors import UsageError
from dpmpc.mpc.loopback import free_base_port
from tests.runs import COMMAND, alive, children_of, dpmpc, rows, run, small, wait_until

LONG = [
    "train",
    "--data",
    "synthetic",
    "--max-rows",
    "100",
    "--dimension",
    "3",
    "--owners",
    "2",
    "--delta",
    "1e-3",
    "--no-evaluate",
    "--iterations",
    "100000",
    "-M",
    "3",
]

BAD = [
    (["--csv", "nowhere.csv", "--target", "y", "--owners", "2"], "nowhere.csv"),
    (["--csv", "good.csv", "--target", "outcome", "--owners", "2"], "outcome"),
    (["--csv", "good.csv", "--target", "y", "--owners-column", "clinic"], "clinic"),
    (["--csv", "three.csv", "--target", "y", "--task", "logistic", "--owners", "2"], "two values"),
    (["--csv", "nan.csv", "--target", "y", "--owners", "2"], "finite"),
    (["--csv", "good.csv", "--owners", "2"], "--target"),
    (["--data", "breast-cancer"], "--owners"),
    (["--data", "iris", "--owners", "2"], "breast-cancer"),
    (["--data", "adult", "--data-dir", ".", "--owners", "2"], "adult.data"),
    (["--data", "breast-cancer", "--csv", "good.csv", "--owners", "2"], "leave out --data or --csv"),
    (["--data", "breast-cancer", "--owners", "2", "--epsilon", "0"], "epsilon"),
    (["--data", "breast-cancer", "--owners", "2", "--epsilon", "-1"], "epsilon"),
    (["--data", "breast-cancer", "--owners", "2", "--epsilon", "nan"], "epsilon"),
    (["--data", "breast-cancer", "--owners", "2", "--delta", "0"], "delta"),
    (["--data", "breast-cancer", "--owners", "2", "--delta", "1"], "delta"),
    (["--data", "breast-cancer", "--owners", "2", "--delta", "1e-13"], "delta"),
    (["--data", "breast-cancer", "--owners", "500"], "455"),
    (["--data", "breast-cancer", "--owner-sizes", "100,0"], "record"),
    (["--data", "breast-cancer", "--owner-sizes", "400,400"], "455"),
    (["--data", "breast-cancer", "--owner-sizes", "a,b"], "whole numbers"),
    (["--data", "breast-cancer", "--owners", "2", "--grid-bits", "2"], "--grid-bits"),
    (["--data", "breast-cancer", "--owners", "2", "--grid-bits", "50"], "grid steps"),
    (["--data", "breast-cancer", "--owners", "2", "--method", "output", "--lam", "1e-9", "--grid-bits", "40"], "grid"),
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
    (path / "nan.csv").write_text("\n".join(["u,v,y", *records, "nan,1,a"]) + "\n")
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
    with pytest.raises(UsageError, match="not look like"):
        run(small(), tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("victim", [0, 1, 2, 3], ids=["owners", "party 0", "party 1", "party 2"])
def test_killing_any_process_ends_all_with_a_message(victim: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, *LONG, "--out", str(tmp_path / "run"), "--no-pool"], stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: rows(tmp_path / "run") > 5)
    pids = children_of(process.pid)
    begin = time.monotonic()
    os.kill(pids[victim], signal.SIGKILL)
    _, errors = process.communicate(timeout=15)
    assert time.monotonic() - begin < 15 and process.returncode == 3
    name = "the owners' process" if victim == 0 else f"party {victim - 1}"
    assert f"error: every process must live until the end of the run; {name} was killed (SIGKILL)" in errors
    assert "Traceback" not in errors and alive(pids) == [] and rows(tmp_path / "run") > 5


def test_no_process_outlives_a_killed_launcher(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, *LONG, "--out", str(tmp_path / "run"), "--no-pool"], stderr=subprocess.DEVNULL
    )
    wait_until(lambda: rows(tmp_path / "run") > 2)
    pids = children_of(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: alive(pids) == [], 5)


def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, *LONG, "--out", str(tmp_path / "run"), "--no-pool"], stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: rows(tmp_path / "run") > 2)
    pids = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert (
        process.returncode == 130
        and "stopped by the user" in errors
        and "Traceback" not in errors
        and alive(pids) == []
    )


@pytest.mark.parametrize("offset", [1, 3], ids=["parties' port", "owners' port"])
def test_a_port_in_use_is_named(offset: int, tmp_path: Path) -> None:
    base = free_base_port(6)
    with socket.socket() as s:
        s.bind(("127.0.0.1", base + offset))
        s.listen()
        with pytest.raises(Exception, match=rf"127.0.0.1:{base + offset}.*-B") as caught:
            run(small(), tmp_path / "run", base_port=base)
        assert getattr(caught.value, "exit_code", None) == 2


def test_a_party_that_never_comes_is_named(tmp_path: Path) -> None:
    base = str(free_base_port(6))
    common = [
        "train",
        "--data",
        "synthetic",
        "--max-rows",
        "60",
        "--owners",
        "4",
        "--delta",
        "1e-3",
        "-M",
        "3",
        "-B",
        base,
        "--wait",
        "2",
    ]
    begin = time.monotonic()
    parties = [
        subprocess.Popen(
            [*COMMAND, *common, "-I", str(i), "--out", str(tmp_path / f"p{i}")], stderr=subprocess.PIPE, text=True
        )
        for i in (0, 1)
    ]
    errors = [party.communicate(timeout=15)[1] for party in parties]
    assert time.monotonic() - begin < 15 and [party.returncode for party in parties] == [3, 3]
    assert any("missing: party 2" in text for text in errors), errors


def test_a_party_with_another_plan_is_refused(tmp_path: Path) -> None:
    base = str(free_base_port(4))
    common = [
        "train",
        "--data",
        "synthetic",
        "--max-rows",
        "60",
        "--owners",
        "4",
        "--delta",
        "1e-3",
        "-M",
        "2",
        "-B",
        base,
        "--wait",
        "4",
    ]
    parties = [
        subprocess.Popen(
            [*COMMAND, *common, "--lam", lam, "--run-id", "x", "-I", str(i), "--out", str(tmp_path / f"p{i}")],
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, lam in enumerate(("0.01", "0.02"))
    ]
    errors = [party.communicate(timeout=20)[1] for party in parties]
    assert [party.returncode for party in parties] == [3, 3] and "same parameters" in "".join(errors), errors
