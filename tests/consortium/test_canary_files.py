"""Some of the scenarios of tests/endurance/canaries.py, which plays all."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpmpc.cli.main import COMMANDS
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.processes.worker import run_role
from tests.endurance import canaries, canary_search
from tests.endurance.canaries import trial
from tests.endurance.canary_search import DAYS, INPUTS, NUMBERS, TEXT, WORDS, found
from tests.runs import HANG

SOME = (
    "train-logistic", "three sites", "records-softmax", "a class of one record", "a target that is no number",
    "json log", "library: train on a misfit", "library: synth of misspelled numbers",
)  # fmt: skip


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All scenarios together give some thirty commands."""
    with canaries.forked(tmp_path_factory.mktemp("imports")):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", SOME)
def test_no_file_of_a_run_holds_a_canary(name: str, tmp_path: Path) -> None:
    assert trial(name, tmp_path) == []
    if name == "library: train on a misfit":
        assert "error: " in (tmp_path / "library.log").read_text()  # so the log was there to be searched


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("owners.log", f"error: it has {WORDS[0].upper()}".encode()),
        ("report.json", b'{"least": 771234.6}'),
        ("deep/wide.bin", WORDS[1].encode("utf-16-le")),
        ("model.npz", None),
        ("plan.json", canary_search.HEX[0].encode()),
    ],
)
def test_the_search_sees_one(name: str, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is None:
        np.savez_compressed(path, theta=np.array([0.0, float(NUMBERS[0])]))
    else:
        path.write_bytes(content)
    assert len(found(tmp_path)) >= 1 and name in found(tmp_path)[0]
    (tmp_path / INPUTS).mkdir()
    path.rename(tmp_path / INPUTS / "records")
    assert found(tmp_path) == []


def test_every_command_has_a_scenario() -> None:
    """A new command fails here until records with canaries have gone through it."""
    assert {name for scenario in canaries.SCENARIOS.values() for name in scenario.commands} - {"experiment"} == set(
        COMMANDS
    )


SENDS = """
import asyncio, ssl, sys
from pathlib import Path
async def main(secret, keys):
    tls = None, None
    if keys:
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(keys + "/party0.crt", keys + "/party0.key")
        client = ssl.create_default_context(cafile=keys + "/ca.crt")
        client.check_hostname = False
        tls = server, client
    got = asyncio.get_running_loop().create_future()
    async def serve(reader, writer):
        got.set_result(await reader.readexactly(len(secret) + 8))
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls[0])
    port = server.sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls[1])
    writer.writelines([b"1234", secret, b"5678"])
    assert await got == b"1234" + secret + b"5678"
    writer.close()
    server.close()
asyncio.run(main(bytes.fromhex(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("tls", [False, True])
def test_what_is_sent_is_searched_before_it_is_encrypted(tls: bool, tmp_path: Path) -> None:
    if tls:
        make_credentials(tmp_path / "keys", ["party0"])
    environment = canary_search.environment(tmp_path)
    secrets = [b"nothing of it", WORDS[1].upper().encode(), canary_search.LONG_NUMBERS[0], DAYS[0].encode()]
    for count, secret in enumerate(secrets):
        arguments = [sys.executable, "-c", SENDS, secret.hex(), str(tmp_path / "keys") if tls else ""]
        subprocess.run(arguments, env=environment, check=True, timeout=HANG)
        kinds, hits = canary_search.sent(tmp_path)
        assert len(hits) == count, hits
    assert kinds == ({"plain", "tls"} if tls else {"plain"})


def test_a_bug_is_logged_without_what_it_says(capfd: pytest.CaptureFixture[str]) -> None:
    code = run_role("tests.processes.roles:buggy", {"value": WORDS[0]}, lambda *_, **__: None, lambda _: None)
    said = capfd.readouterr().err
    assert code == 1 and "in buggy" in said and said.rstrip().endswith("ValueError") and not TEXT.search(said)
