"""What machine code does with words of vector registers: reads `objdump -d` of x86-64 and follows them.

A vector register, a mask or a place on the stack is *told* if it may hold what a vector register read from memory, the
stack too, but where a general register that is not told was saved. A general register is if such a word was moved
there, and so are flags made of it. Constants, what came from a general register that is not told, and arguments in
those are not. A *move* takes a told word from a vector register or a mask to a general register, to flags or to a place
on the stack from which a general register takes it. A *use* is a conditional jump on told flags, an address made of a
told register, a division of one, or a jump to one.

Every path through a function is followed, until nothing new is told. What a called function gives back in general
registers is not told. Words that a general register reads from memory that no stack pointer names are not told either.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(.*)$")
_ADDRESS = re.compile(r"(?:%[c-gs]s:)?(-?0x[0-9a-f]+|-?\d+)?\(([^)]*)\)")
_WIDE = re.compile(r"%(?:[xyz]mm\d+|k\d)$")
_PREFIXES = {"lock", "rep", "repz", "repnz", "notrack", "bnd", "cs", "ds", "data16", "rex.W"}
_OLD = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")
_HALVES = {f"{r}{half}": f"r{r}x" for r in "abcd" for half in "lh"} | {f"{r}l": f"r{r}" for r in _OLD[4:]}
_NAMED = {  # general registers by all their names
    **{f"{prefix}{r}": f"r{r}" for prefix in ("r", "e", "") for r in _OLD},
    **_HALVES,
    **{f"r{k}{part}": f"r{k}" for k in range(8, 16) for part in ("", "d", "w", "b")},
}
_LOST = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")  # by a call
_NO_FLAGS = re.compile(
    r"(?:mov|lea|push|pop|nop|mulx|rorx|shlx|shrx|sarx|pdep|pext|bswap|not[bwlq]?$|xchg|c[lwq]t[qdlo]|cqto|call|jmp|j|set"
    r"|cmov|k|prefetch|[lms]fence|ret|leave|endbr|vzero|p|v|aes|movs|stos|punpck|shuf|unpck|and[np]*p[sd]|xorp|orp)"
)
_JUMP = re.compile(r"j(?!mp)\w+$")
_TO_FLAGS = re.compile(r"v?ptest|k(?:or)?test|v?u?comis")
_READS_RESULT = re.compile(
    r"vpternlog|vfn?m|vperm[it]2|vpsh[lr]dv|(?:add|sub|adc|sbb|and|or|xor|shl|shr|sar|rol|ror|shld|shrd|inc|dec|neg|not|bts|btr|btc)[bwlq]?$"
)
_DIVIDES = re.compile(r"i?div[bwlq]?$")
_MULTIPLIES = re.compile(r"i?mul[bwlq]?$")
_CLEARS = re.compile(r"(?:v?p?xor[dq]?|v?xorp[sd]|v?psub[bwdq]|sub[lq]?)$")
_COPIES = re.compile(r"(?:v?mov|vp?broadcast|lea|v?pmov|kmov|vextract|v?pextr)\w*$")


@dataclass(frozen=True)
class Instruction:
    """A line: its address, the operation, the operands, source first."""

    at: int
    name: str
    operands: tuple[str, ...]
    text: str

    @property
    def target(self) -> int | None:
        """Where a jump goes; None for one through a register."""
        found = re.match(r"([0-9a-f]+) <", self.text.split(None, 1)[-1]) if self.name.startswith("j") else None
        return int(found[1], 16) if found else None


@dataclass(frozen=True)
class Found:
    """Of a function: the told words that left vector registers, and what was done with them that takes other time."""

    moves: tuple[str, ...]
    uses: tuple[str, ...]


@dataclass
class _Told:
    """Before an instruction, what may hold a told word on some path: names of registers, `flags`, and bytes of the
    stack. `saved`: bytes of the stack to which one word that is not told was saved from a register, on all paths."""

    names: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)

    def joined(self, other: "_Told") -> bool:
        """Takes in another path's; whether that was news."""
        before = len(self.names), len(self.saved)
        self.names |= other.names
        self.saved &= other.saved
        return (len(self.names), len(self.saved)) != before


_FRAME = "%frame"


