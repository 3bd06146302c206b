"""Standard output that takes no part of an answer with it where it cannot be written: a disk that is full, or fails."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dpmpc.errors import DpmpcError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Keeping(io.RawIOBase):
    """A descriptor; from the first write on that it refuses, a file of this user alone, whose path is then `kept`. A
    reader that has gone (a broken pipe) wanted no more."""

    def __init__(self, descriptor: int) -> None:
        self._to = io.FileIO(descriptor, "w", closefd=False)
        self.kept: Path | None = None
        self.why = ""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._to.fileno()

    def isatty(self) -> bool:
        return self._to.isatty()

    def write(self, said: "ReadableBuffer", /) -> int | None:
        try:
            return self._to.write(said)
        except BrokenPipeError:
            raise
        except OSError as error:
            if self.kept is not None:
                raise
            self._to, self.kept = _beside(error)
            self.why = error.strerror or str(error)
        return self._to.write(said)


def _beside(error: OSError) -> tuple[io.FileIO, Path]:
    """A new file where one can be made and written: here, or where what is passing is. Errors: `error` where it cannot
    be made in either."""
    import tempfile  # longer to import than many a command takes

    for folder in (os.curdir, None):
        with contextlib.suppress(OSError):
            number, name = tempfile.mkstemp(".txt", "dpmpc-output-", folder)
            return io.FileIO(number, "w"), Path(name).absolute()
    raise error


def keep_output() -> None:
    """From now on what standard output refuses is kept. For a program of its own, whose standard output it is."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError):
            buffered = io.BufferedWriter(_Keeping(stream.fileno()))
            sys.stdout = io.TextIOWrapper(
                buffered, stream.encoding, stream.errors, line_buffering=stream.line_buffering
            )


def end_output(stream: TextIO) -> None:
    """Returns when all that was said has gone there. Errors: OSError; DpmpcError, with its place, where it was kept."""
    stream.flush()
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if isinstance(raw, _Keeping) and raw.kept is not None:
        raise DpmpcError(
            f"what a command says needs somewhere to go; standard output: {raw.why}; what it did not take is in "
            f"{raw.kept}",
            code="path",
        )
