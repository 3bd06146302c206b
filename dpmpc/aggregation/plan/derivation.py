"""A digest of the sources by which this process derives: what sites must have alike, beside their plan.

Every process works out for itself noise, sensitivity, what follows from what was opened, and every frame. Two that do
it by other programs could disagree without a word, or agree on what one of them does not keep. So processes compare,
with the plan's digest, one over the text of these programs; it is the same for two versions of dpmpc that differ
elsewhere (commands, pages, how files are read), and those run together. What other packages bring (a source, a law, a
backend) is in it where the plan names it. It tells versions apart that mean well; who lies can send any digest.
"""

import hashlib
import inspect
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.privacy.law import LAWS

ROOMS = (
    "aggregation", "circuits", "learning", "meeting", "mpc", "noise", "privacy", "records", "statistics", "synthesis"
)  # fmt: skip
FILES = ("codec.py", "settings.py", "intake/hashing.py", "intake/spelling.py")


def derivation(plan: Asked) -> bytes:
    """32 bytes: of the sources by which this process derives what follows from the plan."""
    others = sorted(
        (kind.__module__, kind)
        for kind in (type(plan.source), type(LAWS[plan.law]), type(BACKENDS[plan.backend]))
        if kind.__module__.partition(".")[0] != "dpmpc"
    )
    found = hashlib.sha256(own())
    for name, kind in others:
        path = inspect.getsourcefile(kind)
        found.update(name.encode() + b"\0" + (b"" if path is None else _text(Path(path))))
    return found.digest()


@cache
def own() -> bytes:
    """The same of dpmpc itself. Cost: some 350 files are read, 4 MB, once a process."""
    package = find_spec("dpmpc")
    assert package is not None and package.submodule_search_locations
    root = Path(next(iter(package.submodule_search_locations)))
    return digest_of(root)


def digest_of(root: Path) -> bytes:
    """32 bytes: of names and texts of the sources in a folder that is laid out as dpmpc is."""
    found = hashlib.sha256(b"dpmpc derivation\0")
    paths = [path for room in ROOMS for path in (root / room).rglob("*.py")] + [root / name for name in FILES]
    for path in sorted(paths, key=lambda path: path.relative_to(root).as_posix()):
        text = _text(path)
        found.update(f"{path.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    return found.digest()


def _text(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")
