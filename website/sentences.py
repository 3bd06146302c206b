"""How long the sentences of the pages are.

    python -m website.sentences            words a sentence of every page, and how many have more than 25
    python -m website.sentences --long     prints those

Prose alone counts: no code, tables, headings, pictures or parts that are generated."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG = 25
_APART = (r"<!--#.*?<!--#-->", r"<!--.*?-->", r"^(```|~~~).*?^\1[^\S\n]*$", r"^ *(?:\||#|!\[|:::|\$\$).*$")
_ITEM = re.compile(r"^ *(?:[-*+]|\d+\.) ", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[\")*]*\s+(?=[\"(*]*[A-Z0-9`\[ε-ωδ‖])")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page, a span of code as one word."""
    text = re.sub(r"`[^`\n]+`", "C0DE", re.sub(_APART[2], "\n\n", text, flags=re.MULTILINE | re.DOTALL))
    for apart in (_APART[0], _APART[1]):
        text = re.sub(apart, "", text, flags=re.DOTALL)
    text = re.sub(_APART[3], "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", _ITEM.sub("\n\n", text)).replace("**", "")
    for paragraph in re.split(r"\n\s*\n", text):
        yield from (part for part in _END.split(paragraph.strip()) if words(part))


def words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def pages() -> list[Path]:
    """Texts for readers; the record of changes is not among them."""
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return named + sorted((ROOT / "docs").rglob("*.md"))


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> None:
    """The command."""
    for path in pages():
        counts = {part: words(part) for part in sentences(path.read_text(encoding="utf-8"))}
        many = [part for part, count in counts.items() if count > LONG]
        if counts:
            average = sum(counts.values()) / len(counts)
            say(f"{path.relative_to(ROOT)}: {average:.1f} words a sentence, {len(many)} of {len(counts)} over {LONG}")
        for part in many if "--long" in arguments else ():
            say(f"  {counts[part]}: {' '.join(part.split())}")


if __name__ == "__main__":
    main(sys.argv[1:])
