"""Every object as the last line of a cell, in a kernel: HTML and text, no error, a bar, pictures in place."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

if not all(map(find_spec, ("nbclient", "ipykernel"))):  # to import them takes as long as all else here
    pytest.skip("Jupyter is an extra", allow_module_level=True)

from dpmpc import estimators
from tests.notebooks import run_cells

PACKAGE = Path(__file__).resolve().parents[1] / "dpmpc"
MADE = """
import numpy as np, pandas as pd, dpmpc, matplotlib, warnings
matplotlib.use("module://matplotlib_inline.backend_inline")
from dpmpc.estimators import PrivateLogisticRegression, PrivateRegressor, PrivateRidge
from dpmpc.tables import asked, meet
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
rates = PrivateRegressor(task="median", bounds={"age": [18, 90]}, target_bounds=(0, 90), data_id="n3", **by)
shown = []
def seen(value):
    shown.append(type(value).__name__)
    return value
"""
OBJECTS = (
    "PrivateLogisticRegression()", "PrivateRidge()", "PrivateRegressor()", "fitted", "ridge", "rates",
    'asked.dry(frame, ["mean(age)"], owners="site", bounds=bounds, **by)', "found", "found.table()", "found.plan",
    'meet.dry(frame, owners="site", epsilon=4.0)', 'dpmpc.meet(frame, owners="site", epsilon=4.0)', "made", "run",
    "run.model", "run.model.additive", "run.report", "run.predict(frame)", "fitted.fit(X, y)",
    "ridge.fit(X, frame.age)", "rates.fit(X, frame.age)", "fitted.guarantee_", "fitted.report_",
    "found.frame()", "made.statistics",
)  # fmt: skip
PICTURES = ("found.plot()", "made.plot()", "run.plot()", "run.model.plot()", "run.predict(frame).plot()")


def kinds_of_objects() -> set[str]:
    """The package's classes that show themselves, and its estimators, by name as its text has them."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    shown = {name for text in texts for name in re.findall(r"^class (\w+)\(.*\bShown\)", text, re.MULTILINE)}
    html = {text.split(" def _repr_html_")[0].rpartition("\nclass ")[2] for text in texts if " def _repr_html_" in text}
    return shown | {re.split(r"\W", text)[0] for text in html} | {x for x in estimators.__all__ if "Warning" not in x}


def test_a_notebook_shows_every_object(tmp_path: Path) -> None:
    """Estimators before and after they are fitted."""
    objects = [f"seen({code})" for code in OBJECTS]
    first, *rest, names = run_cells([MADE, *objects, *PICTURES, "print(*shown)"], tmp_path)
    assert set(names[0]["text"].split()) | {"Shown"} >= kinds_of_objects() >= {"Met", "Trained", "ShownTable"}
    said = "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in first)
    assert all(f"{name}:" in said or f"{name}," in said for name in ("train", "stats", "synth")), first  # the bars
    for code, outputs in zip([*OBJECTS, *PICTURES], rest, strict=True):
        assert all(output["output_type"] != "error" for output in outputs), code
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert "text/plain" in kinds, code
        assert ("image/png" if code in PICTURES else "text/html") in kinds, code
