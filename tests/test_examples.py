"""Every example is in the list that `make examples` runs, and pages show what runs."""

import ast
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
import run_all  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]


def test_every_example_is_run() -> None:
    programs = {
        path.name
        for path in (ROOT / "examples").glob("*.py")
        if "python examples/" in (ast.get_docstring(ast.parse(path.read_text())) or "")
    }
    assert programs - {"run_all.py"} <= set(run_all.EXAMPLES)
    assert all((ROOT / "examples" / name).is_file() for name in run_all.EXAMPLES)


@pytest.mark.parametrize(
    ("page", "program", "least"), [("mpyc-programs.md", "mpyc_mean.py", 13), ("flower.md", "flower_digits.py", 5)]
)
def test_pages_show_their_examples(page: str, program: str, least: int) -> None:
    example = (ROOT / "examples" / program).read_text().splitlines()
    text = (ROOT / "docs" / page).read_text()
    block = re.findall(r"^```python no-run\n(.*?)^```", text, re.M | re.S)[0]
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) >= least and all(line in example for line in lines)


def test_a_flower_app_changes_in_fewer_than_ten_lines() -> None:
    """They are marked, and all of them are on the page."""
    example = (ROOT / "examples" / "flower_digits.py").read_text().splitlines()
    marked = [line for line in example if "  # private" in line]
    page = (ROOT / "docs" / "flower.md").read_text().splitlines()
    assert 4 <= len(marked) < 10 and set(marked) <= set(page)
    assert all("  # private" in line for line in example if "private_mod" in line or "PrivateStrategy" in line)


def test_what_is_missing_is_named_and_nothing_fails(capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(run_all, "EXAMPLES", {"x.py": (("no_such_package_here",), ())})
    assert run_all.main() == 0
    assert "left out, for no_such_package_here is not installed" in capsys.readouterr().out


def test_the_pages_names_exist() -> None:
    """Every page that the README names is there, and the table of names speaks of what the code has."""
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / target).exists(), target
    from dpmpc.planning.request import Request

    known = {
        *Request.__dataclass_fields__,
        "records",
        "releases",
        "clip",
        "sensitivity",
        "scale_steps",
        "divisor",
        "theta",
    }
    for name in ("owners", "owner_sizes", "parties", "threshold", "dimension", "iterations", "lam", "step", "scale"):
        assert f"`{name}`" in (ROOT / "docs" / "names.md").read_text() and name in known
