"""What an error says beside its sentence: a code, a setting; and what it says to whom."""

import ast
import datetime
import json
import pickle
import re
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.party.beside_owner import named
from dpmpc.aggregation.plan.names import named_errors
from dpmpc.cli.main import main
from dpmpc.errors import (
    CODES,
    CheatError,
    DpmpcError,
    NotYetError,
    OwnerError,
    PeerError,
    Private,
    RecordError,
    SpentError,
    UsageError,
    error_of,
    machine_text,
    owner_text,
    public_text,
    reworded,
    sayable,
    to_event,
)
from dpmpc.estimators.errors import EstimatorError, as_value_errors
from dpmpc.mpc.transport.abort_reason import public_reason
from dpmpc.processes.logs import JSON
from dpmpc.processes.status import Status, read_state
from dpmpc.processes.worker import run_role

ROOT = Path(__file__).parents[1] / "dpmpc"
SECRET = "row 7 has 'Jane Doe'"
PRIVATE = RecordError(f"the target must be a number; {SECRET}; mend it, or <<drop=age>>", "a target is no number")
EVERY = (
    UsageError("<<parties>> must be 3; got 4; use <<parties=3>>", code="range"),
    SpentError("it is spent"),
    PeerError("party 1 did not come; mend <<addresses>>"),
    CheatError("a check failed"),
    OwnerError("owner 2 failed"),
    DpmpcError("no room"),
    PRIVATE,
)


MODULES = [*ROOT.rglob("*.py"), *(ROOT.parent / "cli").glob("*.py")]


def kinds() -> list[type[DpmpcError]]:
    found, new = [], [DpmpcError]
    while new:
        found += new
        new = [kind for each in new for kind in each.__subclasses__()]
    return found


def test_every_code_is_one_that_is_listed_and_every_listed_one_is_used() -> None:
    """Those of classes, and those that raises state."""
    stated = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                stated |= {ast.literal_eval(each.value) for each in node.exc.keywords if each.arg == "code"
                           and isinstance(each.value, ast.Constant)}  # fmt: skip
    assert stated | {kind.code for kind in kinds()} == CODES.keys() and len(stated) > 8


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_code_and_setting_stay_however_an_error_is_passed_on(error: DpmpcError) -> None:
    before = type(error), error.code, error.setting, error.exit_code
    event = json.loads(json.dumps(to_event(error)))
    for other in (
        error_of(**event),
        reworded(error, lambda text: f"as a role: {text.replace('<<', '--').replace('>>', '')}"),
        named("owner 3", error),
        pickle.loads(pickle.dumps(error)),  # noqa: S301
    ):
        assert (type(other), other.code, other.setting, other.exit_code) == before
    with pytest.raises(type(error)) as caught, named_errors(lambda text: f"at a site: {text}"):
        raise error_of(**event)
    assert (type(caught.value), caught.value.code, caught.value.setting, caught.value.exit_code) == before
    assert caught.value.message == f"at a site: {error.message}"


def test_a_setting_is_the_first_that_the_sentence_names_or_what_is_stated() -> None:
    assert EVERY[0].setting == "parties" and EVERY[1].setting is None
    assert UsageError("no name", setting="out").setting == "out"
    marked = RecordError("a target is a number; row 3 has '<<jane>>'; mend it", "a target is no number; see <<target>>")
    assert PRIVATE.setting is None and marked.setting == "target"
    assert "jane" not in json.dumps({**to_event(marked), "private": None})


@pytest.mark.parametrize(
    ("settings", "code", "setting"),
    [
        ({"epsilon": -1.0}, "range", "epsilon"),
        ({"epsilon": "x"}, "type", "epsilon"),
        ({"law": "none"}, "choice", None),
        ({"check_owners": "maybe"}, "choice", "check_owners"),
        ({"security_bits": 1000.0}, "range", "security_bits"),
        ({"parties": 2.5}, "type", "parties"),
        ({"epsilom": 1.0}, "unknown", None),
        ({"out": ""}, "path", "out"),
        ({"stall": 1.0}, "range", "stall"),
        ({"wait": -1.0}, "range", "wait"),
        ({"security": "active", "engine": "clear"}, "usage", "security"),
    ],
)
def test_a_program_reads_which_rule_was_broken_and_by_which_setting(
    settings: dict[str, Any], code: str, setting: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        dpmpc.Aggregator(**{"owners": 2, "dimension": 2, "clip": 1.0, "delta": 1e-5, **settings})
    assert (caught.value.code, caught.value.setting) == (code, setting)


def test_a_command_with_json_lines_ends_with_code_and_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JSON, "")  # as it was, afterwards
    with pytest.raises(SystemExit) as end:
        main(["train", "--data", "iris", "--owners", "3", "--log-json", "--epsilon", "-1", "--out", "x"])
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert end.value.code == 2 and (line["code"], line["setting"], line["level"]) == ("range", "epsilon", "error")


