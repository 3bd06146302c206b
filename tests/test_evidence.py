"""`make evidence`: what is named is run or has a reason; a part that fails, or a figure out of its range, is told."""

import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from website import evidence
from website.evidence import (
    Part,
    Range,
    Result,
    done,
    lacking,
    named,
    parts,
    problems,
    published,
    ranges,
    reason,
    results,
)

ROOT = Path(__file__).parents[1]


def test_every_command_that_is_named_is_run_or_has_a_reason() -> None:
    found = {command for _, text in evidence.texts() for command in named(text)}
    run = {part.name for part in parts()}
    assert len(found) > 100
    for command in found:
        assert (command in run) != bool(reason(command)), command
    with pytest.raises(SystemExit, match="is evidence or has a reason"):
        reason("python nowhere/else.py")


def test_every_page_that_runs_is_a_part_and_the_documented_proof_is() -> None:
    names = {part.name for part in parts()}
    assert {"dpmpc verify --fresh", "page README.md", "page docs/howto/budgets.md"} <= names
    assert any(each.command == "dpmpc verify --fresh" for each in ranges())


def test_every_figure_has_somebody_to_answer_for_it() -> None:
    assert not evidence.nobodys()
    assert sum(len(evidence.figures(text)) for _, text in evidence.texts()) > 4000


FIGURES = ("It takes 3.2 ms.", "It takes .5 s.", "It is 1.4 times as quick.", "| it | 1,024 | 3 % |", "Some 12 MB.")
FOUNDED = (
    "On 2026-11-30.", "November 2026.", "Commit 5f83ec5e.", "See docs/one-copy.csv.", "Run `dpmpc bench noise`.",
    "<!-- figures: tests/test_evidence.py -->", "```sh\ndpmpc train\n```",
)  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_of_nobodys_is_found_in_its_section(figure: str) -> None:
    (found,) = evidence.unfounded(f"# A\n{FOUNDED[0]}\n## B\n{figure}\n## C\n{FOUNDED[0]}\n")
    assert found.startswith("B: ")
    for each in FOUNDED:
        assert not list(evidence.unfounded(f"## B\n\n{each}\n{figure}\n"))
    for other in ("November.", "`dpmpc`", "decades", "1234567", "<!-- a note -->"):
        assert list(evidence.unfounded(f"## B\n\n{other}\n{figure}\n"))
    (found,) = evidence.unfounded(f"## B\n<!-- figures: tests/no_such.py -->\n{figure}\n")
    assert "no file tests/no_such.py" in found


@pytest.mark.parametrize(
    "text",
    [
        "Say `--stall 60 s`.", "```sh\nsleep 3 s\n```", "<!--= a.csv b : c .1f -->3 s<!--=-->", "| a | 1 |",
        "Of 3 parties.",
        "<!--# where a.json -->\n| 1 | 2 |\n<!--#-->", "In 3 steps.", "a_3 s", "0.3.1 s",
    ],
)  # fmt: skip
def test_what_is_no_figure_needs_nobody(text: str) -> None:
    assert not list(evidence.unfounded(f"## B\n\n{text}\n"))


def test_programs_that_are_named_are_there() -> None:
    for part in parts():
        words = [] if part.page else shlex.split(part.name)
        if words[:2] == ["python", "-m"]:
            assert importlib.util.find_spec(words[2]) is not None, part
        elif words[:1] == ["python"]:
            assert (ROOT / words[1]).is_file(), part


def test_a_sentence_is_a_part_and_comments_are_none() -> None:
    block = "```sh no-run\n# a note\nmake docs \\\n  -k  # why\n```\n```sh\nmake no\n```\n"
    assert [shlex.split(each) for each in named(f"Run `dpmpc bench noise` and `x = 1`.\n{block}")] == [
        ["make", "docs", "-k"],
        ["dpmpc", "bench", "noise"],
    ]


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sequence[Part]:
    """Parts: one that is good, one that fails, one whose figure moves."""
    (tmp_path / "say.py").write_text("import sys\nprint('found', sys.argv[1])\nsys.exit(sys.argv[1] == '0')\n")
    made = [Part(f"python {tmp_path / 'say.py'} {k}", ("docs/a.md",)) for k in (5, 0, "9 --json a.json")]
    monkeypatch.setattr(evidence, "parts", lambda: made)
    monkeypatch.setattr(evidence, "RESULTS", tmp_path / "results")
    return made


