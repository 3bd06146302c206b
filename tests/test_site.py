"""The documentation site: what is generated is whole, pages that run become notebooks, and the check finds faults."""

import json
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import dpmpc
from dpmpc import errors
from dpmpc.cli.commands import COMMANDS
from website import check, figures, hooks, installed, measured, raised, reference, tutorials

ROOT = Path(__file__).parents[1]
NAV = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]


def named(nav: object) -> list[str]:
    """The pages of a menu."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else []
    return [page for part in parts for page in named(part)]


def test_every_page_has_one_place_in_the_menu_and_every_place_a_page() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages -= {page for page in pages if page.startswith("notes/")}  # for who works on it, not on the site
    made = {*hooks.GENERATED, *hooks.TEXTS.values(), "examples/index.md"}
    assert not pages & made
    assert sorted(named(NAV)) == sorted(pages | made)


def test_the_reference_has_every_command_name_and_class() -> None:
    commands = reference.commands()
    assert all(f"\n## dpmpc {name}\n" in commands for name in COMMANDS) and "\n### dpmpc keys sign\n" in commands
    assert "\\[default: 3000\\]" in commands
    python = reference.python()
    assert all(f".{name}\n" in python for name in dpmpc.__all__)
    codes = reference.exit_codes()
    for kind in (errors.UsageError, errors.PeerError, errors.CheatError, errors.OwnerError):
        assert f"| {kind.exit_code} | `{kind.__name__}` |" in codes
    consortium = reference.consortium()
    assert all(f"`{key}`" in consortium for key in ("data_id", "min_owners", "listen", "epsilon", "security_bits"))
    assert all(f"`{key}`" in reference.limits() for key in ("epsilon", "threshold", "neighbours", "budget"))
    assert all(f'kind = "{kind}"' in reference.schema() for kind in ("number", "category", "date", "label"))


def test_errors_are_read_off_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a grep for `raise` finds in a source of a few lines, with what is filled in and the way out."""
    source = (
        "class OddError(UsageError): pass\n"
        "def f(n):\n    raise OddError(f'n is odd; got {n}; ' + f'use <<parties={n + 1}>>')\n"
        "def g(text):\n    raise UsageError(text)\n"
        "def h():\n    raise ValueError('not ours')\n"
    )
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "odd.py").write_text(source)
    monkeypatch.setattr(raised, "ROOT", tmp_path)
    monkeypatch.setattr(raised, "BASES", {"UsageError"})
    (message,) = raised.raised()["Command line"]
    assert message.rule == "n is odd; got {n}" and message.kind == "OddError"
    assert message.remedy == "use `parties={…}`"


def test_most_errors_say_the_way_out() -> None:
    found = [message for messages in raised.raised().values() for message in messages]
    assert len(found) > 500
    without = [message.rule for message in found if not message.remedy]
    assert len(without) <= 15, without  # last words of another process, which have none


def test_a_notebook_has_the_page_s_words_and_blocks_in_order() -> None:
    text = (
        "# A\n\nWords.\n\n```sh\necho 1\n```\n\n```text output\n1\n```\n\nMore.\n\n```python\nprint(2)\n```\n\n"
        "```python no-run\nnever()\n```\n"
    )
    assert [(block.language, block.text) for block in tutorials.blocks(text)] == [
        ("sh", "echo 1\n"), ("python", "print(2)\n"),
    ]  # fmt: skip
    cells = json.loads(tutorials.written(text))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code", "markdown"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == ["%%sh\necho 1", "print(2)"]
    assert "never()" in "".join(cells[-1]["source"]) and not any("output" in "".join(c["source"]) for c in cells)
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_pages_that_run_are_run_and_filled(tmp_path: Path) -> None:
    text = "```sh\necho old > file\n```\n\n```python\nx = open('file').read()\nprint(x, end='')\n```\n"
    text += "\n```text output\n?\n```\n"
    text += "\n```python\nprint(x + 'new', end='')\n```\n\n```text output\n?\n```\n"
    found = tutorials.blocks(text)
    printed = tutorials.run(found, tmp_path)
    assert printed == ["", "old\n", "old\nnew"]
    new = tutorials.filled(text, found, printed, tmp_path)
    assert "?" not in new and tutorials.filled(new, tutorials.blocks(new), printed, tmp_path) == new
    with pytest.raises(tutorials.subprocess.CalledProcessError):
        tutorials.run(tutorials.blocks("```sh\nfalse\ntrue\n```\n"), tmp_path)


