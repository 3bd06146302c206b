"""All sites at once: in a terminal, as a page, as metrics; from status files alone, to this machine alone."""

import contextlib
import http.client
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.names import Names
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium import watched, watching
from dpmpc.consortium.status import LedgerSpending, RunStatus
from dpmpc.errors import UsageError
from dpmpc.processes.status import FAILED, State, Status, read_state, status_path
from tests.refusals import refuses
from tests.runs import dpmpc, started
from website.browser import Browser, found

PLAN = Plan.create(owners=3, dimension=3, epsilon=1.0, delta=1e-5, clip=1.0)
NAMED = replace(PLAN, names=Names(("charite", "insel", "usz"), ("a", "b", "c")))


def status(*states: State, plan: Plan = NAMED) -> RunStatus:
    spent = LedgerSpending(7, 0.25, 1e-5, 1.0, 7)
    return RunStatus(Path("run"), plan, states, spent, False)


def test_who_is_there_is_told_from_what_processes_here_say() -> None:
    """A party here, which is connected with one party and one owner; and an owners' process of several."""
    me = State("insel (party 1)", phase="releasing", release=3, releases=9, alive=True,
               connected=["charite (party 0)", "b (owner 1)"], event="one more", event_time=5.0)  # fmt: skip
    where = {site.name: site.where for site in watching.sites_of(status(me))}
    assert where == {
        "charite (party 0)": "connected", "insel (party 1)": "here", "usz (party 2)": "not seen",
        "a (owner 0)": "not seen", "b (owner 1)": "connected", "c (owner 2)": "not seen",
    }  # fmt: skip
    said = watching.lines(status(me), now=9.0)
    assert "insel (party 1)    releasing, 3 of 9 releases" in said and any("4 s ago: one more" in line for line in said)
    many = replace(me, process="party 1", connected=["party 0", "the owners' process (0..2)"])
    seen = {site.name: site.where for site in watching.sites_of(status(many, plan=PLAN))}
    owners = {f"owner {j}": "connected" for j in (0, 1, 2)}
    assert seen == {"party 0": "connected", "party 1": "here", "party 2": "not seen", **owners}
    gone = replace(many, alive=False)  # what a dead process was connected with is no news
    assert [site.where for site in watching.sites_of(status(gone, plan=PLAN))].count("connected") == 0
    survey = replace(many, process="party 1 (survey)")
    assert watching.sites_of(status(survey, plan=PLAN))[1].state is survey


def numbers(text: str) -> dict[tuple[str, str], float]:
    """(name, site) -> value, by a reader of the format of its own: every line is a comment or a sample."""
    samples = {}
    label = r'[a-z]+="(?:[^"\\]|\\["\\n])*"'
    assert text.endswith("# EOF\n")
    for line in text.splitlines():
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ gauge|EOF)", line)
            continue
        found = re.fullmatch(rf"([a-z_]+)\{{({label}(?:,{label})*)\}} (\S+)", line)
        assert found is not None, line
        site = re.search(r'site="((?:[^"\\]|\\.)*)"', found[2])
        samples[found[1], site[1] if site else ""] = float(found[3])
    return samples


def test_metrics_are_of_the_usual_format_and_say_the_same() -> None:
    me = State('in"sel\\\n', phase=FAILED, release=3, releases=9, event="it ended", event_time=5.5)
    hostile = State("party 1", phase="releasing", release=4, releases=9, alive=True, connected=["party 0"])
    samples = numbers(watching.metrics(status(me, hostile, plan=PLAN)))
    assert samples["dpmpc_site_seen", "party 0"] == samples["dpmpc_site_seen", "party 1"] == 1
    assert samples["dpmpc_site_seen", "party 2"] == 0
    assert samples["dpmpc_releases_opened", "party 1"] == 4 and samples["dpmpc_releases_spent", ""] == 7
    assert samples["dpmpc_epsilon_spent", ""] == 0.25 and samples["dpmpc_process_failed", "party 1"] == 0
    failed = numbers(watching.metrics(status(replace(me, process="party 2"), plan=PLAN)))
    assert failed["dpmpc_process_failed", "party 2"] == 1
    assert failed["dpmpc_last_word_timestamp_seconds", "party 2"] == 5.5
    assert watching._label('a"b\\c\nd') == 'a\\"b\\\\c d'
    none = watching.metrics(replace(status(plan=PLAN), spent=None))
    assert "spent" not in none and numbers(none)