def functions(binary: Path) -> Iterator[tuple[str, list[Instruction]]]:
    """Every function of a shared library or an object file. Errors: CalledProcessError where objdump reads it not."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(binary)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name, body = "", list[Instruction]()
    for line in said.splitlines():
        if head := _HEAD.match(line):
            if body:
                yield name, body
            name, body = head[1], []
        elif row := _LINE.match(line):
            body.append(_instruction(int(row[1], 16), row[2].split("#")[0].strip()))
    if body:
        yield name, body


def _instruction(at: int, text: str) -> Instruction:
    words = text.split(None, 1)
    while words[0] in _PREFIXES and len(words) > 1:
        words = words[1].split(None, 1)
    operands = re.findall(r"[^,(]*\([^)]*\)(?:\{[^}]*\})*|[^,]+", words[1]) if len(words) > 1 else []
    return Instruction(at, words[0], tuple(each.strip() for each in operands), " ".join(words))


def _registers(operand: str) -> list[str]:
    """All registers of an operand, by their one name: a vector's is `v` and its number."""
    found = []
    for name in re.findall(r"%(\w+)", operand):
        if wide := re.fullmatch(r"[xyz]mm(\d+)", name):
            found.append(f"v{wide[1]}")
        elif re.fullmatch(r"k[0-7]", name):
            found.append(name)
        elif name in _NAMED:
            found.append(_NAMED[name])
    return found


def _place(operand: str, size: int) -> set[str]:
    """Bytes of the stack that an address without an index names; none for other memory."""
    parts = _ADDRESS.match(operand)
    if parts is None or parts[2] not in ("%rsp", _FRAME):
        return set()
    first = int(parts[1] or "0", 16 if "0x" in (parts[1] or "") else 10)
    return {f"{parts[2]}{byte}" for byte in range(first, first + size)}


def _size(instruction: Instruction) -> int:
    """Bytes that an instruction reads or writes at an address."""
    name = instruction.name
    if scalar := re.fullmatch(r"v?(?:mov|pinsr|pextr)([bwdq])", name):
        return {"b": 1, "w": 2, "d": 4, "q": 8}[scalar[1]]
    if extended := re.fullmatch(r"mov[sz]([bwl])[wlq]", name):
        return {"b": 1, "w": 2, "l": 4}[extended[1]]
    for operand in instruction.operands:
        if found := re.fullmatch(r"%([xyz])mm\d+(?:\{.*)?", operand):
            return {"x": 16, "y": 32, "z": 64}[found[1]]
    for operand in reversed(instruction.operands):
        if operand.startswith("%") and "(" not in operand:
            register = operand[1:]
            if register.startswith("k"):
                return {"b": 1, "w": 2, "d": 4, "q": 8}.get(name[-1], 8)
            if register in _HALVES:
                return 1
            if re.fullmatch(r"r(?:\d+|[a-ds][xip]|bp)", register):
                return 8
            return 4 if re.fullmatch(r"e\w\w|r\d+d", register) else 1 if register.endswith("b") else 2
    return {"b": 1, "w": 2, "l": 4, "q": 8}.get(name[-1], 8)


def follow(body: list[Instruction]) -> Found:
    """What is moved and used in a function. Errors: AssertionError for a path that cannot be followed."""
    if any(each.text.split() == ["mov", "%rsp,%rbp"] for each in body):  # else it is a register as others
        body = [_framed(each) for each in body]
    at = {each.at: k for k, each in enumerate(body)}
    states: list[_Told | None] = [None] * len(body)
    states[0] = _Told({f"v{k}" for k in range(32)})  # arguments in vector registers are secrets
    moves, uses, due = dict[int, str](), dict[int, str](), [0]
    while due:
        k = due.pop()
        before = states[k]
        assert before is not None
        told = _Told(set(before.names), set(before.saved))
        _step(body[k], told, moves, uses)
        for following in _following(body, k, at):
            if states[following] is None:
                states[following] = _Told(set(told.names), set(told.saved))
                due.append(following)
            elif states[following].joined(told):  # type: ignore[union-attr]
                due.append(following)
    lost = [each.text for each, state in zip(body, states, strict=True) if state is None and not _fills(each)]
    assert not lost, f"a jump that is not followed leads to {lost[0]}"
    return Found(tuple(moves[k] for k in sorted(moves)), tuple(uses[k] for k in sorted(uses)))


def _framed(each: Instruction) -> Instruction:
    """With the frame's pointer in addresses by a name of its own."""
    operands = tuple(operand.replace("(%rbp)", f"({_FRAME})") for operand in each.operands)
    return Instruction(each.at, each.name, operands, each.text)