def test_results_are_kept_stamped_and_what_is_not_good_is_told(three: Sequence[Part]) -> None:
    stated = [Range(part.name, r"found (\d+)", 4, 6, "docs/a.md") for part in three]
    assert lacking("c0ffee") == [f"{part.name}: not run" for part in three]
    found = [done(part, stated, "c0ffee") for part in three]
    assert [each.good for each in found] == [True, False, False]
    kept = results("c0ffee")
    assert list(kept.values()) and kept == {part.name: each for part, each in zip(three, found, strict=True)}
    assert all(each.commit == "c0ffee" and "cores" in each.machine and each.began for each in found)
    told = lacking("c0ffee")
    assert len(told) == 2 and "code 1" in told[0] and "9 is not in 4..6" in told[1]
    assert lacking("another") == [f"{part.name}: not run" for part in three]  # results are of one commit
    page = published("c0ffee")
    assert "Of 3 parts 1 ran on commit c0ffee and are good, 2 are not. 0 were good" in page
    assert "**fails, code 1**" in page and "Not run:" not in page
    later = published("another")
    assert "0 ran on commit another and are good, 0 are not. 1 were good on an earlier commit" in later
    assert "have not run since, 2 were not. 0 have not run." in later and later.count("| c0ffee |") == 3
    assert problems(three[0], "nothing here", stated) == ("docs/a.md: nothing matches 'found (\\\\d+)'",)


def test_what_is_good_is_not_run_again(three: Sequence[Part], monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def noted(part: Part, stated: Sequence[Range], commit: str, hours: float) -> Result:
        ran.append(part.name)
        return done(part, stated, commit, hours)

    monkeypatch.setattr(evidence, "done", noted)
    monkeypatch.setattr(evidence, "ranges", list)
    monkeypatch.setattr(evidence, "commit_of", lambda: "c0ffee")
    assert evidence.main(["--run"]) == 1 and ran == [part.name for part in three]
    assert evidence.main(["--run"]) == 1 and ran[3:] == [three[1].name]  # the one that failed
    assert evidence.main(["--check"]) == 1 and evidence.main([]) == 0


def test_a_part_that_takes_longer_is_ended_with_its_processes_and_leaves_no_result(
    three: Sequence[Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part starts a process that would hold a pipe open: that it ended is seen at the pipe's end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "child.py").write_text(
        f"import time\nheld = open({str(pipe)!r}, 'w')\nheld.write('here')\nheld.flush()\ntime.sleep(600)\n"
    )
    (tmp_path / "say.py").write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, {str(tmp_path / 'child.py')!r}])\n"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        done(three[0], (), "c0ffee", 5 / 3600)
    os.set_blocking(reader, True)
    assert os.read(reader, 100) == b"here" and os.read(reader, 100) == b""  # it was open, and nobody has it open now
    os.close(reader)
    assert not results("c0ffee")
    monkeypatch.setattr(evidence, "ranges", list)
    monkeypatch.setattr(evidence, "commit_of", lambda: "c0ffee")
    monkeypatch.setattr(evidence, "parts", lambda: three[:1])
    assert evidence.main(["--run", "--minutes", "0.01"]) == 1 and not results("c0ffee")
    assert "takes more than 0.01 minutes; left" in capsys.readouterr().out


def test_a_part_ends_with_the_program_that_runs_it(tmp_path: Path) -> None:
    """By SIGTERM, as a machine that is shut down sends it: a part has a session of its own, which nothing else ends."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "part.py").write_text(
        f"import time\nheld = open({str(pipe)!r}, 'w')\nheld.write('here')\nheld.flush()\n"
        "time.sleep(40)\nheld.write('late')\n"
    )
    program = (
        "import pathlib, sys\nfrom website import evidence\n"
        f"evidence.parts = lambda: [evidence.Part('python {tmp_path / 'part.py'}', ('docs/a.md',))]\n"
        f"evidence.RESULTS = pathlib.Path({str(tmp_path)!r}) / 'results'\n"
        "evidence.ranges, evidence.commit_of = list, lambda: 'c0ffee'\nsys.exit(evidence.main(['--run']))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.DEVNULL) as running:
        with pipe.open("rb", buffering=0) as reader:  # opens when the part has it open
            assert reader.read(4) == b"here"
            running.terminate()
            assert reader.read(4) == b""  # it ended
        assert running.wait() != 0


def test_a_release_without_its_evidence_is_refused(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None and spec.loader is not None
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    (tmp_path / "website").mkdir()
    (tmp_path / "website" / "__init__.py").touch()
    (tmp_path / "website" / "evidence.py").write_text("print('dpmpc verify --fresh: not run')\nraise SystemExit(1)\n")
    with pytest.raises(SystemExit, match=r"dpmpc verify --fresh: not run; run make evidence"):
        release.evident(tmp_path)
    (tmp_path / "website" / "evidence.py").write_text("")
    release.evident(tmp_path)