def test_every_start_page_runs_something() -> None:
    pages = {path.stem for path in tutorials.pages() if path.parent.name == "start"}
    assert pages == {path.stem for path in (ROOT / "docs" / "start").glob("*.md")} - {"index"}
    for path in (ROOT / "docs" / "start").glob("*.md"):
        for block in tutorials.blocks(path.read_text()):
            assert block.output is None or path.read_text()[slice(*block.output)].strip(), f"{path.name} shows nothing"


def page(body: str, head: str = "<title>T</title>") -> str:
    return f"<!doctype html><html lang='en'><head>{head}</head><body><h1 id='top'>T</h1>{body}</body></html>"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<a href='none.html'>x</a>", "none.html leads nowhere"),
        ("<a href='other.html#none'>x</a>", "other.html#none names no place there"),
        ("<img src='p.png'>", "a picture without a text: p.png"),
        ("<script src='https://cdn.example/x.js'></script>", "fetched from elsewhere: https://cdn.example/x.js"),
        ("<h1>again</h1>", "2 first headings instead of one"),
    ],
)
def test_the_check_finds(body: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "p.png").touch()
    (tmp_path / "other.html").write_text(page(""))
    links = "<a href='other.html#top'>x</a><a href='https://elsewhere.example'>y</a>"
    (tmp_path / "index.html").write_text(page(links))
    assert list(check.faults(tmp_path)) == []
    (tmp_path / "index.html").write_text(page(body))
    assert list(check.faults(tmp_path)) == [f"index.html: {said}"]


def test_links_that_leave_the_pages_lead_to_the_site_s_places() -> None:
    copies: dict[str, Path] = {}
    text = (
        "[a](../examples/torch_mlp.py) [b](../CHANGELOG.md#x) [c](privacy.md) ![d](../benchmarks/results/parties.png)"
    )
    moved = hooks.relinked(text, ROOT / "docs" / "python.md", "python.md", copies)
    assert moved == (
        "[a](examples/torch_mlp.md) [b](project/changelog.md#x) [c](privacy.md) "
        "![d](files/benchmarks/results/parties.png)"
    )
    assert list(copies) == ["files/benchmarks/results/parties.png"]


def test_no_figure_in_prose_is_stale(tmp_path: Path) -> None:
    """What stands between marks is what the result files say; a file that changes is noticed."""
    assert list(figures.stale()) == []
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "r.csv").write_text("m,error\n1,2.345\n10,6.789\n")
    (tmp_path / "docs" / "r.json").write_text('{"a": [{"b": 0.12345}]}')
    text = "It is <!--= docs/r.csv m=10 : error .1f -->?<!--=--> and <!--= docs/r.json a 0 : b .0% -->?<!--=-->.\n"
    (tmp_path / "README.md").write_text(text)
    assert list(figures.stale(write=True, root=tmp_path)) == ["README.md"]
    assert figures.re.sub("<!--.*?-->", "", (tmp_path / "README.md").read_text()) == "It is 6.8 and 12%.\n"
    assert list(figures.stale(root=tmp_path)) == []
    (tmp_path / "docs" / "r.csv").write_text("m,error\n10,6.9\n")
    assert list(figures.stale(root=tmp_path)) == ["README.md"]
    (tmp_path / "docs" / "r.csv").write_text("m,error\n11,6.9\n")
    with pytest.raises(KeyError, match="0 rows with m=10"):
        list(figures.stale(root=tmp_path))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("method=ours : mean(error) .2f-", ".20"),
        ("method=ours : min(error) .1f", "0.1"),
        ("method=ours : max(error) .1f", "0.3"),
        ("method=ours|alone : count(error) .0f", "4"),
        ("method=ours seed=1 : error/of .3f", "0.025"),
        ("method=ours less method='one copy' : mean(error) +.2f-", "-.40"),
        ("by=seed method=ours less method='one copy' : mean(error) +.2f-", "-.25"),
        ("by=set method='one copy' : max(error) .2f", "0.80"),
        ("method=ours seed=1 over method=ours seed=2 : error .2f-", ".50"),
        ("method=ours seed=1 below method=ours seed=3 : error .1f", "66.7"),
        ("by=seed method=ours over method='one copy' : mean(error) .2f", "0.37"),
    ],
)
def test_a_figure_may_be_of_several_rows(asked: str, said: str, tmp_path: Path) -> None:
    """By hand: ours has .1, .2, .3; one copy .3, .5 and, of a seed and a set of its own, .9 and .7."""
    (tmp_path / "r.csv").write_text(
        "method,set,seed,error,of\nours,a,1,.1,4\nours,a,2,.2,4\nours,a,3,.3,4\nalone,a,1,.9,4\n"
        "one copy,a,1,.3,4\none copy,a,2,.5,4\none copy,b,4,.9,4\none copy,b,5,.7,4\n"
    )
    (tmp_path / "README.md").write_text(f"It is <!--= r.csv {asked} -->?<!--=-->.\n")
    (tmp_path / "docs").mkdir()
    assert list(figures.stale(write=True, root=tmp_path)) == ["README.md"]
    assert f"-->{said}<!--=-->" in (tmp_path / "README.md").read_text()


