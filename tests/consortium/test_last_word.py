"""A site that is told to end says so to all others, by SIGTERM, which systemd and containers send, as by Ctrl-C; and
all logs have one cause, with the sites' own names."""

import contextlib
import signal
from pathlib import Path

import pytest
from runs import dpmpc, errors_of, own_addresses, started, wait_until

TOML = """
[run]
data_id = "made up"
tls = false
{parties}
[[owners]]
name = "north"
records = 60
[records]
target = "ill"
positive = ["yes"]
preprocessing = "records"
[records.bounds]
age = [0, 100]
[learning]
method = "gradient"
iterations = 3
step = 0.1
[privacy]
epsilon = 1
delta = 1e-4
"""
NAMES = ("akh", "charite", "insel")


def kits(folder: Path, *, surveyed: bool = False) -> None:
    addresses = own_addresses(3)[1::2]
    parties = [f'[[parties]]\nname = "{n}"\naddress = "{a}"' for n, a in zip(NAMES, addresses, strict=True)]
    text = TOML.format(parties="\n".join(parties))
    text = text.replace('preprocessing = "records"\n', "test_fraction = 0\n") if surveyed else text
    (folder / "consortium.toml").write_text(text)
    made = dpmpc("kit", folder / "consortium.toml", "--out", folder / "kits")
    assert made.returncode == 0, made.stderr


def test_logs_of_a_kit_name_settings_as_its_screen_does(tmp_path: Path) -> None:
    kits(tmp_path)
    own = tmp_path / "kits" / "akh"
    ended = dpmpc("join", own, "--wait", 0.1)
    said = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == 3 and said.count("`address` under [[parties]] of consortium.toml") == 1, ended.stderr
    assert "; nor has this party heard of north (owner 0); start it" in said  # all who are missing, at once
    logged = (own / "run" / "party_0.log").read_text().splitlines()
    assert logged[-1].endswith(f"Z {said}") and "<<" not in "".join(logged)


@pytest.mark.parametrize(("number", "code", "by"), [(signal.SIGTERM, 143, "SIGTERM"), (signal.SIGINT, 130, "the user")])
def test_a_signal_leaves_a_last_word_with_all_others(tmp_path: Path, number: int, code: int, by: str) -> None:
    kits(tmp_path)
    with contextlib.ExitStack() as stack:
        sites = [stack.enter_context(started("join", tmp_path / "kits" / name)) for name in NAMES]
        logs = [tmp_path / "kits" / name / "run" / f"party_{i}.log" for i, name in enumerate(NAMES)]
        for log in logs:
            wait_until(lambda log=log: log.exists() and "connected with the other parties" in log.read_text())
        sites[1].send_signal(number)
        said = [errors_of(site).strip().splitlines()[-1] for site in sites]
    assert [site.returncode for site in sites] == [3, code, 3]
    assert said[1] == f"error: stopped by {by}; what was opened is kept"
    for i in (0, 2):
        cause = "error: charite (party 1) was stopped on its machine (told by "
        assert said[i].startswith(cause) and cause in logs[i].read_text().splitlines()[-1]
    status = dpmpc("status", tmp_path / "kits" / "akh").stdout
    assert "akh (party 0): failed" in status and "charite (party 1) was stopped on its machine" in status
