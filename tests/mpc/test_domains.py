"""Every use of a hash and of a stream has a domain of its own."""

import ast
from pathlib import Path

import numpy as np
import pytest

from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.domains import BLOCKS, ELSEWHERE, HASH, STREAM, Domain, encoded
from website.domains import APART, MPC, OUTSIDE, PACKAGE, PAGE, declared, prefixes, used, with_table

PRIMITIVES = {"numbers/domains.py", "numbers/prg.py", "native/aes.py", "native/ot.py"}
MAKES = {"Prg", "KeyStream", "HKDF", "AES", "Cipher", "AESGCM", "ChaCha20Poly1305", "HMAC", "stream", "schedule_of"}


def uses(source: str) -> set[str]:
    """What a module hashes with, and what it makes streams and ciphers from."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            found |= {"hashlib" for name in names if name.split(".")[0] in ("hashlib", "_hashlib", "blake3")}
        if isinstance(node, ast.Call):
            function = node.func
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            of = function.value if isinstance(function, ast.Attribute) else None
            by_domain = name == "stream" and not (isinstance(of, ast.Name) and of.id == "ot") and of is not None
            if name in MAKES and not by_domain:
                found.add(name)
            if name in ("new", "digest") and isinstance(of, ast.Name) and of.id == "hmac":
                found.add("hmac")
    return found


def test_no_two_uses_have_one_domain() -> None:
    names = [domain.name for domain in declared().values()]
    assert len(set(names)) == len(names) > 50
    assert all(len(set(domain.of)) == len(domain.of) for domain in declared().values())
    assert {domain.kind for domain in declared().values()} == {HASH, STREAM}


def test_every_domain_is_of_one_module_and_used() -> None:
    places = used()
    assert {name: found for name, found in places.items() if len(found) != 1} == {}


def test_nothing_is_hashed_and_no_stream_is_made_but_by_a_domain() -> None:
    """In a module's imports and calls. AES beside streams is where `BLOCKS` says."""
    blocks = {place for block in BLOCKS for place in block.where}
    found = {
        place: names
        for path in MPC.rglob("*.py")
        if (place := path.relative_to(MPC).as_posix()) not in PRIMITIVES | blocks
        and (names := uses(path.read_text(encoding="utf-8")))
    }
    assert found.keys() == ELSEWHERE.keys(), found
    assert {place for place in blocks if "hashlib" in uses((MPC / place).read_text(encoding="utf-8"))} == {
        "numbers/prg.py"
    }


def test_what_is_hashed_outside_the_protocols_is_listed_and_nothing_begins_alike() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in APART and uses(path.read_text(encoding="utf-8"))
    }
    assert found == OUTSIDE.keys(), found ^ OUTSIDE.keys()
    begins = [each for place in prefixes().values() for each in place]
    assert len(set(begins)) == len(begins) > 10
    for one in begins:  # the byte that ends each is in none of them
        assert "\0" not in one


@pytest.mark.parametrize(
    "source",
    [
        "import hashlib",
        "from hashlib import blake2b",
        "def f():\n    from hashlib import sha256",
        "x = Prg(key, 'mine')",
        "x = prg.Prg(key)",
        "x = KeyStream(key)",
        "x = ot.stream(key, 0, 2)",
        "x = stream(key, 0, 2)",
        "x = HKDF(a, b, c, d)",
        "x = hmac.digest(key, text, 'sha256')",
    ],
)
def test_a_use_without_a_domain_is_seen(source: str) -> None:
    assert uses(source)
    assert not uses("x = session.stream(s, domains.AND, 1)\ny = Prg.from_os()\nz = domains.TAG.each(a, rows=b)")


def test_the_page_has_all_of_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, "python -m website.domains --write"
    assert with_table(text.replace("*children*", "*child*")) == text


def test_an_instance_has_all_its_numbers() -> None:
    hashed, streamed = Domain("a", ("x", "y"), ""), Domain("b", ("x",), "", STREAM)
    for wrong in (lambda: hashed.digest(1), lambda: hashed.digest(1, 2, 3), lambda: hashed.stream(b"", 1, 2)):
        with pytest.raises(AssertionError, match="the hash a is of x, y; got"):
            wrong()
    for wrong in (
        lambda: streamed.stream(b""),
        lambda: streamed.digest(1),
        lambda: streamed.each(rows=np.zeros((1, 1, 1))),
    ):
        with pytest.raises(AssertionError, match="the stream b is of x; got"):
            wrong()


def test_two_instances_never_have_one_encoding() -> None:
    """Of all lists of up to three parts that are short and alike."""
    parts = [b"", b"i", b"s", b"\x01", "", "i", "b", 0, 1, -1, 256, b"\x01" + bytes(15)]
    lists = [()] + [(a,) for a in parts] + [(a, b) for a in parts for b in parts]
    lists += [(a, b, c) for a in parts for b in parts for c in parts]
    made = {b"".join(map(encoded, each)) for each in lists}
    assert len(made) == len(lists)


def test_the_rows_of_a_hash_have_their_places() -> None:
    """The same as each hashed alone; equal rows have different digests at every two places."""
    rows = np.zeros((3, 5, 2), dtype=np.uint64)
    found = domains.TAG.each(b"of", rows=rows)
    assert found.shape == (3, 5, 4) and len({each.tobytes() for each in found.reshape(-1, 4)}) == 15
    plain = Domain(domains.TAG.name, ("trees",), "")
    for tree, leaf in ((0, 0), (2, 4), (1, 3)):
        value = tree.to_bytes(4, "little") + leaf.to_bytes(4, "little") + bytes(16)
        assert plain.digest(b"of", value=value) == found[tree, leaf].tobytes()


def test_the_kernels_make_no_keys_but_those_of_halves() -> None:
    """Which key and which counter Python says; the keys of half-gates' halves, and nothing else, kernels expand."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in Path(MPC / "native").glob("*.[ch]")}
    assert {name for name, text in texts.items() if "aes_expand(" in text} == {"aes.c", "half_gates.c", "kernels.h"}
    assert not any("sha256" in text.lower() for text in texts.values())
