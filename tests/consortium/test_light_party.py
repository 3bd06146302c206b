"""A machine that is a party alone, and holds no records, does without what reads, fits and draws them: the page on
installing says which packages it needs."""

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs import HANG, dpmpc, errors_of, own_addresses, started

INSTALL = Path(__file__).parents[2] / "docs" / "project" / "install.md"
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
IMPORTED = {"scikit-learn": "sklearn"}  # under another name than it is installed
TOML = """
[run]
data_id = "made up"
tls = false
{parties}
[[owners]]
name = "north"
records = 60
[records]
target = "ill"
positive = ["yes"]
negative = ["no"]
test_fraction = 0
[records.bounds]
age = [0, 100]
[learning]
method = "gradient"
iterations = 3
step = 0.1
[privacy]
epsilon = 1
delta = 1e-4
"""
WITHOUT = """
import sys
class None_:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {banned}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, None_())
from dpmpc.cli.main import program
program()
"""


def needed() -> set[str]:
    """The packages that the page names in its command for a party."""
    (line,) = re.findall(r"^pip install (numpy .*)$", INSTALL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return set(line.split())


def all_of_them() -> set[str]:
    """What `pip install dpmpc` installs."""
    (listed,) = re.findall(r"^dependencies = \[(.*?)^\]", PROJECT.read_text(encoding="utf-8"), flags=re.M | re.S)
    return set(re.findall(r'"([a-z0-9-]+)', listed))


@pytest.mark.slow
def test_a_party_needs_the_packages_of_the_page_alone(tmp_path: Path) -> None:
    assert needed() < all_of_them()
    banned = {IMPORTED.get(name, name) for name in all_of_them() - needed()} | {"joblib", "pandas", "pyarrow"}
    addresses = own_addresses(3)[1::2]
    parties = [f'[[parties]]\nname = "p{i}"\naddress = "{address}"' for i, address in enumerate(addresses)]
    (tmp_path / "consortium.toml").write_text(TOML.format(parties="\n".join(parties)))
    (tmp_path / "north.csv").write_text("age,ill\n" + "".join(f"{k},{'yes' if k > 30 else 'no'}\n" for k in range(60)))
    made = dpmpc("kit", tmp_path / "consortium.toml", "--out", tmp_path / "kits")
    assert made.returncode == 0, made.stderr
    kits = tmp_path / "kits"
    words = [sys.executable, "-c", WITHOUT.format(banned=banned), "join", kits / "p0"]
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(started("join", kits / name)) for name in ("p1", "p2")]
        others.append(stack.enter_context(started("join", kits / "north", "--csv", tmp_path / "north.csv")))
        light = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)
        assert light.returncode == 0, light.stderr
        errors = [errors_of(process) for process in others]
    assert [process.returncode for process in others] == [0, 0, 0], errors
    assert (kits / "p0" / "run" / "model.npz").read_bytes() == (kits / "north" / "run" / "model.npz").read_bytes()
