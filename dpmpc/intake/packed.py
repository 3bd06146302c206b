"""Compressed files of records, unpacked within measure: a file of some MB could unpack until the disk is full."""

import gzip
import shutil
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dpmpc.errors import RecordError, UsageError

_UNJUDGED = 1 << 26  # bytes that any packed file may unpack to; as much of the disk stays free
_RATIO = 1000  # of unpacked to packed bytes; tables of records stay far below
_TOO_LARGE = "a packed file of an owner unpacks to more than its machine takes"


def packing(path: Path) -> str:
    """gz, zst or nothing, by the first bytes."""
    with path.open("rb") as file:
        head = file.read(4)
    return "gz" if head[:2] == b"\x1f\x8b" else "zst" if head == b"\x28\xb5\x2f\xfd" else ""


def unpack(path: Path, plain: Path) -> None:
    """Writes a plain copy of a compressed file, or none. Errors: it is damaged, it unpacks without measure or to more
    than the disk has free."""
    kind, packed = packing(path), path.stat().st_size
    check_room(path.name, packed, max(packed, _stated(path, kind)), 0, plain.parent)
    try:
        _unpack(path, kind, packed, plain)
    except BaseException:
        plain.unlink(missing_ok=True)
        raise


def _unpack(path: Path, kind: str, packed: int, plain: Path) -> None:
    damaged = UsageError(f"a .{kind} file must be whole; {path.name} is damaged; copy it again")
    pieces, written = _inflated(path) if kind == "gz" else _zstd(path), 0
    with plain.open("wb") as out:
        while True:
            try:
                piece = next(pieces, None)
            except (OSError, EOFError, zlib.error, _zstd_error()):
                raise damaged from None
            if piece is None:
                return
            check_room(path.name, packed, written + len(piece), written, plain.parent)
            try:
                out.write(piece)
                out.flush()
            except OSError as error:
                raise UsageError(
                    f"records need room on the disk while they are read; {path.name}: {error.strerror}; free some"
                ) from None
            written += len(piece)


def check_room(name: str, packed: int, size: int, written: int, folder: Path) -> None:
    """Errors: a packed file may not unpack to so many bytes, of which some are written."""
    if size > max(_UNJUDGED, _RATIO * packed):
        raise RecordError(
            f"a packed file unpacks to at most {_RATIO:,} times its size; {name} has {packed:,} bytes and unpacks to "
            f"{size:,} or more; unpack it yourself",
            _TOO_LARGE,
        )
    free = shutil.disk_usage(folder).free
    if size - written + _UNJUDGED > free:
        raise RecordError(
            f"records need room on the disk while they are read; {name} unpacks to {size:,} bytes or more, and "
            f"{free:,} are free in {folder}; free some, or unpack it yourself on a larger disk",
            _TOO_LARGE,
        )


def _stated(path: Path, kind: str) -> int:
    """The bytes that the first part of a .zst file says that it unpacks to; 0 if it does not. What a .gz file says
    stands at its end, where a truncated one has anything."""
    if kind == "gz":
        return 0
    import zstandard

    with path.open("rb") as file:
        try:
            return max(0, int(zstandard.frame_content_size(file.read(18))))  # the longest header
        except zstandard.ZstdError:
            return 0  # damaged, as its reading will say


def _inflated(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") as file:
        yield from iter(partial(file.read, 1 << 20), b"")


def _zstd(path: Path) -> Iterator[bytes]:
    import zstandard  # only compressed files need it

    decoder = None
    with path.open("rb") as file:
        while piece := file.read(1 << 12):  # each byte may unpack to 32 kB, all at once
            while piece:
                if decoder is None or decoder.eof:  # a file may hold several frames
                    decoder = zstandard.ZstdDecompressor().decompressobj()
                yield decoder.decompress(piece) or b""
                piece = decoder.unused_data if decoder.eof else b""
    if decoder is None or not decoder.eof:
        raise EOFError


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError
