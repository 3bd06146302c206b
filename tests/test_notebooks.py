"""Every object as the last line of a cell, in a kernel: HTML and text, no error, a bar, pictures in place."""

from pathlib import Path

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tests.notebooks import run_cells

MADE = """
import numpy as np, pandas as pd, dpmpc, matplotlib, warnings
matplotlib.use("module://matplotlib_inline.backend_inline")
from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
rng = np.random.default_rng(3)
n = 600
frame = pd.DataFrame({
    "site": rng.choice(["a", "b"], n), "age": rng.integers(18, 90, n), "sex": rng.choice(["f", "m"], n),
    "ill": rng.choice(["no", "yes"], n),
})
bounds = {"age": [18, 90], "sex": ["f", "m"], "ill": ["no", "yes"]}
by = dict(epsilon=4.0, delta=1e-5, engine="clear")
found = dpmpc.stats(frame, ["table1 by ill", "mean(age)"], owners="site", bounds=bounds, hopeless="allow", **by)
made = dpmpc.synth(frame, owners="site", bounds=bounds, rows=50, **by)
run = dpmpc.train("run", records=frame, target="ill", owners_column="site", basis="additive", iterations=5, **by)
X, y = frame[["age"]], frame.ill
fitted = PrivateLogisticRegression(bounds={"age": [18, 90]}, classes=["no", "yes"], iterations=3, data_id="n1", **by)
ridge = PrivateRidge(bounds={"age": [18, 90]}, target_bounds=(18, 90), iterations=3, data_id="n2", **by)
"""
OBJECTS = (
    "found", "found.table()", "found.plan", "made", "run", "run.model", "run.model.additive", "run.report",
    "run.predict(frame)", "fitted.fit(X, y)", "ridge.fit(X, frame.age)", "fitted.guarantee_", "fitted.report_",
    "found.frame()", "made.statistics",
)  # fmt: skip
PICTURES = ("found.plot()", "made.plot()", "run.plot()", "run.model.plot()", "run.predict(frame).plot()")


def test_a_notebook_shows_every_object(tmp_path: Path) -> None:
    first, *rest = run_cells([MADE, *OBJECTS, *PICTURES], tmp_path)
    said = "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in first)
    assert all(f"{name}:" in said or f"{name}," in said for name in ("train", "stats", "synth")), first  # the bars
    for code, outputs in zip([*OBJECTS, *PICTURES], rest, strict=True):
        assert all(output["output_type"] != "error" for output in outputs), code
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert "text/plain" in kinds, code
        assert ("image/png" if code in PICTURES else "text/html") in kinds, code
