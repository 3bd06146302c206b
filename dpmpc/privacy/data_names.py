"""The names under which spending adds up: from a text that people agree on to a digest, in one place.

People write a name again and again, and by hand. Texts that differ only in blanks, in case, in width or in marks that
nobody sees are one name here, so that a budget does not begin anew for a space. That joins more than it must (`run 1`
and `RUN1` are one), which costs budget and never privacy.

Digests of before that rule were of the texts as they were written. A ledger's line says name and digest, so what was
spent under such a digest is known to be this name's (`canonical`), and adds up.
"""

import hashlib
import unicodedata
from collections.abc import Iterable

# Of no category that says so, and nothing is seen of them (Unicode's Default_Ignorable_Code_Point), or a blank.
_UNSEEN = frozenset(map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x2800, 0x3164, 0xFFA0))) | frozenset(
    chr(code)
    for first, last in ((0x180B, 0x180D), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF), (0xFFF0, 0xFFF8))
    for code in range(first, last + 1)
)
_BLANK = ("Cc", "Cf", "Zs", "Zl", "Zp")  # categories: control and format characters, spaces and ends of lines
_ROUNDS = 4  # folding is done again until nothing changes; two are enough for every character of Unicode


def folded(name: str) -> str:
    """The name as it is compared: no blanks, no marks that are not seen, of one case and one width."""
    for _ in range(_ROUNDS):
        before = name
        name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        name = "".join(c for c in name if c not in _UNSEEN and unicodedata.category(c) not in _BLANK)
        if name == before:
            break
    return name


def data_digest(name: str) -> str:
    """The name under which the ledger adds up what was spent on the same data: a digest of a text that the owners agree
    on, the same for all texts that are one name."""
    return _digest(folded(name))


def canonical(digest: str, name: object) -> str:
    """The digest that spending under `digest` adds up under: that of `name`, where it is one of this text in any
    version; else itself."""
    if not isinstance(name, str) or digest not in (_digest(name), data_digest(name)):
        return digest
    return data_digest(name)


def same_names(names: Iterable[str]) -> list[list[str]]:
    """Of these texts, the groups that are one name and are written differently."""
    groups: dict[str, set[str]] = {}
    for name in names:
        groups.setdefault(folded(name), set()).add(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def _digest(text: str) -> str:
    return hashlib.sha256(b"dpmpc data\0" + text.encode("utf-8", "surrogatepass")).hexdigest()