def test_what_a_status_file_says_drives_neither_page_nor_terminal() -> None:
    bad = State("party 0", phase="<b>x", event="<script>alert(1)</script>\x1b[2J\n", event_time=1.0, releases=2)
    page = watching.page(status(bad, plan=PLAN), again=True)
    assert "<script" not in page and "&lt;script&gt;" in page and 'http-equiv="refresh"' in page
    assert "refresh" not in watching.page(status(bad, plan=PLAN)) and ">Site</th>" in page
    assert all(line.isprintable() for line in watching.lines(status(bad, plan=PLAN)))


def test_an_error_that_is_a_fault_has_no_name_of_an_exception(tmp_path: Path) -> None:
    for error in (KeyError("s"), RuntimeError("secret"), OSError(28, "No space left on device")):
        with pytest.raises(type(error)), Status(tmp_path / "s.json", "party 0"):
            raise error
        state = read_state(tmp_path / "s.json")
        assert state is not None and not re.search(r"Error|secret", state.event) and len(state.event) > 20


@contextlib.contextmanager
def served(pages: watched.Pages) -> Iterator[int]:
    with watched.server("127.0.0.1:0", pages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


def asked(port: int, method: str, path: str, host: str = "127.0.0.1") -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.headers)
    connection.close()
    return found


def test_a_served_page_answers_reads_of_this_machine_alone() -> None:
    def waits() -> str:
        raise UsageError("a run's folder has a plan; it has none yet; wait")

    with served({"/": ("text/html; charset=utf-8", lambda: "<p>here"), "/none": ("text/plain", waits)}) as port:
        code, body, headers = asked(port, "GET", "/")
        assert (code, body) == (200, b"<p>here") and headers["Cache-Control"] == "no-store"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert asked(port, "HEAD", "/")[:2] == (200, b"")
        assert asked(port, "GET", "/", f"localhost:{port}")[0] == asked(port, "GET", "/", f"[::1]:{port}")[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "", "127.0.0.1.evil.example", "10.0.0.1"):
            assert asked(port, "GET", "/", host)[0] == 421  # a name that was made to lead here
        assert [asked(port, method, "/")[0] for method in ("POST", "PUT", "DELETE")] == [501] * 3
        assert asked(port, "GET", "/../etc/passwd")[0] == 404 and asked(port, "GET", "/none")[0] == 503
    for address in ("0.0.0.0:0", "10.0.0.1:80", "example.org:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"):
        with refuses("addresses", address):
            watched.server(address, {})
    with served({}) as port, refuses("addresses", f"127.0.0.1:{port}"):
        watched.server(f"127.0.0.1:{port}", {})


WORDS = "--data synthetic --max-rows 200 --dimension 4 --owners 3 --delta 1e-4 --iterations 40 --no-evaluate"


def test_a_run_is_watched_to_its_end_and_its_folder_stays_as_it_is(tmp_path: Path) -> None:
    run, page, metrics = tmp_path / "run", tmp_path / "run.html", tmp_path / "run.prom"
    with started("train", *WORDS.split(), "--out", run) as process:
        while not plan_path(run).is_file() or not status_path(run, "party_0").is_file():
            assert process.poll() is None
        seen = dpmpc("status", run, "--watch", "--html", page, "--metrics", metrics)
        assert seen.returncode == 0, seen.stderr
        assert process.wait(60) == 0
    assert "party 2" in seen.stdout and "owner 0" in seen.stdout and "finished, 40 of 40 releases" in seen.stdout
    assert numbers(metrics.read_text())["dpmpc_process_finished", "party 1"] == 1
    assert "40 of 40" in page.read_text() and metrics.stat().st_mode & 0o044  # a node exporter is another user
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert dpmpc("status", run, "--watch").returncode == 0 and dpmpc("status", run, "--html", page).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    if (command := found()) is None:
        pytest.skip("the page is seen in a browser; there is none here")
    text = page.read_text
    with served({"/": ("text/html; charset=utf-8", text)}) as port, Browser(command) as browser:
        browser.open(f"http://127.0.0.1:{port}/")
        assert browser.run("document.querySelectorAll('table').length") == 2
        rows = "[...document.querySelectorAll('tbody tr')].filter(row => /finished/.test(row.innerText)).length"
        assert browser.run(rows) == 6
        assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
        assert all(str(port) in line for line in browser.trouble)  # asks nobody else
