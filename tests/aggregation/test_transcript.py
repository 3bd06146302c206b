"""A party's transcript and the opened vectors on disk: whole records survive a death, torn ones go."""

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.wire.transcript import (
    OpenedVectors,
    Transcript,
    digest,
    holds_nothing,
    read_opened,
    read_transcript,
)
from tests.refusals import refuses

HEAD = 16  # bytes of a file before its records
VECTORS = [np.array([k, -k, 1 << 60], dtype=np.int64) for k in range(3)]


def opened(path: Path, *numbers: int) -> bytes:
    """The file with these releases' vectors appended."""
    with contextlib.closing(OpenedVectors(path)) as file:
        for number in numbers:
            file.append(number, VECTORS[number])
    return path.read_bytes()


def test_opened_vectors_come_back(tmp_path: Path) -> None:
    opened(tmp_path / "o.bin", 0, 1)
    opened(tmp_path / "o.bin", 2)
    found = read_opened(tmp_path / "o.bin", 3)
    assert list(found) == [0, 1, 2] and all((found[k] == VECTORS[k]).all() for k in found)
    assert read_opened(tmp_path / "none", 3) == {}
    assert len({digest(vector) for vector in VECTORS}) == 3


def test_a_torn_record_is_left_out_and_the_next_attempt_writes_over_it(tmp_path: Path) -> None:
    path = tmp_path / "o.bin"
    whole = opened(path, 0, 1)
    each = (len(whole) - HEAD) // 2
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        held = max(0, cut - HEAD) // each
        assert list(read_opened(path, 3)) == [0, 1][:held] and holds_nothing(path) == (cut <= HEAD and cut in (0, HEAD))
        there = opened(path, 2)
        assert there[HEAD:] == whole[HEAD : HEAD + held * each] + opened(tmp_path / f"{cut}.bin", 2)[HEAD:]
        assert cut < HEAD or there[:HEAD] == whole[:HEAD]
        assert list(read_opened(path, 3)) == [*[0, 1][:held], 2]


def test_a_file_without_a_head_is_read_and_goes_on(tmp_path: Path) -> None:
    """As files were before there were heads."""
    path = tmp_path / "o.bin"
    path.write_bytes(opened(tmp_path / "with", 0, 1)[HEAD:])
    assert list(read_opened(path, 3)) == [0, 1] and not holds_nothing(path)
    opened(path, 2)
    assert list(read_opened(path, 3)) == [0, 1, 2]


class Full:
    """A file of a disk that takes no more than so many bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def write(self, payload: bytes) -> int:
        taken: int = self._file.write(bytes(payload)[: self._room])
        self._room -= taken
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def filled(path: Path, room: int, *numbers: int) -> None:
    """Releases' vectors appended on such a disk."""
    with contextlib.closing(OpenedVectors(path)) as file:
        file._file = Full(file._file, room)  # type: ignore[assignment]
        for number in numbers:
            file.append(number, VECTORS[number])


@pytest.mark.parametrize("room", [0, 1, 30, 39, 40, 41])
def test_what_a_full_disk_does_not_take_is_kept_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Whatever part of a record it takes, the record is read, by this process and by the next, which puts it into its
    place; nobody else can read it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "o.bin"
    filled(path, room, 0, 1)
    assert list(read_opened(path, 3)) == [0, 1] and not holds_nothing(path)
    (kept,) = tmp_path.glob("dpmpc-opened-*/*.bin")
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700
    opened(path, 2)
    found = read_opened(path, 3)
    assert list(found) == [0, 1, 2] and all((found[k] == VECTORS[k]).all() for k in found) and not kept.exists()


def test_nothing_that_others_put_there_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that others may write to, or a link to one, holds no record of ours; one of another file, of the same
    path, is not this file's either."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "o.bin"

    filled(path, 0, 0)
    (folder,) = tmp_path.glob("dpmpc-opened-*")
    folder.chmod(0o722)
    assert read_opened(path, 3) == {}
    with pytest.raises(OSError, match="No space"):
        filled(path, 0, 0)
    folder.chmod(0o700)
    assert list(read_opened(path, 3)) == [0]
    folder.rename(tmp_path / "mine")
    folder.symlink_to(tmp_path / "mine")
    assert read_opened(path, 3) == {}
    folder.unlink()
    (tmp_path / "mine").rename(folder)
    path.unlink()
    opened(path)
    assert read_opened(path, 3) == {} and holds_nothing(path)


def test_another_kind_of_file_is_neither_read_nor_shortened(tmp_path: Path) -> None:
    path = tmp_path / "o.bin"
    whole = opened(path, 0, 1)
    with refuses("file", 4, 0):
        read_opened(path, 4)
    for other in (b"abc", b"x" * 1001):
        path.write_bytes(other)
        assert opened(path, 2).startswith(other)
    path.write_bytes(b"x" * len(whole))
    with refuses("file", 0):
        read_opened(path, 3)


def test_events_are_written_in_one_piece_and_a_torn_line_goes(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with contextlib.closing(Transcript(path)) as transcript:
        transcript.note("a", release=0)
        transcript.note("b", release=1)
        assert path.read_bytes() == b""
        transcript.flush()
        assert [event["event"] for event in read_transcript(path)] == ["a", "b"]
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert [event["event"] for event in read_transcript(path)] == (["a"] if cut >= first else [])
        with contextlib.closing(Transcript(path)) as transcript:
            transcript.note("c")
        assert [event["event"] for event in read_transcript(path)] == (["a", "c"] if cut >= first else ["c"])


def test_what_is_no_transcript_is_named(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b'{"event":"a"}\n{"event"\n')
    with refuses("file", "JSON"):
        read_transcript(tmp_path / "t")
    with refuses("path"):
        read_transcript(tmp_path / "none")