def test_a_figure_may_be_of_a_line_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('sites|own ranges|2.0,1,2\nsites|survey|2.0,4,5\n"a, beta = -0.5",8\n')
    for where, said in (("line=*sites|survey*", "4.5"), ('line="a, beta = -0.5"', "8.0")):
        assert figures.value(tmp_path, "r.csv", where, "mean(number)", ".1f") == said
    assert figures.value(tmp_path, "r.csv", "line=*own*2.0* over line=*survey*", "max(number)", ".1f") == "0.4"
    with pytest.raises(KeyError, match="0 rows with line=sites"):
        figures.value(tmp_path, "r.csv", "line=sites", "mean(number)", ".1f")


def test_a_figure_of_several_rows_has_to_say_what_of_them(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("method,error\nours,1\nours,2\n")
    for asked, named in (("method=ours", "2 rows"), ("method=theirs", "0 rows"), ("by=error less method=x", "0 rows")):
        with pytest.raises(KeyError, match=f"r.csv: {named} with"):
            figures.value(tmp_path, "r.csv", asked, "error", ".1f")


def test_the_page_on_installing_knows_every_package_that_is_installed() -> None:
    """By name, down to what packages need themselves; what it says of them stands in its result file."""
    needed, seen = ["dpmpc"], set[str]()
    while needed:
        name = needed.pop()
        if name not in seen:
            seen.add(name)
            asked = map(Requirement, metadata.requires(name) or ())
            needed += [each.name.lower() for each in asked if not each.marker or each.marker.evaluate({"extra": ""})]
    assert {installed.group(name) for name in seen} == set(installed.GROUPS)
    page = (ROOT / "docs" / "project" / "install.md").read_text(encoding="utf-8")
    assert {f"what={group} :" in page for group in installed.GROUPS} == {True}


def test_the_command_that_is_measured_is_the_one_that_pages_say() -> None:
    """And the one by which the wheel is tried."""
    said = {
        "README.md": "pip install {} ./dpmpc-*.whl", "docs/index.md": "pip install {} ./dpmpc-*.whl",
        "docs/project/install.md": "pip install {} dpmpc-", ".ci/wheel": "-m pip install {} --quiet",
    }  # fmt: skip
    for path, command in said.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        assert command.format(*installed.OPTIONS) in text, path
        assert "pip install ./dpmpc" not in text and "pip install dpmpc" not in text, path


# pip with a name of ours that is no file: a registry would be asked, where a stranger may own it.
BARE = re.compile(
    r"""pip\s+(?:install|wheel|download)\b[^\n`;,#]*?[ '"]dpmpc(?=[\[\s'"`=<>~!;,)]|$)|dpmpc\[(?=[a-z]+\])"""
)
FILES = (".py", ".md", ".toml", ".yaml", ".yml", ".service", ".ipynb", "")


def joined(text: str) -> str:
    """A program's text with what it says on several lines as one."""
    return re.sub(r"""["']\s*\n\s*f?["']""", "", text)


def test_nothing_asks_a_registry_for_the_packages_name() -> None:
    """No page, message, kit or file of an image does; the name of a wheel or of a folder is a path."""
    places = ("dpmpc", "cli", "docs", "examples", "experiments", "packaging", "website", ".ci")
    found = [path for place in places for path in (ROOT / place).rglob("*") if path.is_file() and path.suffix in FILES]
    found += [ROOT / name for name in ("README.md", "Dockerfile", "compose.yaml", "Makefile", "CONTRIBUTING.md")]
    assert len(found) > 500
    for path in found:
        if "__pycache__" not in path.parts:
            bare = BARE.search(joined(path.read_text(encoding="utf-8", errors="replace")))
            assert bare is None, (path, bare[0])


@pytest.mark.parametrize(("text", "bare"), [
    ("pip install dpmpc", True), ("`pip install dpmpc`, say", True), ("pip install 'dpmpc[word]'", True),
    ("pip install --no-deps dpmpc==0.2.0", True), ('"pip install "\n    "\'dpmpc[arrow]\'"', True),
    ("pip install ./dpmpc-0.2.0.whl", False), ("pip install './dpmpc-0.2.0.whl[word]'", False),
    ("pip install pyarrow, and dpmpc reads it", False), ("pip install . ; dpmpc example", False),
])  # fmt: skip
def test_a_bare_name_is_seen(text: str, bare: bool) -> None:
    assert bool(BARE.search(joined(text))) == bare


def prose(path: Path) -> str:
    """A page without programs, comments, pictures and headings."""
    text = re.sub(
        r"<!--.*?-->|^```.*?^```$|^#.*?$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def test_every_table_has_its_head() -> None:
    """Rows that a blank line cuts off from theirs are shown as a line of bars."""
    for path in figures.texts():
        for table in re.findall(r"(?:^\|.*\n?)+", prose(path), re.MULTILINE):
            assert re.match(r"\|.*\n\|[ :|-]+\|\n", table), f"{path.name}: {table[:80]}"


def test_pages_that_strangers_read_have_short_sentences() -> None:
    """17 words in the mean: README, the ways in, and what someone who answers for data reads."""
    ways = [
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        *(ROOT / "docs" / f"{name}.md" for name in ("sharp-edges", "flower")),
    ]
    ways += [
        path
        for name in ("start", "howto", "answer", "explain", "project")
        for path in (ROOT / "docs" / name).glob("*.md")
    ]
    assert len(ways) > 35
    for path in ways:
        text = re.sub(r"^\|.*$", "", re.sub(r"`[^`]*`", "code", prose(path)), flags=re.MULTILINE)
        parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)]
        lengths = [len(one.split()) for part in parts for one in re.split(r"(?<=[.!?:;]) (?=\S)", part) if " " in one]
        assert sum(lengths) <= 17 * len(lengths), f"{path}: {sum(lengths) / len(lengths):.1f} words a sentence"


