"""Runs commands on a machine that refuses something, each in a process forked from one that has the imports.

`python -m tests.cli.bad_machine FOLDER`: every case of stdin, a JSON object a line; answers a JSON object a line with
the exit code, what was said, and how much the account has grown. Each case begins with the folder as it was given.
"""

import fcntl
import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

HANG = 60  # seconds of processor that a command may take


def main() -> None:
    import dpmpc.cli.main
    import dpmpc.consortium.rehearsing
    import dpmpc.local.owner_process
    import dpmpc.tables.asked
    import dpmpc.tables.meet
    import dpmpc.tables.synth  # noqa: F401  (all that is slow to import)

    given = Path(sys.argv[1])
    for number, line in enumerate(sys.stdin):
        case = json.loads(line)
        folder = given.with_name(f"{given.name}-{number}")
        shutil.copytree(given, folder, symlinks=True)
        out, said = folder / "stdout.txt", folder / "stderr.txt"
        child = os.fork()
        if child == 0:
            _play(case, folder, out, said)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.chmod(folder, 0o700)
        text = [path.read_bytes().decode(errors="replace") if path.exists() else "" for path in (out, said)]
        answer = {"code": code, "out": text[0][-4000:], "said": text[1][-4000:], "spent": spent(folder)}
        shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps(answer), flush=True)


def spent(folder: Path) -> int:
    """Lines of releases in all ledgers there, but reservations."""
    lines = [line for path in folder.rglob("ledger*.jsonl") for line in path.read_text().splitlines()]
    return sum('"reserved"' not in line for line in lines[0:])


def _play(case: dict[str, Any], folder: Path, out: Path, said: Path) -> None:
    """The command of a case, in this process; never returns."""
    code = 70
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update({name: value.replace("HERE", str(folder)) for name, value in case["env"].items()})
        resource.setrlimit(resource.RLIMIT_CPU, (HANG, HANG + 5))
        errors = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(errors, 2)
        target = {"closed": None, "full": "/dev/full"}.get(case["stdout"], str(out))
        if target is None:
            os.close(1)
            sys.stdout = None  # as Python has it where descriptor 1 is closed at the start
        else:
            os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT), 1)
            sys.stdout = open(1, "w", encoding=case["encoding"], closefd=False)
        sys.stderr = open(2, "w", encoding=case["encoding"], errors="backslashreplace", closefd=False)
        if case["nobody"]:
            import pwd

            def nobody(user: object) -> Any:
                raise KeyError(user)

            pwd.getpwuid = nobody
        if case["files"]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (case["files"], case["files"]))
        if case["call"]:
            _refuse(*case["call"])
        sys.argv = ["dpmpc", *case["words"]]
        from dpmpc.cli.main import program

        try:
            program()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            code = code or 120  # as the interpreter ends
    except BaseException:  # noqa: BLE001  (whatever leaves the command is what is looked for)
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _refuse(name: str, number: int, after: int) -> None:
    """Has a call of the system fail, from so many calls on."""
    home = fcntl if name == "flock" else os
    real, calls = getattr(home, name), [0]

    def failing(*arguments: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] > after:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **more)

    setattr(home, name, failing)


if __name__ == "__main__":
    main()
