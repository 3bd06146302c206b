"""Sites meet: here, by the command, and over several machines from kits, where each must allow it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.consortium.joining import Joining, join
from dpmpc.consortium.kit import LIMITS, write_kits
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError
from dpmpc.learning.model import read_model
from dpmpc.meeting.differences import EXCHANGED
from dpmpc.records.schema import Labels, Schema
from tests.machines import together
from tests.refusals import Rule, breaks, refuses
from tests.runs import dpmpc as command
from tests.runs import own_addresses

SITES, EACH = ("north", "south", "west"), 900
CLEAR = ("--engine", "clear")


def columns(site: str, wrong: str, seed: int = 4) -> dict[str, list[object]]:
    """A site's records; `wrong`: the site that has ages in months, and labels exchanged."""
    random = np.random.default_rng((seed, SITES.index(site)))
    age = np.clip(np.rint(random.normal(58, 17, EACH)), 18, 99).astype(int)
    died = (random.random(EACH) < 0.2).astype(int)
    if site == wrong:
        age, died = 12 * age, 1 - died
    return {"age": age.tolist(), "sex": random.choice(["f", "m"], EACH).tolist(), "died": died.tolist()}


def together_of(wrong: str) -> dict[str, list[object]]:
    each = [{"site": [site] * EACH, **columns(site, wrong)} for site in SITES]
    return {name: [value for one in each for value in one[name]] for name in each[0]}


