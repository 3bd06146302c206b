"""Folders to write into, and files that are there whole or not at all. Each is made here, and what keeps a folder from
being made or written is one line."""

import contextlib
import errno
import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpmpc.errors import UsageError

EMPTY = "<<{name}>> names a file or a folder; it is empty; name one, or leave it out"
OUT = "<<out>> must be a directory that can be written"
_passing: set[tuple[int, str]] = set()  # that are there: the process, and the folder
# halves of the first file of a run or of a stage, as `replaced` names them
_FIRST = ("request.json.tmp", "plan.json.tmp", "stage.whole.json.tmp")


def said_path(path: Path | str, name: str) -> Path:
    """The path that the setting of this name says. Errors: it is none, or empty, which would be the current folder."""
    if not isinstance(path, str | os.PathLike):  # a frame, say
        raise UsageError(
            f"<<{name}>> names a file or a folder; it is of type {type(path).__name__}; name one", code="path"
        )
    if not os.fspath(path):
        raise UsageError(EMPTY.format(name=name), code="path")
    return Path(path)


def make_folder(
    folder: Path, rule: str, way: str = "name another", *, private: bool = False, new: bool = False
) -> None:
    """Makes the folder and those above it; with `private` this user alone can enter it, once it is made here. `new`: it
    must not be there yet. Errors: UsageError, the rule, the folder and what the system says, the way out, where it
    cannot be made or not be written."""
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=not new)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except FileExistsError:
        said = "it is there already" if folder.is_dir() else "it is a file"
        raise UsageError(f"{rule}; {folder}: {said}; {way}", code="path") from None
    except OSError as error:
        raise UsageError(f"{rule}; {folder}: {error.strerror}; {way}", code="path") from None


def not_new(out: Path, way: str = "") -> UsageError:
    """How a folder that has to be new or empty is refused, and is not. `way`: more ways out."""
    return UsageError(f"<<out>> must be a new or empty directory; {out} is not; name another{way}", code="over")


def check_folder(folder: Path, rule: str, way: str = "name another") -> Path:
    """The folder, or the nearest one above it that is there: one that can be written, so that `make_folder` could.
    Nothing is made. Errors: as `make_folder`."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    said = ""
    if not there.is_dir():
        said = "it is a file"
    elif not os.access(there, os.W_OK | os.X_OK):
        said = os.strerror(errno.EACCES)
    if said:
        raise UsageError(f"{rule}; {there}: {said}; {way}", code="path")
    return there


@contextlib.contextmanager
def passing_folder(prefix: str = "dpmpc-", where: Path | None = None) -> Iterator[Path]:
    """A new folder of this user alone, below `where` or the system's for what is passing; it is gone at the end: all of
    it that the machine lets go. `tempfile`'s own calls itself without end where a folder may not be looked into any
    more."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix=prefix, dir=where)
    mine = (os.getpid(), folder)
    _passing.add(mine)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _passing.discard(mine)


def let_passing_go() -> None:
    """Removes the folders of `passing_folder` that this process has, before it ends on the spot: records may lie there.
    A fork's are not the starter's."""
    import shutil

    for number, folder in tuple(_passing):
        if number == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def gone_if_empty(folder: Path) -> Iterator[None]:
    """Takes a folder away at the end into which nothing was written."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


@contextlib.contextmanager
def replaced(path: Path, *, public: bool = False) -> Iterator[Path]:
    """A file beside `path` to write into, which takes its place at the end: whoever looks, also after this process was
    killed, sees all of the old file or all of the new one. After an error in the context `path` is as it was. It is of
    this user alone unless it is `public`, for other sites, say: then as the umask has it. What the machine loses when
    it fails is another matter (`processes.durable`)."""
    beside = path.with_name(f"{path.name}.tmp")
    try:
        beside.unlink(missing_ok=True)
        beside.touch(mode=0o666 if public else 0o600)
        mode = beside.stat().st_mode & 0o777
        yield beside
        beside.chmod(mode)  # of a file that a library has put in the place of ours, too
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write_file(path: Path, content: str | bytes, *, public: bool = False) -> None:
    """Writes a file whole or not at all (`replaced`); a text as UTF-8."""
    with replaced(path, public=public) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def matching(folder: Path, pattern: str) -> list[Path]:
    """The paths in `folder` whose names have this pattern, sorted; one with a / goes on in the folders that its first
    part finds. None where there is no such folder. Errors: OSError for one that cannot be listed: where `glob` finds
    nothing, a ledger may lie."""
    first, _, rest = pattern.partition("/")
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [folder / name for name in names if fnmatch.fnmatchcase(name, first)]
    return [path for one in found if one.is_dir() for path in matching(one, rest)] if rest else found


def below(folder: Path, pattern: str) -> list[Path]:
    """The files in `folder`, and in all folders in it, whose names have this pattern, sorted. Errors: OSError for one
    that cannot be listed: what lies there would be left out unseen."""

    def stop(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    walked = os.walk(folder, onerror=stop)
    return sorted(Path(at, name) for at, _, names in walked for name in names if fnmatch.fnmatchcase(name, pattern))


def sweep_halves(folder: Path) -> None:
    """Removes what `replaced` left in a folder, and in those below it, where its process was killed."""
    for beside in below(folder, "*.tmp"):
        beside.unlink(missing_ok=True)


def is_half(path: Path, folders: Sequence[str] = ()) -> bool:
    """Whether a path is what a process leaves that dies before the first file of its run is there: a half of that, or
    one of these `folders` with nothing else."""
    if path.is_dir():
        return path.name in folders and all(is_half(each) for each in path.iterdir())
    return path.name in _FIRST


def carried_on(run: Path) -> str:
    """What carries on a run that left this folder and is not finished."""
    if matching(run, "*plan*.json") and not (run / "request.json").is_file():
        return "start the same commands at all sites again, and they go on where they were"
    return "train it, or carry it on with <<resume>>"
