"""A PostgreSQL server of one's own for an example or a test: on loopback, in a temporary folder, gone at the end."""

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """A running server with one database. The password is for PGPASSWORD, never for a command line."""

    url: str
    user: str
    password: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client's environment needs."""
        return {"PGUSER": self.user, "PGPASSWORD": self.password}


def server_folder() -> Path | None:
    """Where the server's programs are (Debian's package `postgresql`), or None."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    found = shutil.which("initdb")
    folders = [folder for folder in folders if (folder / "initdb").exists()]
    return folders[-1] if folders else Path(found).resolve().parent if found else None


@contextlib.contextmanager
def postgres_server() -> Iterator[Server]:
    """A server with an empty database `hospital`; it takes passwords only. It refuses root, so root runs it as another
    user. Errors: FileNotFoundError if it is not installed, CalledProcessError if it does not start."""
    programs = server_folder()
    if programs is None:
        raise FileNotFoundError("PostgreSQL's server is not installed; install Debian's package postgresql")
    user: int | None = None
    if os.getuid() == 0:
        names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
        user = names.get("postgres", names["nobody"])
    password, folder = secrets.token_urlsafe(16), Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        (folder / "password").write_text(password)
        os.chmod(folder / "password", 0o600)
        if user is not None:
            os.chown(folder, user, -1)
            os.chown(folder / "password", user, -1)
        data, log = folder / "data", folder / "log"
        run = {"user": user, "cwd": folder, "check": True, "stdout": subprocess.DEVNULL, "env": {"LC_ALL": "C.UTF-8"}}
        initdb = [programs / "initdb", "-D", data, "-U", "owner", "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        subprocess.run([*initdb, f"--pwfile={folder / 'password'}"], **run)  # type: ignore[call-overload]
        port = _start(programs, data, log, folder, run)
        try:
            server = Server(f"postgresql://127.0.0.1:{port}/hospital", "owner", password)
            create = [programs / "createdb", "-h", "127.0.0.1", "-p", str(port), "hospital"]
            subprocess.run(create, **{**run, "env": {"LC_ALL": "C.UTF-8", **server.environment}})  # type: ignore[call-overload]
            yield server
        finally:
            subprocess.run([programs / "pg_ctl", "-D", data, "stop", "-m", "immediate", "-w"], **run)  # type: ignore[call-overload]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(programs: Path, data: Path, log: Path, folder: Path, run: dict[str, object]) -> int:
    """Starts the server and returns its port, which the system chose; another process may take it first, so again."""
    for attempt in range(5):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
        try:
            start = [programs / "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start"]
            subprocess.run(start, **run)  # type: ignore[call-overload]
        except subprocess.CalledProcessError:
            if attempt == 4:
                raise
        else:
            return port
    raise AssertionError
