"""docs/domains.md: all uses of hashes and streams, from their declarations and the code.

python -m website.domains --write
"""

import ast
import sys
from pathlib import Path

from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.domains import BLOCKS, ELSEWHERE, STREAM, Domain

ROOT = Path(__file__).parents[1]
MPC = ROOT / "dpmpc/mpc"
PAGE = ROOT / "docs/domains.md"
BEGIN, END = "<!-- uses -->", "<!-- end of uses -->"


def declared() -> dict[str, Domain]:
    """By the name of the constant."""
    return {name: value for name, value in vars(domains).items() if isinstance(value, Domain)}


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
