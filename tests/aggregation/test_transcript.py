"""A party's transcript and the opened vectors on disk: whole records survive a death, torn ones go."""

import contextlib
from pathlib import Path

import numpy as np

from dpmpc.aggregation.wire.transcript import OpenedVectors, Transcript, digest, read_opened, read_transcript
from tests.refusals import refuses

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
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        held = cut // (len(whole) // 2)
        assert list(read_opened(path, 3)) == [0, 1][:held]
        assert opened(path, 2) == whole[: held * len(whole) // 2] + opened(tmp_path / f"{cut}.bin", 2)
        assert list(read_opened(path, 3)) == [*[0, 1][:held], 2]


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