def test_parts_of_pages_are_written_from_result_files(tmp_path: Path) -> None:
    """Every part that there is stands on a page; one that was changed by hand, or whose file was, is noticed."""
    marks = {mark for path in figures.texts() for mark in re.findall(r"<!--# (\S+)", path.read_text(encoding="utf-8"))}
    assert marks == {*measured.PARTS, *measured.OF_PATHS}
    results, file = tmp_path / "benchmarks" / "results", "benchmarks/results/full.json"
    results.mkdir(parents=True)
    shutil.copy(ROOT / file, results)
    text = f"# Costs\n\n<!--# where {file} -->\n<!--#-->\n\nBetween.\n\n<!--# targets {file} -->\nold\n<!--#-->\n"
    (tmp_path / "README.md").write_text(text)
    assert list(figures.stale(write=True, root=tmp_path)) == ["README.md"]
    written = (tmp_path / "README.md").read_text()
    assert "2 cores for all processes" in written and "| target |" in written and "Between." in written
    assert "old" not in written and list(figures.stale(root=tmp_path)) == []
    found = json.loads((results / "full.json").read_text())
    found["machine"]["load"][0], found["machine"]["kernels"] = 31.0, "C (avx2)"
    (results / "full.json").write_text(json.dumps(found))
    assert list(figures.stale(write=True, root=tmp_path)) == ["README.md"]
    assert "Kernels: C (avx2). Load 31.0 before" in (tmp_path / "README.md").read_text()
    assert "compare rows with each other" in (tmp_path / "README.md").read_text()


def test_the_picture_is_drawn_from_its_result_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from website import picture

    monkeypatch.setattr(picture, "PICTURE", tmp_path / "drawn.svg")
    picture.draw(picture.rows())
    drawn = (tmp_path / "drawn.svg").read_text()
    assert all(f">{label}<" in drawn for label in picture.LABELS.values())
    found = {(row["noise"], int(row["owners"])): float(row["error"]) for row in picture.rows()}
    assert found["each", 1000] > found["one", 1000] + 3 > found["none", 1] + 3
    assert {m for noise, m in found if noise == "one"} == set(picture.OWNERS)