def test_a_command_that_prints_json_fails_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words, code, setting in (
        (["status", "--json", str(tmp_path)], "path", None),
        (["advise", "--json", "--epsilon", "x"], "usage", "epsilon"),
        (["budget", "--json", "--no-such-option"], "usage", None),
    ):
        with pytest.raises(SystemExit) as end:
            main(words)
        line = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert end.value.code == 2 and line["text"].startswith("error: "), words
        assert (line["code"], line["setting"]) == (code, setting)
    with pytest.raises(SystemExit):
        main(["status", str(tmp_path)])
    assert capsys.readouterr().err.startswith("error: ")


def test_a_status_has_code_and_setting_of_the_end(tmp_path: Path) -> None:
    with pytest.raises(UsageError), Status(tmp_path / "party_0.status.json", "party 0"):
        raise EVERY[0]
    state = read_state(tmp_path / "party_0.status.json")
    assert state is not None and (state.code, state.setting) == ("range", "parties")


# -- who may read what -------------------------------------------------------------------------------------------------
def test_words_that_may_quote_a_record_have_no_text() -> None:
    words = Private(SECRET)
    for say in (str, format, "{}".format, "%s".__mod__, lambda w: f"{w}", lambda w: "".join([w]), json.dumps):
        with pytest.raises(TypeError) as refused:
            say(words)
        assert "Jane" not in str(refused.value)
    assert "Jane" not in repr(words) and "Jane" not in repr({"a": words}) and words.to_owner() == SECRET


def test_an_error_of_records_says_to_anybody_what_quotes_none() -> None:
    """Whoever formats, logs, sends or prints it; its owner's surfaces ask for more, and Python shows it as a note."""
    with pytest.raises(EstimatorError) as estimated, as_value_errors():
        raise PRIVATE
    others = (
        reworded(PRIVATE, lambda text: f"first: {text}"),
        named("owner 3", PRIVATE),
        error_of(**to_event(PRIVATE)),
        pickle.loads(pickle.dumps(PRIVATE)),  # noqa: S301
        estimated.value,
    )
    for error in (PRIVATE, *others):
        assert isinstance(error, RecordError) and SECRET in owner_text(error)
        for said in (str(error), repr(error), f"{error}", error.message, public_text(error), "%s" % error):  # noqa: UP031
            assert "Jane" not in said and "no number" in said
        assert "Jane" not in public_reason("owner 3", error)
        assert SECRET in "".join(traceback.format_exception(error))
    assert public_text(RecordError(SECRET)) == "the records of an owner do not fit; its own screen says why"


ALWAYS = re.compile(r"_?[A-Z][A-Z_]*|__name__|.*\.(name|strerror|shape|dtype|__name__)|len\(.*\)|.*[A-Z] >> 20")


