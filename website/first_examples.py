"""The first examples of `dpmpc --help` and of every command's, run one after the other in an empty folder.

    python website/first_examples.py [PROGRAM]

PROGRAM: the `dpmpc` that is run; without, the one on the path. Needs the standard library alone, so that a wheel's own
environment runs it.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# In an order in which each has what it needs of those before. Others wait for sites elsewhere (join), take part with
# other sites or their keys (rehearse, keys), or measure for minutes (bench, sample).
ORDER = ("", "example", "train", "predict", "stats", "synth", "meet", "describe", "check", "advise", "account",
         "report", "verify", "init", "plan", "kit", "status", "budget", "circuit")  # fmt: skip
LEFT_OUT = ("join", "rehearse", "keys", "bench", "sample")


def examples(help: str) -> list[str]:
    """The commands that a help shows, without what is said beside them."""
    lines = re.sub(r" \\\n +", " ", help).splitlines()
    found = [line.strip().removeprefix("Example: ") for line in lines]
    own = [line for line in found if line.startswith("dpmpc ")]
    return [re.split(r" {2,}", line)[0] for line in own]


def first(program: str, command: str) -> list[str]:
    """The first example of a command's help, or all of the program's own."""
    words = [program, *([command] if command else []), "--help"]
    wide = {**os.environ, "COLUMNS": "200"}
    help = subprocess.run(words, env=wide, check=True, capture_output=True, text=True)
    found = [each for each in examples(help.stdout) if not command or each.split()[1] == command]
    return found if not command else found[:1]


def main(program: str, say: Callable[[str], object] = print) -> int:
    """Runs them. Returns 1 at the first that fails."""
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "DPMPC_ACCOUNT": str(Path(folder) / ".account")}
        done: set[str] = set()
        for command in ORDER:
            for line in first(program, command):
                words = shlex.split(line)
                if line in done:
                    continue
                done.add(line)
                made = subprocess.run(
                    [program, *words[1:]], cwd=folder, env=own, capture_output=True, text=True, timeout=600, check=False
                )
                if made.returncode:
                    say(f"exit code {made.returncode} of {line}\n{made.stdout}{made.stderr}")
                    return 1
                say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "dpmpc"))
