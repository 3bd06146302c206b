"""Values that no other text has, and a search for them in all that a run leaves and sends."""

import json
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

WORDS = ("Xyzzy-canary", "qwertz canary", "canary.4711")
NUMBERS = ("771234.56789", "-918273.64509", "5550123987", "100.77123")
DAYS = ("1987-03-14", "2011-11-29")
TEXT = re.compile(
    "|".join(re.escape(each) for each in (*WORDS, *NUMBERS, *DAYS)) + r"|canary|771234\.\d|918273\.\d|100\.7712", re.I
)
BINARY = tuple(struct.pack(form, float(number)) for number in NUMBERS for form in ("<d", ">d", "<f", ">f"))
HEX = tuple(each.hex() for each in BINARY)
INPUTS = "inputs"  # the folder of the records themselves
FRAMES = "frames"  # of what was seen of what processes sent
WATCHING = Path(__file__).parent / "watching"
ROOT = Path(__file__).parents[2]  # of the programs and executors of tests
# In what is sent, most bytes are random: eight of a number, and texts of nine letters, are there by chance once in 10^9
# scenarios that send 100 MB (2^-64 a place and form; a letter in either case: at most 2^-63 a place and text).
LONG_TEXTS = (*WORDS, *NUMBERS, *DAYS)
LONG_NUMBERS = tuple(struct.pack(form, float(number)) for number in NUMBERS for form in ("<d", ">d"))


def readable(path: Path) -> Iterator[bytes]:
    """What a file holds: its bytes, and those of the parts of an archive."""
    yield path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as parts:
            for name in parts.namelist():
                yield parts.read(name)


def found(folder: Path) -> list[str]:
    """Where a canary stands in the files below a folder, but for the inputs: "file: canary"."""
    hits = []
    left_out = {INPUTS, FRAMES}
    for path in sorted(each for each in folder.rglob("*") if each.is_file() and left_out.isdisjoint(each.parts)):
        for content in readable(path):
            text = content.decode("utf-8", "replace")
            wide = content.decode("utf-16-le", "replace")
            seen = [each.group() for each in (TEXT.search(text), TEXT.search(wide)) if each]
            seen += ["a number in binary" for each in BINARY if each in content]
            seen += ["a number in hex" for each in HEX if each in text]
            hits += [f"{path.relative_to(folder)}: {each}" for each in seen]
    return hits


def sent(folder: Path) -> tuple[set[str], list[str]]:
    """(over what processes have sent: "plain", "tls"; the canaries in it, by process)."""
    kinds, hits = set(), []
    for path in sorted((folder / FRAMES).glob("*.*")):
        if path.name != "canaries.json":
            kinds.add(path.suffix.removeprefix("."))
            lines = (line for line in path.read_text(errors="replace").split("\n") if line.strip("."))
            hits += [f"what process {path.stem} sent: {line}" for line in lines]
    return kinds, hits


def environment(folder: Path) -> dict[str, str]:
    """In which processes have an account of their own, and what they send is searched."""
    frames = folder / FRAMES
    if not frames.is_dir():
        frames.mkdir()
        said = {"texts": LONG_TEXTS, "numbers": [each.hex() for each in LONG_NUMBERS]}
        (frames / "canaries.json").write_text(json.dumps(said))
    paths = os.pathsep.join([str(WATCHING), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"DPMPC_ACCOUNT": str(folder / "account"), "CANARY_FRAMES": str(frames), "PYTHONPATH": paths}
