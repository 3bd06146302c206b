"""What every command does where the machine refuses something: one line, and nothing spent that cannot be told.

A draw is a command, a call of the system that fails (its kind, its errno, the how-manieth of all processes of the
command, that one or all from there on, below which folder), or a machine that is odd (an output that is closed or full,
an encoding that lacks characters, no home, few descriptors, no current folder), or both. The calls are counted, and
fail, in a library that is loaded before the system's own (`system_faults.c`); how many there are of each kind is learnt
from the command where nothing fails. Held is what `problems` says.

    python -m tests.endurance.system_faults --draws 400 --seed 1
    python -m tests.endurance.system_faults --draws 40 --commands stats train
"""

import argparse
import contextlib
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
POSSIBLE = sys.platform == "linux" and shutil.which("cc") is not None
HANG = 60  # seconds of processor that a process of a command may take
OVER = 900  # seconds after which a command hangs: far more than one takes beside much other work
NATIVE = (-signal.SIGABRT, -signal.SIGSEGV, 127)  # as C++, BLAS and the C library end a process without memory
CANARY = "61.86234871"  # beyond the public bounds, so that nothing but a record has it

ASKED = ["--csv", "a.csv", "--owners-column", "site", "--epsilon", "2", "--delta", "1e-5"]
CLEAR = [*ASKED, "--engine", "clear"]
TRAIN = ["--bounds", "b.toml", "--target", "ill", "--iterations", "2", "--out"]
STATS = ["stats", "mean(größe)", "count by ill", "--bounds", "b.toml"]
WORDS: dict[str, list[str]] = {
    "train": ["train", *CLEAR, *TRAIN, "made/r"],
    "predict": ["predict", "run", "--csv", "a.csv"],
    "stats": [*STATS, *CLEAR, "--out", "made/r"],
    "synth": ["synth", *CLEAR, "--bounds", "b.toml", "--cells", "4", "--hopeless", "--out", "made/r"],
    "report": ["report", "run"],
    "example": ["example", "hospitals"],
    "meet": ["meet", *CLEAR, "--out", "made/r"],
    "describe": ["describe", "a.csv"],
    "check": ["check", "--schema", "s.toml", "--csv", "a.csv"],
    "advise": ["advise", "--owners", "10", "--total", "9000", "--dimension", "8", "--epsilon", "1", "--delta", "1e-5"],
    "account": ["account", "--epsilon", "0.5", "--method", "output", "--owners", "100", "--smallest", "500"],
    "budget": ["budget", "run"],
    "init": ["init", "-P", "127.0.0.2:11365", "-P", "127.0.0.3:11365", "-P", "127.0.0.4:11365", "--owner-sizes",
             "60,60,60", "--epsilon", "1", "--delta", "1e-4", "--iterations", "5"],
    "plan": ["plan", "c/consortium.toml"],
    "kit": ["kit", "c/consortium.toml", "--out", "made/kits"],
    "rehearse": ["rehearse", "c/kits"],
    "join": ["join", "c/kits/party0", "--wait", "0.2"],
    "status": ["status", "run"],
    "keys": ["keys", "request", "c/kits/party0"],
    "verify": ["verify", "run2", "--structure"],
    "sample": ["sample", "--engine", "clear", "--count", "100"],
    "circuit": ["circuit", "gaussian", "--sigma", "2^20"],
    "bench": ["bench", "--help"],
}  # fmt: skip
MORE: dict[str, list[str]] = {  # of the same commands, other ways through them
    "stats that are printed alone": [*STATS, *CLEAR],
    "stats by parties": [*STATS, *ASKED, "-M", "3", "--out", "made/r"],
    "train by parties": ["train", *ASKED, "-M", "3", *TRAIN, "made/r"],
    "describe into files": ["describe", "a.csv", "--schema", "made.toml", "--html", "made.html"],
    "status as a page": ["status", "run", "--html", "made.html", "--metrics", "made.prom"],
    "predict into a file": ["predict", "run", "--csv", "a.csv", "--out", "made.csv"],
}
COMMANDS = WORDS | MORE
# What gives the answer of a command that has spent something and was cut short: the first that succeeds.
AGAIN: dict[str, list[list[str]]] = {
    "train": [["report", "made/r"], ["train", "--resume", "made/r"]],
    "stats": [["stats", "--of", "made/r"], ["AGAIN"]],
    "synth": [["stats", "count", "--of", "made/r"], ["AGAIN"]],
    "meet": [["AGAIN"]],
}
# What is made before: the folder, and the words of the commands.
MADE: dict[str, tuple[str, list[list[str]]]] = {
    "schema": (".", [["describe", "a.csv", "--schema", "s.toml", "--target", "ill", "--owners-column", "site"]]),
    "run": (".", [[*WORDS["train"][:-1], "run"]]),
    "run2": (".", [["train", "--data", "synthetic", "--max-rows", "200", "--dimension", "4", "--owners", "3", "--delta",
                    "1e-4", "--iterations", "2", "--no-evaluate", "--epsilon", "1", "--out", "run2"]]),
    "consortium": ("c", [WORDS["init"], ["plan", "consortium.toml"], ["kit", "consortium.toml", "--out", "kits"]]),
}  # fmt: skip
NEEDS = {
    "check": "schema", "verify": "run2", "predict": "run", "report": "run", "budget": "run", "status": "run",
    "plan": "consortium", "kit": "consortium", "rehearse": "consortium", "join": "consortium", "keys": "consortium",
}  # fmt: skip

