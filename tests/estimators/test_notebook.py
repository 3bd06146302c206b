"""A notebook without ipywidgets, as a kernel looks to DuckDB: runs, estimators and what they show."""

import subprocess
import sys

PROGRAM = """
import logging, sys, types, warnings

class Shell:  # what DuckDB takes for a notebook's kernel
    config = {"IPKernelApp": {"name": "kernel"}}

kernel = types.ModuleType("IPython")
kernel.get_ipython = lambda: Shell()
sys.modules["IPython"] = kernel
sys.modules["ipywidgets"] = None

import duckdb, numpy as np, pandas as pd
try:
    duckdb.connect().execute("SET enable_progress_bar = false")
    print("not a notebook")
except duckdb.Error as error:
    print("ipywidgets" in str(error))

import dpmpc
from dpmpc.estimators import PrivateLogisticRegression
warnings.simplefilter("ignore")
heard = []
class Ear(logging.Handler):
    def emit(self, record):
        heard.append(record.getMessage())
logging.getLogger("dpmpc").addHandler(Ear())
logging.getLogger("dpmpc").setLevel(logging.DEBUG)
rng = np.random.default_rng(1)
frame = pd.DataFrame({"age": rng.integers(18, 90, 400), "ward": rng.choice(["in", "out"], 400)})
label = np.where(frame.age > 50, "yes", "no")
model = PrivateLogisticRegression(engine="clear", iterations=2).fit(frame, label)
print(len(model.predict(frame)))
trained = dpmpc.train(
    sys.argv[1], records=frame.assign(ill=label), target="ill", owners=2, engine="clear", iterations=2, delta=1e-5
)
shown = trained._repr_html_()
print("<svg" in shown, "AUC" in shown, len(heard) > 0)
"""


def test_a_notebook_without_ipywidgets_trains_fits_and_shows(tmp_path: object) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"{tmp_path}/run"], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-3:] == ["True", "400", "True True True"], run.stdout + run.stderr
