"""The account of what has no name: a folder of this process and of its workers, which goes with it."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_SHARED = "DPMPC_PROCESS_ACCOUNT"  # where this process and its workers count


def process_folder() -> Path:
    """Where what has no name counts: for this process and those that it starts from now on; removed when it ends."""
    given = os.environ.get(_SHARED)
    if given and Path(given).is_dir():
        return Path(given)
    folder = tempfile.mkdtemp(prefix="dpmpc-account-")
    atexit.register(_remove, folder, os.getpid())
    return share_process_folder(folder)


def share_process_folder(folder: Path | str) -> Path:
    """Counts what has no name in this folder from now on: that of the process whose worker this is."""
    os.environ[_SHARED] = str(folder)
    return Path(folder)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked
        shutil.rmtree(folder, ignore_errors=True)