# In the order of system_faults.c: the errno that each kind of call may have; 0: a part is written.
KINDS: dict[str, tuple[int, ...]] = {
    "open": (errno.EACCES, errno.EIO, errno.EMFILE, errno.ENOENT, errno.EINTR, errno.ESTALE),
    "create": (errno.EACCES, errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS, errno.EDQUOT),
    "read": (errno.EIO, errno.EINTR, errno.ESTALE),
    "write": (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.EFBIG, 0),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "flock": (errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO, errno.EINTR),
    "rename": (errno.EIO, errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EDQUOT),
    "mkdir": (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO),
    "unlink": (errno.EACCES, errno.EROFS, errno.EIO),
    "stat": (errno.EACCES, errno.EIO, errno.ESTALE),
    "scandir": (errno.EACCES, errno.EIO, errno.EMFILE),
    "chmod": (errno.EPERM, errno.EROFS),
    "socket": (errno.EMFILE, errno.ENFILE, errno.EACCES, errno.ENOBUFS),
    "bind": (errno.EACCES, errno.EADDRINUSE, errno.EADDRNOTAVAIL),
    "listen": (errno.EADDRINUSE, errno.EACCES),
    "connect": (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT),
    "getaddrinfo": (socket.EAI_AGAIN, socket.EAI_NONAME, socket.EAI_FAIL),
    "fork": (errno.EAGAIN, errno.ENOMEM),
    "thread": (errno.EAGAIN, errno.ENOMEM),
    "memory": (errno.ENOMEM,),
    "all memory": (errno.ENOMEM,),  # from a large piece on nothing of any size
}
# What is odd about a machine; `env` over a plain one's, where HERE is the folder.
MACHINES: dict[str, dict[str, Any]] = {
    "a plain machine": {},
    "a closed output": {"stdout": "closed"},
    "a full output": {"stdout": "full"},
    "a Latin-1 pipe": {"encoding": "latin-1"},
    "an ASCII pipe": {"encoding": "ascii"},
    "no home": {"nobody": True, "without": ["HOME", "DPMPC_ACCOUNT"]},
    "few descriptors": {"files": 32},
    "fewer descriptors": {"files": 16},
    "no folder for what is passing": {"env": {"TMPDIR": "HERE/there/is/none"}},
    "an account that is a file": {"env": {"DPMPC_ACCOUNT": "HERE/a.csv"}},
    "an account where nothing can be made": {"env": {"DPMPC_ACCOUNT": "/proc/account"}},
    "no current folder": {"removed": True},
}
PLAIN: dict[str, Any] = {"stdout": "file", "encoding": "utf-8", "nobody": False, "files": 0, "env": {}, "without": [],
                         "removed": False}  # fmt: skip
UNDER = ("", "account", "made")  # the folder itself, and what is in it

_BOARD = struct.Struct(f"@{len(KINDS)}IIiiII4096s")  # `struct board` of system_faults.c


@dataclass(frozen=True)
class Call:
    """The call of the system that fails: the `number`th of its kind below a folder, and all after it unless `once`."""

    kind: str
    error: int
    number: int = 1
    once: bool = False
    under: str = ""

    def __str__(self) -> str:
        names = {value: name for name, value in vars(socket).items() if name.startswith("EAI_")}
        said = names[self.error] if self.kind == "getaddrinfo" else errno.errorcode.get(self.error, "a part")
        place = f" in {self.under}" if self.under else ""
        return f"{self.kind} {self.number}{'' if self.once else '+'} {said}{place}"