def _fills(each: Instruction) -> bool:
    """Whether it stands between functions or loops for their alignment."""
    return each.name.startswith("nop") or each.text.replace(" ", "") in ("xchg%ax,%ax", "data16", "cs")


def _following(body: list[Instruction], k: int, at: dict[int, int]) -> Iterator[int]:
    name, target = body[k].name, body[k].target
    if target is not None and target in at:
        yield at[target]
    if name not in ("jmp", "ret", "ud2", "hlt") and k + 1 < len(body):
        yield k + 1


def _step(each: Instruction, told: _Told, moves: dict[int, str], uses: dict[int, str]) -> None:
    """What is told after an instruction."""
    name, operands, names = each.name, each.operands, told.names
    size = _size(each)
    for operand in operands:
        if "(" in operand and not name.startswith(("nop", "lea")) and names & set(_registers(operand)):
            uses[each.at] = f"address: {each.text}"
    if _JUMP.match(name):
        if "flags" in names:
            uses[each.at] = f"jump: {each.text}"
        return
    if name in ("jmp", "call"):
        if operands and operands[0].startswith("*") and names & set(_registers(operands[0])):
            uses[each.at] = f"jump to: {each.text}"
        if name == "call":
            names.difference_update({*_LOST, "flags"})
            names |= {f"v{k}" for k in range(32)}
        return
    if name in ("vzeroupper", "vzeroall", "ret", "leave") or name.startswith(("nop", "prefetch")) or not operands:
        return
    if name in ("push", "pop"):
        if name == "pop":
            names.difference_update(_registers(operands[0]))
        return
    if _DIVIDES.match(name) and names & {*_registers(operands[-1]), "rax", "rdx"}:
        uses[each.at] = f"division: {each.text}"
    sources, result = list(operands[:-1]), operands[-1]
    if len(operands) == 1:
        sources = [] if name.startswith("set") else list(operands)
    reads = _READS_RESULT.match(name) or (len(operands) == 2 and not _COPIES.match(name)) or "{%k" in result
    if (reads and not name.startswith("set")) or name.startswith(("cmp", "test")) or _TO_FLAGS.match(name):
        sources.append(result)
    alike = len({register for operand in operands for register in _registers(operand)}) == 1
    cleared = alike and _CLEARS.match(name) and not any("(" in operand for operand in operands)
    hears = not cleared and any(_hears(source, each, told, size) for source in sources)
    if name.startswith(("cmov", "set", "adc", "sbb", "rcl", "rcr")):
        hears |= "flags" in names
    if _DIVIDES.match(name) or (_MULTIPLIES.match(name) and len(operands) == 1):
        hears |= "rax" in names
    to_flags = _TO_FLAGS.match(name)
    if hears and (to_flags or _is_register(result)):
        wide = any(_WIDE.match(source.split("{")[0]) for source in sources)
        if wide or any("(" in source and names & _place(source, size) for source in sources):
            moves[each.at] = each.text
    if to_flags or not _NO_FLAGS.match(name) or name.startswith(("cmp", "test")):
        names.discard("flags")
        if hears:
            names.add("flags")
    if to_flags or name.startswith(("cmp", "test")) or name in ("bt", "btl", "btq"):
        return
    written = set(_place(result, size)) if "(" in result else set(_registers(result.split("{")[0]))
    if (_MULTIPLIES.match(name) and len(operands) == 1) or _DIVIDES.match(name):
        written = {"rax", "rdx"}
    if name.startswith("xchg"):
        written |= set(_registers(operands[0]))
    if name.startswith("mulx"):
        written |= set(_registers(operands[1]))
    if hears:
        names |= written
    else:
        names -= written
    told.saved -= written
    if name in ("mov", "vmovq") and not hears and operands[0].startswith("%") and "(" in result:
        told.saved |= written


def _is_register(operand: str) -> bool:
    return operand.startswith("%") and "(" not in operand and not _WIDE.match(operand.split("{")[0])


def _hears(source: str, each: Instruction, told: _Told, size: int) -> bool:
    """Whether an operand may hold a told word."""
    names = told.names
    if "(" not in source:
        return bool(names & set(_registers(source)))
    if each.name.startswith("lea"):
        return bool(names & set(_registers(source)))
    if "rip" in source:
        return False
    place = _place(source, size)
    if re.match(r"%[xyz]mm", each.operands[-1]) and not (place and place <= told.saved):
        return True
    return bool(names & place)
