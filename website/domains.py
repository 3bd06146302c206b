"""docs/domains.md: all uses of hashes and streams, from their declarations and the code.

python -m website.domains --write
"""

import ast
import re
import sys
from pathlib import Path

from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.domains import BLOCKS, ELSEWHERE, STREAM, Domain

ROOT = Path(__file__).parents[1]
MPC = ROOT / "dpmpc/mpc"
PAGE = ROOT / "docs/domains.md"
PACKAGE = ROOT / "dpmpc"
APART = ("mpc", "benchmarks", "circuits", "cli")  # the protocols, above; and what no run's process hashes with
# What is hashed outside the protocols, by module. Where two things that anybody compares or draws by could meet, what
# is hashed begins with a name of its own, which `prefixes` finds in the code.
OUTSIDE = {
    "aggregation/owner/sites.py": "a run's name, in the name of a file",
    "aggregation/party/resume.py": "messages of an attempt that was cut short, held against those that come again",
    "aggregation/plan/asked.py": "plan.json: the plan that a stage belongs to, or a list of keys is for",
    "aggregation/plan/derivation.py": "the sources that derive a plan's noise, which processes have alike",
    "aggregation/plan/derive.py": "a sampler's tables, which processes derive alike",
    "aggregation/plan/fields.py": "a plan's fields, to say which differ between two processes",
    "aggregation/plan/identities.py": "what processes agree on before they meet: the run in all domains above",
    "aggregation/plan/plan.py": "a plan with an attempt: part of the run in all domains above",
    "aggregation/wire/attempt_token.py": "an attempt's token, of all parties' parts, drawn by each",
    "aggregation/wire/traffic.py": "bytes of a connection, in transcripts",
    "aggregation/wire/transcript.py": "opened sums, in transcripts",
    "consortium/dry_run.py": "a trial, so that it meets no run",
    "consortium/kit.py": "plan.json as it is handed over",
    "consortium/plan_alone.py": "a run's id, of all that is public of it",
    "consortium/plan_of_machines.py": "what draws who is held out, of public words",
    "consortium/toml.py": "a run's id, of all that is public of it",
    "consortium/wheel.py": "a wheel file, which sites compare before they install it",
    "dossier/facts.py": "files of a dossier",
    "flower/prepared.py": "a round's plan and keys, which seals are bound to",
    "flower/sealing.py": "HKDF and AES-256-GCM of one share, bound to round, attempt, release, owner and party",
    "intake/csvfile.py": "files, whether they changed while they were read",
    "intake/files.py": "files, whether they changed while they were read",
    "intake/hashing.py": "a category's bucket, of the names of column and value: public, without a key",
    "learning/away.py": "records that workers hold, under a key drawn for one run: whether a worker's are as before",
    "privacy/assignment.py": "which assignment is which, and keyed BLAKE2b of an id: in which part it is",
    "privacy/data_names.py": "the name of records, in the name of an account's file",
    "privacy/entry.py": "lines of ledgers, each of which chains the one before",
    "privacy/heads.py": "heads of accounts, and their names",
    "privacy/stored_parts.py": "which row is in which part, by BLAKE2b under a secret key of its owner and file",
    "records/schema.py": "a schema",
    "verify/run_files.py": "lines of ledgers",
    "verify/shipped.py": "files of this package",
}
_PREFIX = re.compile(r'b"(dpmpc [^"\\]*)\\0"')
BEGIN, END = "<!-- uses -->", "<!-- end of uses -->"


def declared() -> dict[str, Domain]:
    """By the name of the constant."""
    return {name: value for name, value in vars(domains).items() if isinstance(value, Domain)}


def prefixes() -> dict[str, list[str]]:
    """What begins that which is hashed outside the protocols, by module."""
    return {place: _PREFIX.findall((PACKAGE / place).read_text(encoding="utf-8")) for place in OUTSIDE}


def used() -> dict[str, list[str]]:
    """The modules of `dpmpc.mpc` that use each constant."""
    found: dict[str, list[str]] = {name: [] for name in declared()}
    for path in sorted(MPC.rglob("*.py")):
        names = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "domains"
        }
        for name in names & found.keys():
            found[name].append(path.relative_to(MPC).as_posix())
    return found


def table() -> str:
    """What stands between the marks."""
    places = used()
    lines = ["| domain | its instances | what comes out | in |", "| --- | --- | --- | --- |"]
    for name, domain in declared().items():
        of = ", ".join(domain.of) or "one"
        kind = "stream: " if domain.kind == STREAM else ""
        where = ", ".join(f"`{place.removesuffix('.py')}`" for place in places[name])
        lines.append(f"| *{domain.name}* | {of} | {kind}{domain.gives} | {where} |")
    lines += [
        "",
        "AES beside streams:",
        "",
        "| use | key | what tells blocks apart | in |",
        "| --- | --- | --- | --- |",
    ]
    for block in BLOCKS:
        where = ", ".join(f"`{place.removesuffix('.py')}`" for place in block.where)
        lines.append(f"| {block.name} | {block.key} | {block.tweak} | {where} |")
    lines += ["", "Hashes that are no domain:", ""]
    lines += [f"- `{place.removesuffix('.py')}`: {what}." for place, what in ELSEWHERE.items()]
    lines += ["", "Outside the protocols:", "", "| in | what is hashed | begins with |", "| --- | --- | --- |"]
    begins = prefixes()
    lines += [
        f"| `{place.removesuffix('.py')}` | {what} | {', '.join(f'*{each}*' for each in begins[place])} |"
        for place, what in OUTSIDE.items()
    ]
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The page, with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_table(text), encoding="utf-8")
    elif with_table(text) != text:
        sys.exit("docs/domains.md is not of today's code; python -m website.domains --write")


if __name__ == "__main__":
    main()