@dataclass(frozen=True)
class Draw:
    """A command on a machine, one of whose calls fails, or none."""

    command: str
    call: Call | None = None
    machine: str = "a plain machine"

    def __str__(self) -> str:
        return f"{self.command}; {self.machine}; {self.call or 'no call fails'}"


@dataclass(frozen=True)
class Found:
    """What came of it. `spent`: releases in all ledgers, beyond those that were there; `calls`: of each kind; `failed`:
    how many of them did; `hurt`: files that have a record's value; `kept`: what the output did not take, from the file
    that the error names; `again`: what gave the answer after a failure."""

    code: int
    out: str
    said: str
    spent: int
    calls: dict[str, int]
    failed: int
    hurt: list[str]
    kept: str
    again: str = ""
    spent_again: int = 0
    wrong_again: list[str] = field(default_factory=list)


# -- the process that plays draws -------------------------------------------------------------------------------------
def serve(given: Path) -> None:
    """Plays a case (JSON) for each line of standard input, in a copy of `given`, by a fork of this process, which has
    the imports; a line of JSON says what came of it."""
    import dpmpc.cli.main
    import dpmpc.consortium.rehearsing
    import dpmpc.local.owner_process
    import dpmpc.tables.asked
    import dpmpc.tables.meet
    import dpmpc.tables.synth  # noqa: F401  (all that is slow to import)

    for number, line in enumerate(sys.stdin):
        case = json.loads(line)
        folder = given
        if not case["kept"]:
            folder = given.with_name(f"{given.name}-{number}")
            shutil.copytree(given, folder, symlinks=True)
        before = spent(folder)
        answer = _played(case, folder, before)
        if case["again"] and answer["code"] and answer["spent"] > 0:
            tries = [case["words"] if words == ["AGAIN"] else words for words in case["again"]]
            wrong = []
            for words in tries:
                well = _played({**case, **PLAIN, "call": None, "words": words}, folder, before)
                if well["code"] == 0:
                    answer |= {"again": " ".join(words), "spent_again": well["spent"]}
                    break
                wrong.append(well["said"][-600:])
            answer["wrong_again"] = wrong
        if not case["kept"]:
            shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps(answer), flush=True)


def spent(folder: Path) -> int:
    """Lines of releases in all ledgers there; those of attempts are lists. A rehearsal's, which is thrown away where
    the machine lets it go, count nowhere."""
    ledgers = [path for path in folder.rglob("ledger*.jsonl") if not any(map(_rehearsed, path.parts))]
    lines = [line for path in ledgers for line in path.read_text().splitlines()]
    return sum(line.startswith("{") for line in lines)


def _rehearsed(part: str) -> bool:
    return part.startswith("dpmpc-rehearsal-")


def _played(case: dict[str, Any], folder: Path, before: int) -> dict[str, Any]:
    """What comes of a case in that folder, and of every process that it left."""
    beside = Path(tempfile.mkdtemp(dir=folder.parent))  # its end is this process's, not a fork's
    out, said, board = (beside / name for name in ("stdout", "stderr", "board"))
    call = case["call"] or {"kind": "", "error": 0, "number": 0, "once": False, "under": ""}
    kind = [*KINDS].index(call["kind"]) if call["kind"] else -1
    what = (kind, call["error"], call["number"], call["once"], os.fsencode(folder / call["under"]))
    board.write_bytes(_BOARD.pack(*[0] * len(KINDS), 0, *what))
    child = os.fork()
    if child == 0:
        os.setsid()
        _play(case, folder, out, said, board)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(OVER)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # whom it left
    *calls, failed, _, _, _, _, _ = _BOARD.unpack(board.read_bytes())
    text = [path.read_bytes().decode(errors="replace") if path.exists() else "" for path in (out, said)]
    shutil.rmtree(beside)
    named = re.search(r"what it did not take is in (.+)", text[1])
    kept = Path(named[1]).read_text(case["encoding"]) if named else ""
    return {
        "code": code, "out": text[0], "said": text[1], "spent": spent(folder) - before,
        "calls": dict(zip(KINDS, calls, strict=True)), "failed": failed, "hurt": _hurt(folder), "kept": kept,
    }  # fmt: skip


def _hurt(folder: Path) -> list[str]:
    """Files below `made` and the account that have a record's value."""
    wrong = []
    for place in (folder / "made", folder / "account"):
        for path in place.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            if CANARY.encode() in content:
                wrong.append(str(path.relative_to(folder)))
    return wrong


