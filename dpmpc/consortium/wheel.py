"""The wheel that sites install, by its name and SHA-256: a name alone could be anybody's."""

import hashlib
import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass


@dataclass(frozen=True)
class Wheel:
    """A wheel file: its name, and its SHA-256 in hexadecimal digits."""

    name: str
    sha256: str


def wheel_of(path: Path | None = None) -> Wheel | None:
    """The wheel at `path`; without one, that from which this dpmpc was installed, as the installer noted it; None where
    it was installed from sources. Errors: UsageError: the file cannot be read, or is no wheel of dpmpc."""
    if path is None:
        return _installed()
    if not re.fullmatch(r"dpmpc-[\w.+!-]+\.whl", path.name):
        raise UsageError(
            f"<<wheel>> is a file dpmpc-*.whl; got {path.name}; name one, as `make wheel` makes it", code="file"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"<<wheel>> is a file that can be read; {path}: {error.strerror}; name another") from None
    return Wheel(path.name, hashlib.sha256(content).hexdigest())


def _installed() -> Wheel | None:
    try:
        noted = distribution("dpmpc").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    if noted is None:
        return None
    said = json.loads(noted)
    name = PurePosixPath(unquote(urlsplit(said.get("url", "")).path)).name
    archive = said.get("archive_info", {})
    digest = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").removeprefix("sha256=")
    return Wheel(name, digest) if name.endswith(".whl") and re.fullmatch(r"[0-9a-f]{64}", digest) else None


def installing(wheel: Wheel | None, home: str, version: str) -> list[str]:
    """The lines of commands that put dpmpc into an environment of its own at `home`: never by a bare name, which a
    registry may give to anybody."""
    made = f"python3 -m venv {home}"
    if wheel is None:
        return [
            f"{made}; then the wheel that all sites agreed on, from its file,",
            "  after its SHA-256 was compared with theirs (`sha256sum FILE`); never by its name alone:",
            f"  {home}/bin/pip install ./dpmpc-{version}-*.whl",
        ]
    return [
        f"echo '{wheel.sha256}  {wheel.name}' | sha256sum --check \\",
        f"  && {made} && {home}/bin/pip install ./{wheel.name}",
    ]
