"""The list of a run's keys: which key is which process, agreed on by all sites, so that no signature alone says it.

A certificate says what its authority says. Whoever holds the authority, of `dpmpc keys` or of an organisation, can sign
a second key for any process, and be all parties towards one owner. So the sites hold one list: the process and the
SHA-256 of its public key, a line each, for one plan, whose digest is its first line: the number that people compare
is of the plan too, and a list without one is none. Each site puts it into the folder of its keys by hand, and its
people read each other a number over a line that the authority does not carry. From then on a process takes nobody whose
key is not on its own list, whatever the certificate says, and processes that meet compare the digests of their lists. A
renewed key is a new list.

The number is 30 digits of scrypt (32 MB, some 0.1 s) of the list's digest. Guarantees: two lists have the same number
with probability 10^-30. Who may choose keys in both lists finds two that have after some 10^15 trials, each of which
costs that much (birthday bound).
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from dpmpc.errors import PeerError, UsageError
from dpmpc.lazy import cached_property, dataclass

LIST = "sites.txt"
HEAD = "# dpmpc: which key is which process of one plan. Compare the number of `dpmpc keys list` by voice.\n"
NO_LIST = "no list of keys is in use: whoever signs certificates could be every other site"
_LINE = re.compile(r"(owners|(?:party|owner|site)\d{1,6}) ([0-9a-f]{64})")
_PLAN = re.compile(r"plan ([0-9a-f]{64})")
_DIGITS, _GROUP = 30, 5


@dataclass(frozen=True)
class SiteKeys:
    """`plan`: SHA-256 of the plan's file, hexadecimal. `keys`: (process, SHA-256 of its public key), sorted. Public.
    Errors: UsageError for a list of no plan."""

    plan: str
    keys: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if not _PLAN.fullmatch(f"plan {self.plan}"):
            raise UsageError(
                f"a list of keys is for one plan, by the digest of its plan.json; got {self.plan or 'none'}; make it "
                "of the certificates, with `dpmpc keys list *.crt --plan plan.json --out sites.txt`",
                code="keys",
            )

    @cached_property
    def digest(self) -> bytes:
        """What processes compare (32 bytes)."""
        return hashlib.sha256(b"dpmpc list of keys\0" + self.to_text().encode()).digest()

    @cached_property
    def number(self) -> str:
        """30 digits in groups, for people to compare. Cost: 32 MB, some 0.1 s."""
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        found = Scrypt(salt=b"dpmpc number of a list of keys", length=32, n=1 << 15, r=8, p=1).derive(self.digest)
        digits = f"{int.from_bytes(found, 'big') % 10**_DIGITS:0{_DIGITS}d}"
        return " ".join(digits[k : k + _GROUP] for k in range(0, _DIGITS, _GROUP))

    def key_of(self, process: str) -> str | None:
        """The key of a process, by its own name or its site's; None where it is not on the list."""
        known = dict(self.keys)
        return known.get(process, known.get(re.sub(r"^(party|owner)(?=\d)", "site", process)))

    def check(self, names: Sequence[str], key: str) -> None:
        """Errors: PeerError unless this is the key of one of these processes."""
        if key not in {self.key_of(name) for name in names}:
            who = names[0] if len(names) == 1 else f"one of {names[0]} .. {names[-1]}"
            raise PeerError(
                f"a process shows the key that its site's list has for it; {who} shows {key[:16]}, which the list here "
                "does not; ask that site by voice, and accept a new list with `dpmpc keys accept`"
            )

    def check_plan(self, plan: str) -> None:
        """Errors: UsageError unless the list is for the plan of this digest."""
        if self.plan != plan:
            raise UsageError(
                f"a list of keys is for one plan; it is for {self.plan[:16]}, the plan here is {plan[:16]}; get the "
                "list of this run, and accept it with `dpmpc keys accept`",
                code="keys",
            )

    def to_text(self) -> str:
        """The file."""
        return "".join([HEAD, f"plan {self.plan}\n", *(f"{process} {key}\n" for process, key in self.keys)])

    @staticmethod
    def read(path: Path) -> "SiteKeys":
        """The list in a file. Errors: UsageError for what is none, is of no plan, or names a process or a key twice."""
        plan, keys = "", dict[str, str]()
        try:
            lines = [line.strip() for line in path.read_text(encoding="ascii").splitlines()]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise UsageError(
                f"a list of keys is what `dpmpc keys sign` wrote; {path}: {why}; get it again", code="keys"
            ) from None
        for number, line in enumerate(lines, 1):
            if not line or line.startswith("#"):
                continue
            if not plan and not keys and (said := _PLAN.fullmatch(line)):
                plan = said[1]
                continue
            found = _LINE.fullmatch(line)
            if found is None or found[1] in keys or found[2] in keys.values():
                raise UsageError(
                    f"a list of keys has a process and its key in a line, each once; line {number} of {path} is other; "
                    "get it again",
                    code="keys",
                )
            keys[found[1]] = found[2]
        return SiteKeys(plan, tuple(sorted(keys.items())))


def list_in(keys: Path) -> SiteKeys | None:
    """The list that a site has put into the folder of its keys; None where it has none. Errors: as `SiteKeys.read`."""
    path = keys / LIST
    return SiteKeys.read(path) if path.exists() else None


def list_for(keys: Path | None, plan: str) -> SiteKeys | None:
    """The same, held against the digest of the plan that a process is about to take part in, stages and all. Errors:
    as `list_in`, and a list for another plan."""
    found = None if keys is None else list_in(keys)
    if found is not None:
        found.check_plan(plan)
    return found


def key_in(certificate: bytes) -> str:
    """SHA-256 of the public key of a certificate (DER), hexadecimal."""
    from cryptography import x509

    return key_digest(x509.load_der_x509_certificate(certificate))


def key_digest(certificate: object) -> str:
    """The same of a certificate, or a request, that was read."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = certificate.public_key()  # type: ignore[attr-defined]
    return hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def changes(before: SiteKeys | None, after: SiteKeys) -> list[str]:
    """What a new list says otherwise, a line each."""
    if before is None:
        return []
    old, new = dict(before.keys), dict(after.keys)
    found = [] if before.plan == after.plan else ["for another plan"]
    for process in sorted(old.keys() | new.keys()):
        if process not in new:
            found.append(f"{process}: not on it any more")
        elif process not in old:
            found.append(f"{process}: new, {new[process][:16]}")
        elif old[process] != new[process]:
            found.append(f"{process}: another key, {new[process][:16]} in place of {old[process][:16]}")
    return found
