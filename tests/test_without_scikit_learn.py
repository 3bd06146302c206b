"""Where scikit-learn (or Flower) is not installed: what needs it says so in one line before anything is spent, and all
else goes."""

import subprocess
import sys
from pathlib import Path

_HIDDEN = """
import importlib.util, sys
found = importlib.util.find_spec
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
importlib.util.find_spec = lambda name, package=None: None if name == "sklearn" else found(name, package)
"""


def _said(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _HIDDEN + code], cwd=folder, capture_output=True, text=True, check=False
    )


def _command(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return _said(f"from dpmpc.cli.main import main; main({words.split()!r})", folder)


def test_what_needs_scikit_learn_says_so_in_a_line(tmp_path: Path) -> None:
    way_out = "scikit-learn, which is not installed; pip install scikit-learn"
    trained = "train --epsilon 1 --delta 1e-4 --out run"
    for words, what in (
        (f"{trained} --data breast-cancer --owners 3", "--data breast-cancer is a set of"),
        (f"{trained} --data iris --owners 3", "--data iris is a set of"),
        (f"{trained} --csv none.csv --target y --baseline", "--baseline needs"),
    ):
        done = _command(words, tmp_path)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"error: {what} {way_out}")
    assert not list(tmp_path.rglob("*ledger*"))
    done = _said("from dpmpc.estimators import PrivateRidge", tmp_path)
    assert done.stderr.splitlines()[-1] == f"dpmpc.errors.UsageError: dpmpc.estimators needs {way_out}"


def test_names_that_need_it_are_not_there_and_say_why(tmp_path: Path) -> None:
    """For hasattr, completion and getmembers; the attribute itself names the package. So with Flower."""
    code = """
import inspect, sys
sys.modules["flwr"] = None
import dpmpc.estimators, dpmpc.flower
from dpmpc.errors import NotInstalledError, UsageError
for package, name, other in (dpmpc.estimators, "PrivateRidge", "__all__"), (dpmpc.flower, "ask", "prepare"):
    assert name in dir(package) and not hasattr(package, name) and hasattr(package, other)
    seen = dict(inspect.getmembers(package))
    assert name not in seen and (other in seen or other == "__all__")
    try:
        getattr(package, name)
    except AttributeError as error:
        print(isinstance(error, UsageError), error)
    try:
        exec(f"from {package.__name__} import {name}")
    except UsageError as error:
        print(isinstance(error, AttributeError), error)
"""
    done = _said(code, tmp_path)
    needs = "dpmpc.estimators needs scikit-learn, which is not installed; pip install scikit-learn"
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[:2] == [f"True {needs}", f"False {needs}"]
    assert [line.partition(" ")[0] for line in said[2:]] == ["True", "False"]
    assert all("dpmpc.flower needs Flower; " in x and x.endswith("pip install 'flwr[simulation]'") for x in said[2:])


def test_a_command_that_reaches_an_import_of_it_says_so_too(tmp_path: Path) -> None:
    code = """
from dpmpc.cli import main
def body(*words, **options):
    from sklearn.metrics import r2_score
main.group.main = body
main.main(["about"])
"""
    done = _said(code, tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: this needs scikit-learn, which is not installed; pip install scikit-learn\n"


def test_a_first_model_needs_none_of_it(tmp_path: Path) -> None:
    assert _command("example hospitals", tmp_path).returncode == 0
    done = _command(
        "train --csv hospitals.csv --target readmitted --owners-column site --epsilon 1 --delta 1e-5 --out run "
        "--account none",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert _command("predict run --csv new_patients.csv", tmp_path).returncode == 0
    assert _command("report run", tmp_path).returncode == 0