def written(path: Path, table: dict[str, list[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def test_a_wrong_coding_is_named_and_equal_sites_are_equal() -> None:
    """At epsilon .5 noise is 25 a cell: a count of 900 that is 0 elsewhere is 30 deviations."""
    settings = {"owners": "site", "target": "died", "epsilon": 0.5, "engine": "clear"}
    met = dpmpc.meet(together_of("west"), **settings)
    assert {(each["column"], each["site"]) for each in met.differences} >= {("age", "west"), ("died", "west")}
    codings = {each["column"]: each["coding"] for each in met.differences if each["site"] == "west"}
    assert "months for years" in codings["age"] and codings["died"] == EXCHANGED
    assert "age: west differs from the others" in met.text() and "months for years" in met.html()
    # drawn by a seed and with hardly any noise: whether equal sites differ by chance is the same in every run
    assert dpmpc.meet(together_of("nobody"), **{**settings, "epsilon": 20.0}).differences == []
    assert met.plan.epsilon == 0.5 and promise_of(met.plan).epsilon == 0.5


def test_the_command_charges_drafts_and_charges_a_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    records = written(tmp_path / "all.csv", together_of("nobody"))
    given = ("--csv", records, "--owners-column", "site", "--target", "died", "--twice", "died", *CLEAR)
    dry = command("meet", *given, "--dry")
    assert dry.returncode == 0 and "counts are off by" in dry.stdout and "epsilon" in dry.stdout
    assert not (tmp_path / "account").exists()
    done = command("meet", *given, "--epsilon", "0.5", "--data-id", "ours", "--out", tmp_path / "met")
    assert done.returncode == 0, done.stderr
    assert "guarantee: epsilon = 0.5" in done.stderr
    schema = Schema.read(tmp_path / "met" / "schema.toml")
    assert schema.bounds == "survey" and schema.target == Labels("died", ("1",), ("0",))
    assert [(found.epsilon, found.delta) for found in schema.found] == [(0.5, 1e-5)]
    again = command("meet", *given, "--epsilon", "0.5", "--data-id", "ours", "--out", tmp_path / "again")
    assert again.returncode == 0
    spent = json.loads(command("budget", "--json").stdout)
    assert "2" in json.dumps(spent) and 0.6 < max(_epsilons(spent)) < 1.0  # two Gaussian releases of .5
    beyond = command("meet", *given, "--epsilon", "0.5", "--data-id", "ours", "--budget", "0.8,1e-5")
    assert beyond.returncode == 2 and "budget" in beyond.stderr


def _epsilons(value: object) -> list[float]:
    match value:
        case dict():
            own = [float(each) for name, each in value.items() if name == "epsilon" and each is not None]
            return [*own, *(e for each in value.values() for e in _epsilons(each))]
        case list():
            return [e for each in value for e in _epsilons(each)]
    return []


def test_a_run_by_the_drafted_schema_promises_both(tmp_path: Path) -> None:
    records = written(tmp_path / "all.csv", together_of("nobody"))
    assert command("meet", "--csv", records, "--owners-column", "site", "--target", "died", "--epsilon", "0.5", *CLEAR,
                   "--out", tmp_path / "met").returncode == 0  # fmt: skip
    given = ("--csv", records, "--schema", tmp_path / "met" / "schema.toml", "--owners-column", "site")
    rest = ("--epsilon", "2", "--delta", "1e-5", *CLEAR, "--no-evaluate", "--out", tmp_path / "run")
    trained = command("train", *given, *rest)
    assert trained.returncode == 0, trained.stderr
    said = json.loads((tmp_path / "run" / "report.json").read_text())["privacy"]["statement"]
    assert "epsilon = 2, delta = 1e-05" in said
    assert said.endswith("with the release that found the schema: epsilon = 2.5, delta = 2e-05")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--column", "aeg"), "aeg"), (("--column", "site"), "not their names"), (("--delta", "0"), "Gaussian"),
        (("--target", "dyed"), "dyed"), (("--twice", "height"), "height"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_before_anything_is_spent(
    given: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    records = written(tmp_path / "all.csv", together_of("nobody"))
    done = command("meet", "--csv", records, "--owners-column", "site", *CLEAR, *given)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("account/**/*.jsonl"))


TOML = """
[run]
data_id = "meeting"
tls = false
{sites}
[meet]
columns = ["age", "sex"]
target = "died"
[privacy]
epsilon = 0.5
delta = 1e-5
{limits}
"""


def kits(folder: Path, limits: str = "") -> list[Path]:
    """The kits of parties and owners, and each owner's records beside its own."""
    sites = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(own_addresses(3)[1::2]))
    sites += "".join(f'[[owners]]\nname = "{name}"\nrecords = {EACH}\n' for name in SITES)
    (folder / "consortium.toml").write_text(TOML.format(sites=sites, limits=limits), encoding="utf-8")
    write_kits(read_consortium(folder / "consortium.toml"), folder / "kits", folder / "authority")
    for name in SITES:
        written(folder / "kits" / name / "records.csv", columns(name, "south"))
    return [folder / "kits" / name for name in ("p0", "p1", "p2", *SITES)]


def test_sites_meet_from_their_kits_where_each_allows_it(tmp_path: Path) -> None:
    found = kits(tmp_path)
    joined = [
        lambda kit=kit: join(  # type: ignore[misc]
            kit, Joining.of(csv=str(kit / "records.csv") if kit.name in SITES else None, wait=60.0), lambda event: None
        )
        for kit in found
    ]
    assert not any("by_owner" in (kit / LIMITS).read_text(encoding="utf-8") for kit in found)
    with refuses("limits", "limits.toml", setting="by_owner"):
        joined[3]()
    assert "by_owner" in (found[3] / "README.md").read_text(encoding="utf-8")
    for kit in found:
        with (kit / LIMITS).open("a", encoding="utf-8") as file:
            file.write("by_owner = true\n")
    ends = together(joined)
    assert ends == [None] * 6, ends
    answers = {(kit / "run" / "answers.json").read_bytes() for kit in found}
    assert len(answers) == 1  # the same at every process
    for kit in found[3:]:
        text = (kit / "run" / "answers.txt").read_text(encoding="utf-8")
        assert "age: south differs from the others" in text and "months for years" in text
        assert Schema.read(kit / "run" / "schema.toml").found is not None
        report = json.loads((kit / "run" / "report.json").read_text(encoding="utf-8"))
        assert {(each["column"], each["site"]) for each in report["outcome"]["differences"]} == {
            ("age", "south"), ("died", "south")
        }  # fmt: skip


def test_a_meeting_is_rehearsed_without_anybodys_permission(tmp_path: Path) -> None:
    kits(tmp_path)
    done = command("rehearse", tmp_path / "kits")
    assert done.returncode == 0 and "nothing was spent" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("[limits]\nby_owner = true", breaks("together", "[limits]")),
        ('[stats]\nqueries = ["count"]', breaks("usage", "[stats]")),
    ],
)
def test_a_coordinator_allows_nothing_for_others(limits: str, words: Rule, tmp_path: Path) -> None:
    with refuses(words):
        kits(tmp_path, limits)


def test_words_are_named_on_the_page_in_the_schema_and_in_a_model_by_it(tmp_path: Path) -> None:
    """Of 2,700 records 1,350 have each word: 30 deviations of its code at epsilon 1. A hostile word in a list of words
    that is nobody's is passed over, and what would be markup is escaped."""
    table = together_of("nobody")
    table["ward"] = ["<b>east</b>" if k % 2 else "west-side" for k in range(len(table["age"]))]
    records = written(tmp_path / "all.csv", table)
    (tmp_path / "words.txt").write_text("<b>east</b>\nwest-side\n\u202egnipoh\n", encoding="utf-8")
    given = ("--csv", records, "--owners-column", "site", "--target", "died", "--epsilon", "1", *CLEAR)
    done = command("meet", *given, "--name", "sex", "--name", "ward", "--word-list", tmp_path / "words.txt", "--out",
                   tmp_path / "met")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "f [bucket" in done.stdout and "west-side [bucket" in done.stdout and "\u202e" not in done.stdout
    page = (tmp_path / "met" / "answers.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;east&lt;/b&gt; [bucket" in page and "<b>east" not in page
    schema = Schema.read(tmp_path / "met" / "schema.toml")
    features = [feature for feature in schema.feature_names if feature.startswith(("sex=", "ward="))]
    assert {name.rpartition(" [#")[0] for name in features} == {"sex=f", "sex=m", "ward=<b>east</b>", "ward=west-side"}
    given = ("--csv", records, "--schema", tmp_path / "met" / "schema.toml", "--owners-column", "site")
    rest = ("--epsilon", "2", "--delta", "1e-5", *CLEAR, "--no-evaluate", "--out", tmp_path / "run")
    trained = command("train", *given, *rest)
    assert trained.returncode == 0, trained.stderr
    assert any(name.startswith("sex=f [#") for name in read_model(tmp_path / "run").schema.feature_names)
    unnamed = command("meet", "--csv", records, "--owners-column", "site", "--epsilon", "1", *CLEAR)
    assert unnamed.returncode == 0 and "f [bucket" not in unnamed.stdout


def test_words_on_no_list_are_opened_by_a_second_release(tmp_path: Path) -> None:
    """By three parties: 1,200 records have each of two words at epsilon 2, where 30 are enough, and 300 a word alone.
    The account counts both releases, and the schema carries the sum."""
    table = together_of("nobody")
    n = len(table["age"])
    table["ward"] = [f"Žižkov <i>{k % 2}</i>" if k < 2400 else f"alone {k}" for k in range(n)]
    records = written(tmp_path / "all.csv", table)
    given = ("--csv", records, "--owners-column", "site", "--column", "ward", "--target", "died", "--epsilon", "1",
             "--spell", "ward", "--spell-epsilon", "2", "--data-id", "ours")  # fmt: skip
    dry = command("meet", *given, "--dry")
    assert dry.returncode == 0 and "words of ward, in a release of their own" in dry.stdout, dry.stderr
    assert "30 records" in dry.stdout and "MB in " in dry.stdout
    done = command("meet", *given, "--out", tmp_path / "met")
    assert done.returncode == 0, done.stderr
    words = (tmp_path / "met" / "words.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(words) == ["Žižkov <i>0</i>", "Žižkov <i>1</i>"]
    assert "with the meeting: epsilon = 3, delta = 2e-05" in done.stderr and "alone" not in done.stdout
    page = (tmp_path / "met" / "answers.html").read_text(encoding="utf-8")
    assert "&lt;i&gt;0&lt;/i&gt; [bucket" in page and "<i>" not in page
    schema = Schema.read(tmp_path / "met" / "schema.toml")
    assert [(found.epsilon, found.delta) for found in schema.found] == [(3.0, 2e-5)]
    assert {name.rpartition(" [#")[0] for name in schema.feature_names if "ward" in name} >= {
        "ward=Žižkov <i>0</i>", "ward=Žižkov <i>1</i>",
    }  # fmt: skip
    spent = _epsilons(json.loads(command("budget", "--json").stdout))
    assert 2.0 < max(spent) < 3.0  # a Gaussian release of 1 and one of 2
    seen = command("verify", tmp_path / "met" / "words", "--structure")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    short = command("meet", *given, "--budget", "2.7,1e-4", "--out", tmp_path / "short")
    assert short.returncode == 2 and "budget" in short.stderr
    assert not (tmp_path / "short" / "words.txt").exists() and (tmp_path / "short" / "answers.html").exists()


def test_words_are_opened_of_columns_that_are_compared() -> None:
    table = together_of("nobody")
    for given in ({"spell": ("site",)}, {"spell_epsilon": 1.0}, {"spell": ("sex",), "parties": 2}):
        with pytest.raises(UsageError):
            dpmpc.meet(table, ["sex"], owners="site", engine="mpc", **given)
    clear = dpmpc.meet(table, ["sex"], owners="site", spell=("sex",), epsilon=1.0, engine="clear")
    assert clear.opened is not None and set(clear.opened.found["sex"]) == {"f", "m"}


def test_a_target_of_two_words_is_drafted_where_they_are_named() -> None:
    table = together_of("nobody")
    table["died"] = ["yes" if died else "no" for died in table["died"]]
    met = dpmpc.meet(table, owners="site", target="died", named=("died",), epsilon=1.0, engine="clear")
    assert met.schema is not None and 'positive = ["yes"]' in met.schema and 'negative = ["no"]' in met.schema
    assert dpmpc.meet(table, owners="site", target="died", epsilon=1.0, engine="clear").schema is None


def test_named_columns_keep_their_bound() -> None:
    from dpmpc.meeting.source import MeetingSource

    plain, named = MeetingSource(("a", "b"), 3), MeetingSource(("a", "b"), 3, named=("b",))
    assert plain.spread.l2 == 2.0 and 2.0 < named.spread.l2 < 2.0 * 1.0308
    assert named.block == plain.block and named.coordinates > plain.coordinates


def test_sites_open_words_from_their_kits(tmp_path: Path) -> None:
    """[source.naming]: each site sums up its own votes; what is opened is the same everywhere, and of all together: a
    word that one site alone has 119 times is, at epsilon 2, one that a single record has is not (a false
    alarm takes 5 deviations of the noise, 3e-7)."""
    sites = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(own_addresses(3)[1::2]))
    sites += "".join(f'[[owners]]\nname = "{name}"\nrecords = {EACH}\n' for name in SITES)
    text = TOML.format(sites=sites, limits="").replace("epsilon = 0.5", "epsilon = 2")
    head, _, rest = text.partition("[meet]")
    asked = '[source.naming]\ncolumns = ["sex"]\ncells = 64\n[privacy]'
    (tmp_path / "consortium.toml").write_text(head + asked + rest.partition("[privacy]")[2], encoding="utf-8")
    write_kits(read_consortium(tmp_path / "consortium.toml"), tmp_path / "kits", tmp_path / "authority")
    for name in SITES:
        table = columns(name, "nobody")
        if name == "west":
            table["sex"][:120] = ["divers"] * 119 + ["rarely"]
        written(tmp_path / "kits" / name / "records.csv", table)
    found = [tmp_path / "kits" / name for name in ("p0", "p1", "p2", *SITES)]
    ends = together([
        lambda kit=kit: join(  # type: ignore[misc]
            kit, Joining.of(csv=str(kit / "records.csv") if kit.name in SITES else None, wait=60.0), lambda event: None
        )
        for kit in found
    ])  # fmt: skip
    assert ends == [None] * 6, ends
    words = {(kit / "run" / "words.txt").read_text(encoding="utf-8") for kit in found}
    assert [sorted(each.split()) for each in words] == [["divers", "f", "m"]]
    rehearsed = command("rehearse", tmp_path / "kits")
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr
