"""Tables that all parties must have alike do not hang on mpmath's precision, which threads of a process share."""

import ast
from pathlib import Path
from typing import Any

import mpmath
import pytest

import dpmpc
from dpmpc.circuits import approximation, laplace
from dpmpc.learning.quantile_of_noise import upper_quantile


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a function lower mpmath's precision each time that it is called, as another thread may at any moment."""

    def lower(module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(*args: Any) -> Any:
            mpmath.mp.prec = 20
            return real(*args)

        monkeypatch.setattr(module, name, called)

    monkeypatch.setattr(mpmath.mp, "prec", 53)
    return lower


def test_the_laplace_sampler_is_the_same_whatever_others_do_to_mpmath(lowered: Any) -> None:
    expected = laplace.plan_laplace.__wrapped__(1234.5)
    lowered(laplace, "AliasTable")
    assert laplace.plan_laplace.__wrapped__(1234.5) == expected


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_polynomials_are_the_same_whatever_others_do_to_mpmath(law: Any, lowered: Any) -> None:
    expected = [list(map(str, row)) for row in approximation._polynomials.__wrapped__(law)]
    lowered(approximation, "segment_value")
    assert [list(map(str, row)) for row in approximation._polynomials.__wrapped__(law)] == expected


def test_a_survey_s_quantile_is_the_same_whatever_others_do_to_mpmath() -> None:
    expected = upper_quantile.__wrapped__(0.0123)
    with mpmath.workprec(20):
        assert upper_quantile.__wrapped__(0.0123) == expected


@pytest.mark.slow
def test_no_code_works_at_the_precision_that_threads_share() -> None:
    """Of mpmath's module only contexts of one's own are used: each other name works at, or sets, what all share."""
    used = set()
    folders = [Path(dpmpc.__file__).parent, Path(approximation.__file__).resolve().parent]
    for path in {path.resolve() for folder in folders for path in folder.rglob("*.py")}:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "mpmath" in text else ():  # to parse all takes seconds
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mpmath":
                used.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module == "mpmath":
                used |= {name.name for name in node.names}
    assert used == {"MPContext"}
