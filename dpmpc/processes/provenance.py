"""Which code a result comes from."""

import importlib.metadata
import platform
import subprocess
from pathlib import Path

_PACKAGES = ("dpmpc", "numpy", "mpyc", "gmpy2", "scipy", "cryptography")


def software() -> dict[str, str]:
    """The versions of what runs here."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {**versions, "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}"}


def commit() -> str | None:
    """The commit that is checked out, with `+` when files that are tracked differ from it; None outside a
    repository.
    """
    here = Path(__file__).resolve().parent

    def git(*command: str) -> str | None:
        try:
            done = subprocess.run(("git", "-C", str(here), *command), capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    head = git("rev-parse", "--short=12", "HEAD")
    if head is None or git("ls-files", "--error-unmatch", __file__) is None:
        return None  # installed: a repository around site-packages is not ours
    return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
