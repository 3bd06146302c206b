"""Every example, one after the other; one that needs a package that is not installed here is left out, and named.

python examples/run_all.py
"""

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = {  # file -> (what it needs, arguments)
    "sklearn_estimators.py": ((), ()),
    "numpy_network.py": ((), ()),
    "federated_averaging.py": ((), ()),
    "flower_digits.py": (("flwr", "ray"), ()),
    "mpyc_mean.py": ((), ("-M3", "--no-log", "-B", "PORTS")),
    "torch_mlp.py": (("torch",), ()),
    "three_sources.py": (("psycopg", "initdb"), ()),
}


def installed(name: str) -> bool:
    """Whether a package, or Debian's PostgreSQL server, is here."""
    if name == "initdb":
        return bool(shutil.which(name) or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))
    return importlib.util.find_spec(name) is not None


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody has: MPyC would wait for ever for a party whose port is taken."""
    for base in range(20_000, 60_000, count):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for k in range(count):
                held.enter_context(socket.socket()).bind(("", base + k))
            return base
    raise OSError(f"no {count} ports in a row are free")


def main() -> int:
    """0 if all that could run did."""
    left_out, failed = [], []
    for name, (needs, arguments) in EXAMPLES.items():
        missing = [need for need in needs if not installed(need)]
        if missing:
            print(f"== {name}: left out, for {', '.join(missing)} is not installed", flush=True)
            left_out.append(name)
            continue
        print(f"== {name}", flush=True)
        begin = time.perf_counter()
        arguments = tuple(str(free_ports(3)) if each == "PORTS" else each for each in arguments)
        code = subprocess.run([sys.executable, str(HERE / name), *arguments], check=False).returncode
        print(f"== {name}: {'done' if code == 0 else f'FAILED ({code})'} in {time.perf_counter() - begin:.0f} s")
        failed += [name] * (code != 0)
    ran = len(EXAMPLES) - len(left_out) - len(failed)
    print(
        f"{ran} examples ran, {len(left_out)} left out, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