def _play(case: dict[str, Any], folder: Path, out: Path, said: Path, board: Path) -> None:
    """The command of a case, in this process; never returns."""
    import ctypes

    code = 70
    try:
        (folder / case["within"]).mkdir(exist_ok=True)
        os.chdir(folder / case["within"])
        own = {"PATH": os.environ["PATH"], "HOME": "HERE", "TMPDIR": "HERE", "DPMPC_ACCOUNT": "HERE/account",
               "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
               "LD_PRELOAD": os.environ["LD_PRELOAD"], "SYSTEM_FAULTS": str(board), **case["env"]}  # fmt: skip
        os.environ.clear()
        os.environ.update({k: v.replace("HERE", str(folder)) for k, v in own.items() if k not in case["without"]})
        resource.setrlimit(resource.RLIMIT_CPU, (HANG, HANG + 5))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
        if case["stdout"] == "closed":
            os.close(1)
            sys.stdout = None  # as Python has it where descriptor 1 is closed at the start
        else:
            target = "/dev/full" if case["stdout"] == "full" else out
            os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT), 1)
            sys.stdout = open(1, "w", encoding=case["encoding"], closefd=False)
        sys.stderr = open(2, "w", encoding=case["encoding"], errors="backslashreplace", closefd=False)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        os.closerange(3, 64)
        if case["nobody"]:
            import pwd

            def nobody(user: object) -> Any:
                raise KeyError(user)

            pwd.getpwuid = nobody
        if case["files"]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (case["files"], case["files"]))
        if case["removed"]:
            os.mkdir("passing")
            os.chdir("passing")
            os.rmdir(folder / case["within"] / "passing")
        sys.argv = ["dpmpc", *case["words"]]
        import dpmpc.cli.main as command

        ctypes.CDLL(None).system_faults_look()
        code = _ended(command)
    except BaseException:  # noqa: BLE001  (whatever leaves the command is what is looked for)
        import traceback

        with contextlib.suppress(OSError):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code)


def _ended(command: Any) -> int:
    """The exit code of the program, as the interpreter ends it."""
    code = 0
    try:
        command.program()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 120
    return code


# -- draws ------------------------------------------------------------------------------------------------------------
class Machine:
    """A folder with records, and with what these commands need, in which draws are played."""

    def __init__(self, folder: Path, commands: Sequence[str] = tuple(COMMANDS)) -> None:
        self.given = folder / "given"
        self.given.mkdir(parents=True)
        library = folder / "system_faults.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"], check=True)
        rows = [f"s{k % 3},{20 + k % 60},{('yes', 'no')[k % 2]}" for k in range(599)]
        text = "\n".join(["site,größe,ill", *rows, f"s2,{CANARY},no", ""])
        (self.given / "a.csv").write_text(text, encoding="utf-8")
        (self.given / "b.toml").write_text('"größe" = [0, 60]\nill = ["yes", "no"]\n', encoding="utf-8")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.endurance.system_faults", "--serve", self.given], cwd=ROOT,
            env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._well: dict[str, Found] = {}
        for made in {NEEDS[COMMANDS[each][0]] for each in commands if COMMANDS[each][0] in NEEDS}:
            within, steps = MADE[made]
            for words in steps:
                found = self._play(words=words, within=within, kept=True)
                if found.code:
                    raise RuntimeError(f"{' '.join(words)}: {found.said[-2000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._server:
            if self._server.stdin is not None:
                self._server.stdin.close()

    def _play(self, **case: Any) -> Found:
        plain = {"within": ".", "kept": False, "call": None, "again": []} | PLAIN
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps(plain | case), file=self._server.stdin, flush=True)
        return Found(**json.loads(self._server.stdout.readline()))

    def play(self, draw: Draw) -> Found:
        """What comes of a draw."""
        words = COMMANDS[draw.command]
        again = AGAIN.get(words[0], []) if "--out" in words else []
        call = None if draw.call is None else vars(draw.call)
        return self._play(words=words, call=call, again=again, **MACHINES[draw.machine])

    def well(self, command: str) -> Found:
        """What comes of a command where nothing fails, played once."""
        if command not in self._well:
            self._well[command] = self.play(Draw(command))
        return self._well[command]

    def draw(self, command: str, rng: random.Random) -> Draw:
        """One of a command: four of five have a call that fails, of the kinds that it makes."""
        machine = rng.choice(list(MACHINES)) if rng.random() < 0.25 else "a plain machine"
        calls = {kind: n for kind, n in self.well(command).calls.items() if n}
        if not calls or rng.random() < 0.1:
            return Draw(command, None, machine if machine != "a plain machine" else rng.choice(list(MACHINES)[1:]))
        kind = rng.choice(list(calls))
        number = min(calls[kind], int(calls[kind] ** rng.random() + rng.random()))  # early ones as often as late ones
        error = rng.choice(KINDS[kind])
        once = kind != "all memory" and (error in (errno.EINTR, 0) or rng.random() < 0.5)
        under = rng.choice(UNDER) if rng.random() < 0.2 else ""
        return Draw(command, Call(kind, error, max(1, number), once, under), machine)


