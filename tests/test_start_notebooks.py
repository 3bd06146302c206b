"""The notebooks of the pages of Start, in examples/notebooks: as the pages are, and run as Jupyter runs them."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.notebooks import run_cells
from website.tutorials import NOTEBOOKS, environment, of_start

if not all(map(find_spec, ("nbclient", "ipykernel"))):  # to import them takes as long as all else here
    pytest.skip("Jupyter is an extra", allow_module_level=True)

FOUND = of_start()


def test_the_notebooks_are_those_of_the_pages() -> None:
    """`python -m website.tutorials --notebooks` writes them."""
    assert len(FOUND) >= 7
    assert {path.name: path.read_text(encoding="utf-8") for path in NOTEBOOKS.iterdir()} == {
        path.name: text for path, text in FOUND.items()
    }


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_the_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    text = "".join("".join(c["source"]) for c in json.loads(FOUND[path])["cells"] if c["cell_type"] == "markdown")
    for part in text.split("](")[1:]:
        target = part.partition(")")[0].partition("#")[0]
        assert not target or "://" in target or (NOTEBOOKS / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_notebook_runs_without_an_error(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert os.environ["DPMPC_ACCOUNT"].startswith(str(tmp_path))
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    for code, outputs in zip(cells, run_cells(["".join(c["source"]) for c in cells], tmp_path), strict=True):
        assert all(output["output_type"] != "error" for output in outputs), code