def said_in_public(tree: ast.Module, anybody: set[str]) -> Iterator[tuple[int, str]]:
    """(line, expression) of what raises of public errors, `anybody`, put into their texts without `sayable`, but for
    constants, names by attribute, shapes and lengths."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if ast.unparse(node.exc.func).split(".")[-1] not in anybody:
                continue
            for part in ast.walk(node.exc):
                if isinstance(part, ast.FormattedValue):
                    what = ast.unparse(part.value)
                    if not what.startswith("sayable(") and not ALWAYS.fullmatch(what):
                        yield part.lineno, what


def test_where_records_are_read_a_public_error_says_what_is_sayable_and_nothing_else() -> None:
    anybody, seen, wrong = {kind.__name__ for kind in kinds() if not issubclass(kind, RecordError)}, 0, []
    for path in MODULES:
        if path.relative_to(ROOT.parent).parts[1] in ("intake", "records", "estimators"):
            text = path.read_text(encoding="utf-8")
            seen += text.count("{sayable(")
            wrong += [(path.name, *each) for each in said_in_public(ast.parse(text), anybody)]
    assert wrong == [] and seen > 150
    bad = ast.parse("raise UsageError(f'a target is a number; {value!r}')")
    assert [what for _, what in said_in_public(bad, anybody)] == ["value"]


def test_a_folder_that_is_not_copied_is_one_line() -> None:
    """As `shutil` says it, which has no number of an error."""
    parts = [("a", "b", "[Errno 116] Stale file handle: 'a'"), ("c", "d", "[Errno 5] io: 'c'")]
    said = machine_text(shutil.Error(parts))
    assert said is not None and "Stale file handle: 'a'" in said and "Errno 5" not in said and "\n" not in said
    assert machine_text(OSError("of no kind")) is None


HOSTILE = "a\nguarantee: all is well\x1b[2J\u202e\r\u2028é"  # a name of a column, say
ESCAPED = r"a\nguarantee: all is well\x1b[2J\u202e\r\u2028é"


KINDS = [DpmpcError, UsageError, SpentError, NotYetError, PeerError, CheatError, OwnerError]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_a_line_whatever_it_is_told(kind: type[DpmpcError]) -> None:
    """A text that somebody chose is no second line and no command, however it came into the words: as it was raised,
    told by another process, said in other words, or for an owner's eyes alone."""
    error = kind(f"names are names; {HOSTILE}")
    told = error_of(**to_event(error))
    other = reworded(error, lambda text: f"owner 3: {text} {HOSTILE}".replace("\n", " "))
    for each in (error, told, pickle.loads(pickle.dumps(error)), other):  # noqa: S301
        assert ESCAPED in each.message and each.message.isprintable() and str(each).isprintable()
    private = RecordError(f"a value is a number; {HOSTILE}")
    assert private.to_owner == f"a value is a number; {ESCAPED}"


def test_what_points_at_a_place_lies_below_the_line() -> None:
    place = f"  mean({HOSTILE})\n       ^"
    error = UsageError("a name is known; got x", below=place.replace("a\ng", "a g"))
    lines = error_of(**to_event(error)).message.split("\n")
    assert lines[0] == "a name is known; got x" and lines[2] == "       ^" and all(map(str.isprintable, lines))


def test_what_was_read_off_a_record_is_not_sayable() -> None:
    for value in ("age", 3, 2.5, Path("a.csv"), ["a", "b"], dict, None, datetime.date(2020, 1, 1)):
        assert sayable(value) is value
    for value in (Private(SECRET), ValueError(SECRET), np.float64(71.5), np.str_("Jane"), np.array([1])):
        with pytest.raises(TypeError) as refused:
            sayable(value)  # type: ignore[type-var]
        assert "Jane" not in str(refused.value)


def test_words_for_an_owner_are_taken_out_for_its_surfaces_alone() -> None:
    """By name: the only modules that say `to_owner` or `owner_text` are those that print to who holds the records, or
    hand an error on whole."""
    found = {
        path.relative_to(ROOT if ROOT in path.parents else ROOT.parent).as_posix()
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr == "to_owner")
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "owner_text")
    }
    assert found == SURFACES_OF_OWNERS


SURFACES_OF_OWNERS = {
    "errors.py",  # which has them
    "cli/main.py",  # the last line of a command
    "estimators/errors.py",  # the same error as a ValueError
    "flower/tables.py",  # a client's own log of warnings
    "records/check.py",  # `dpmpc check`, of one's own records
    "local/named_records.py",
    "local/holdout.py",  # another error, of records too
}


def fails(**_: Any) -> None:
    """A role that fails on a record."""
    raise PRIVATE


def test_a_role_that_fails_on_a_record_logs_and_shows_no_value_of_it(tmp_path: Path) -> None:
    lines, events = list[str](), list[dict[str, Any]]()

    def emit(event: str, **fields: Any) -> None:
        events.append({"event": event, **fields})

    code = run_role("tests.test_errors:fails", {}, emit, lines.append)
    assert code == 2 and len(lines) == 1 and "Jane" not in lines[0] and "no number" in lines[0]
    ((event),) = events
    assert event.pop("event") == "error" and event == to_event(PRIVATE)
    with pytest.raises(RecordError), Status(tmp_path / "status.json", "owner 0"):
        raise named("owner 0", error_of(**event))
    assert "Jane" not in (tmp_path / "status.json").read_text() and json.loads((tmp_path / "status.json").read_text())