def shape(text: str) -> list[str]:
    """Its lines without numbers, what is drawn of them, and spaces."""
    return [re.sub(r"[\d.,%+\-e*\s─-╿]+", " ", line).strip() for line in text.splitlines()]


def problems(draw: Draw, found: Found, well: Found) -> list[str]:
    """What is wrong: a traceback; a death; more or less than one last line of an error; a record's value anywhere; an
    output that is not whole under exit code 0; more spent than asked for; spent, and no way to the answer."""
    wrong = []
    native = draw.call is not None and "memory" in draw.call.kind and not draw.call.once and found.code in NATIVE
    if "Traceback" in found.out + found.said:
        wrong.append("a traceback")
    if found.code < 0 and not native:
        wrong.append(f"died of signal {-found.code}")
    lines = found.said.rstrip().splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if found.code > 0 and not native:
        if len(errors) != 1 or lines[-1] != errors[-1]:
            wrong.append(f"{len(errors)} lines of an error")
        if CANARY in found.said:
            wrong.append("a record's value in what was said")
    elif found.code == 0:
        if errors:
            wrong.append("an error under exit code 0")
        if draw.machine == "a full output" and well.out:
            wrong.append("an output that went nowhere, under exit code 0")
        if not {"output", "account", "home"} & {*draw.machine.split()} and not _whole(found.out, well.out):
            wrong.append("an output that is not whole, under exit code 0")
    if found.hurt:
        wrong.append(f"a record's value in {', '.join(found.hurt)}")
    if max(found.spent, found.spent_again) > max(1, well.spent):  # one that is passing is gone where all is well
        wrong.append(f"{max(found.spent, found.spent_again)} releases spent, of {well.spent}")
    killed_alone = native and "--out" not in COMMANDS.get(draw.command, ())  # as by a signal: nothing was kept
    if (
        found.code
        and found.spent > 0
        and not killed_alone
        and not (found.again or lost(found) or (found.kept and _whole(found.kept, well.out)))
    ):
        wrong.append("spent, and no way to the answer")
    return wrong


def lost(found: Found) -> bool:
    """Whether the command, when it was called again, said that the release is spent and was not opened: the machine
    failed between the ledger's line, which has to be first, and the file of what was opened."""
    return any("is spent and was not opened" in said for said in found.wrong_again)


def _whole(out: str, well: str) -> bool:
    """As many lines as where nothing fails, but for one in ten: noise may add or leave out a remark."""
    lines, least = out.splitlines(), 0.9 * len(well.splitlines()) - 1
    return len(lines) >= least and (not lines or out.endswith("\n") == well.endswith("\n"))


def rounds(commands: Sequence[str], draws: int, rng: random.Random) -> Iterator[str]:
    """That many commands, each as often as another."""
    for number in range(draws):
        if number % len(commands) == 0:
            order = rng.sample(list(commands), len(commands))
        yield order[number % len(commands)]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0, help="no draw begins after so many")
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS), metavar="COMMAND")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve)
        return
    rng, bad, failed, gone, kinds = random.Random(chosen.seed), 0, 0, 0, Counter[str]()
    end = time.monotonic() + 60 * chosen.minutes
    with tempfile.TemporaryDirectory() as folder, Machine(Path(folder), chosen.commands) as machine:
        for command in rounds(chosen.commands, chosen.draws, rng):
            if time.monotonic() > end:
                break
            draw = machine.draw(command, rng)
            found = machine.play(draw)
            wrong = problems(draw, found, machine.well(command))
            bad, failed = bad + bool(wrong), failed + bool(found.failed or draw.call is None)
            gone += bool(found.code and not found.again and lost(found))
            kinds[draw.call.kind if draw.call else "machine alone"] += 1
            if wrong:
                print(f"{draw}: {'; '.join(wrong)}\n  exit code {found.code}; {found.said.strip()[-3000:]}", flush=True)
                for each in found.wrong_again:
                    print(f"  again: {each.strip()}", flush=True)
    over = f"{kinds.total()} draws over {len(chosen.commands)} commands"
    print(f"{over}, of which {failed} met their fault: {bad} broke a rule; {gone} spent a release that was not opened")
    print(", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
