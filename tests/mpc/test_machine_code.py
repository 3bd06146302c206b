"""No word of a vector register decides a jump or an address in the machine code of kernels for VAES, VPCLMULQDQ and
AVX-512, which Valgrind does not run: it is read.

`machine_code.py` says what is followed. What it does not follow, words that a general register reads from memory, is in
the lines that the kernels for AVX2 and AES share, which `test_secrets.py` runs.
"""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from machine_code import Found, follow, functions

from dpmpc.mpc.native import choice

SOURCES = Path(choice.__file__).parent
LEVELS = ("vaes", "vaes512", "vpclmul", "vpclmul512", "avx512")
_NAME = re.compile(rf"(\w+)_({'|'.join(LEVELS)})(?:\.\w+)*$")
COMPILER = rb"GCC: \([^)]*\) 12\."  # the allowances are those of what it writes
COPIED = "what is left of a row, less than a register, is copied by words"
# Of a function: how many moves from vector registers, how many uses of what was moved, and why no secret decides there.
ALLOWED = {
    "stream_vaes": (5, 0, COPIED),
    "stream_vaes512": (5, 0, COPIED),
    "inverse_root_avx512": (3, 0, COPIED),
    "weigh_vpclmul": (4, 0, "a row's sum is reduced in general registers: shifts and XORs alone"),
    "weigh_vpclmul512": (8, 0, "a row's sum is reduced in general registers: shifts and XORs alone"),
    "make_columns_vaes": (32, 0, "halves of strings are XORed in general registers"),
    "side_avx512": (8, 0, "a sum modulo p ends in general registers: sums, shifts and masks alone"),
    "cut_avx512": (2, 0, "whether a word of a stream is p, once in 2^61, is what the function gives back"),
    "walk_vaes512": (2, 2, "the number of gates of a layer, which a public program says, is kept in a vector register"),
    "result_avx512": (36, 32, "places of the right operands come from the public lists of pairs, eight at a time"),
}


def found_in(binary: Path) -> dict[str, Found]:
    """By function of the levels that Valgrind does not run, what is moved and used."""
    return {name: follow(body) for name, body in functions(binary) if _NAME.match(name)}


def beyond(found: dict[str, Found]) -> dict[str, Found]:
    """The functions that do more than is allowed."""
    allowed = {name: ALLOWED.get(name, (0, 0, "")) for name in found}
    return {n: f for n, f in found.items() if len(f.moves) > allowed[n][0] or len(f.uses) > allowed[n][1]}


def readable() -> bool:
    if choice.compiled is None or shutil.which("objdump") is None:
        return False
    built = Path(choice.compiled.__file__).read_bytes()
    return built.startswith(b"\x7fELF\x02") and built[18:20] == b"\x3e\x00" and bool(re.search(COMPILER, built))


needs_objdump = pytest.mark.skipif(
    not readable(), reason="needs objdump (Debian's package binutils) and an extension for x86-64 by GCC 12"
)


@needs_objdump
def test_no_word_of_a_vector_register_decides_where_valgrind_does_not_run() -> None:
    """All kernels that are chosen by those levels are there, and each allowance is needed."""
    found = found_in(Path(choice.compiled.__file__))
    assert beyond(found) == {}
    split = [match.groups() for match in map(_NAME.match, found) if match is not None]
    chosen = {n for f in SOURCES.glob("*.[ch]") for n in re.findall(r"CHOOSE(?:_AES)?\((\w{2,})\)\(", f.read_text())}
    assert len(chosen) > 20
    assert chosen - {head for head, _ in split} == set() == set(LEVELS) - {level for _, level in split}
    assert all(found[name].moves for name in ALLOWED)


@needs_objdump
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("leak", "says"),
    [
        ("", ""),
        ("if (b[0][0] & 1) return;", "jump"),
        ("out += b[0][0] & 1;", "address"),
        ("count /= b[0][0] | 1;", "div"),
    ],
    ids=["as it is", "branch", "address", "division"],
)
def test_a_kernel_that_leaks_is_seen(leak: str, says: str, tmp_path: Path) -> None:
    """The key stream's, compiled with one more line on a word that it has made; without it nothing is said."""
    for path in SOURCES.glob("*.[ch]"):
        shutil.copy(path, tmp_path)
    body = tmp_path / "aes_body.h"
    made = "NAME(make)(keys, block, b, n, odd, &last, in);\n"
    before, after = body.read_text().split(made)
    body.write_text(before + made + leak + after)
    flags = ["-O3", "-std=gnu11", "-ffp-contract=off", "-fPIC", "-DPy_LIMITED_API=0x030B0000"]
    built = tmp_path / "aes.o"
    paths = [f"-I{sysconfig.get_path('include')}", f"-I{SOURCES}"]
    subprocess.run(["cc", *flags, *paths, "-c", f"{tmp_path}/aes.c", "-o", str(built)], check=True)
    bad = beyond(found_in(built))
    assert set(bad) == ({"stream_vaes", "stream_vaes512"} if says else set())
    assert all(any(use.startswith(says) for use in each.uses) for each in bad.values())
