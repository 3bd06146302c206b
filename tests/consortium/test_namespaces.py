"""A consortium over networks of its own: sites on machines that share nothing but a bridge, one behind a proxy, one
with an IPv6 address. Where the kernel gives users no such networks, the loopback tests stand alone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.mpc.transport.credentials import make_request, sign_request
from tests import namespaces
from tests.runs import HANG

_TRY = "ip link add hub type bridge && ip -6 addr add fd77::1/64 dev hub && unshare -n true && nsenter -t $$ -n true"


def why_not() -> str:
    """Why this machine has no networks to give; empty where it has."""
    if missing := [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]:
        return f"no {missing[0]} here"
    done = subprocess.run(["unshare", "-Urn", "sh", "-c", _TRY], capture_output=True, text=True, check=False)
    return f"the kernel gives no networks of one's own: {done.stderr.strip()[:80]}" if done.returncode else ""


def test_sites_behind_a_bridge_a_proxy_and_ipv6(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    founding = Founding(addresses=namespaces.CALLED, records=(30, 30, 30), role="both", iterations=3, delta=1e-4)
    text = text_of(founding).replace('# listen = "0.0.0.0:11365"', '# listen = "x"')
    second = f'address = "{namespaces.CALLED[1]}"\n'
    assert text.count(second) == 1
    (tmp_path / "consortium.toml").write_text(text.replace(second, f'{second}listen = "{namespaces.INNER}"\n'))
    kits = tmp_path / "kits"
    write_kits(read_consortium(tmp_path / "consortium.toml"), kits, tmp_path / "authority")
    rng = np.random.default_rng(3)
    for i in range(3):
        keys = kits / f"site{i}" / "keys"
        sign_request(tmp_path / "authority", make_request(keys, f"site{i}"), f"site{i}", keys)
        ages = rng.integers(0, 100, 30)
        rows = [f"{age},{'fm'[age % 2]},{'ill' if age > 50 else 'well'}" for age in ages]
        (tmp_path / f"{i}.csv").write_text("\n".join(["age,sex,outcome", *rows]) + "\n")
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        ["unshare", "-Urn", sys.executable, namespaces.__file__, kits],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["codes"] == [0, 0, 0], found["output"]
    models = [np.load(kits / f"site{i}" / "run" / "model.npz")["theta"] for i in range(3)]
    assert np.any(models[0]) and all(np.array_equal(model, models[0]) for model in models)
    plan = read_consortium(tmp_path / "consortium.toml").plan
    # all that party 0 sent party 1, and what owners 0 and 2 sent it, went through the proxy
    assert min(found["proxied"]) > 2 * 3 * 8 * plan.dimension
