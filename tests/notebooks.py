"""Notebooks that are run as Jupyter runs them: in a kernel of this environment, on the loopback interface."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock


def run_cells(cells: Sequence[str], folder: Path, timeout: int = 300) -> list[list[dict[str, Any]]]:
    """The outputs of each cell, as a notebook file has them. Errors: nbclient's, for a cell that raises."""
    import nbformat
    from nbclient import NotebookClient

    spec = folder / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "x", "language": "python"}))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    own = {"JUPYTER_PATH": str(folder / "jupyter"), "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(folder / "ipython")}
    with mock.patch.dict(os.environ, own):
        client = NotebookClient(book, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute()
    return [cell.outputs for cell in book.cells]
