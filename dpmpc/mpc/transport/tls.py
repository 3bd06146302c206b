"""TLS between the processes of a run: mutual, TLS 1.3, every certificate bound to the name of the process that may use
it.

A directory holds `ca.crt` and, for the process NAME (`party0`, `party1`, ..., `owners`), `NAME.crt` and `NAME.key`;
and where the sites agreed on one, the list of their keys (`site_keys`). A site that is party and owner with one number
may have one certificate for both names, `site2.crt` and `site2.key`. `ca.crt` may have several authorities: the run's,
and an organisation's own. Without a list a process is who its certificate says. With one it is whose key it shows, and
the names in its certificate, which may be those of a machine, say nothing.
Without TLS the PRSS keys and the owners' shares cross the network in the clear, so only loopback addresses may do
without.
"""

import datetime
import re
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from dpmpc.errors import NotYetError, PeerError, UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.reaching import waited_for
from dpmpc.mpc.transport.site_keys import SiteKeys, key_in, list_in

CLOCK = "its own clock ({} is valid from {:%Y-%m-%d %H:%M} UTC)"  # what is lacking where it is not in step


class Shows(Protocol):
    """A peer that has shown a certificate: `wire.Peer`."""

    @property
    def certificate(self) -> object: ...
    @property
    def certificate_bytes(self) -> bytes | None: ...


@dataclass(frozen=True)
class Tls:
    """The contexts of one process, as server and as client."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    sites: SiteKeys | None = None  # the list of all sites' keys, where this one has it

    @staticmethod
    def load(directory: Path, name: str) -> "Tls":
        """The contexts for the process `name`. Errors: UsageError for a missing or unreadable file."""
        contexts, name, sites = [], file_name(directory, name), list_in(directory)
        for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
            for file in ("ca.crt", f"{name}.crt", f"{name}.key"):
                if not (directory / file).is_file():
                    raise UsageError(
                        f"<<tls>> needs ca.crt, {name}.crt and {name}.key in {directory}; {file} is missing; make "
                        "them with `dpmpc keys`",
                        code="keys",
                    )
            try:  # with `cafile` the authorities that the system trusts are left out
                context = ssl.create_default_context(purpose, cafile=str(directory / "ca.crt"))
                context.minimum_version = ssl.TLSVersion.TLSv1_3
                context.verify_mode = ssl.CERT_REQUIRED
                if purpose is ssl.Purpose.CLIENT_AUTH:
                    context.num_tickets = 0  # nobody resumes a session: connections are few, and last a run
                else:
                    context.check_hostname = sites is None  # else `check` looks at the key
                context.load_cert_chain(directory / f"{name}.crt", directory / f"{name}.key")
            except (ssl.SSLError, OSError) as error:
                raise UsageError(
                    f"<<tls>> needs matching PEM files for {name} in {directory}; {error}; make them with `dpmpc keys`",
                    code="keys",
                ) from None
            contexts.append(context)
        check_dates(directory / f"{name}.crt")
        server, client = contexts
        return Tls(server, client, sites)

    @staticmethod
    async def valid(directory: Path, name: str, patience: float, lacking: Callable[[str], None]) -> "Tls":
        """As `load`; a certificate that is not valid yet by this machine's clock is waited for (`waited_for`)."""

        async def attempt() -> Tls:
            return Tls.load(directory, name)

        return await waited_for(attempt, patience, lacking)

    @property
    def digest(self) -> bytes:
        """Of the list of keys; b"" without one."""
        return b"" if self.sites is None else self.sites.digest

    @property
    def says(self) -> str:
        """Of the list, to a process that has another."""
        return "; it has no list of keys" if self.sites is None else f"; its list of keys is {self.digest.hex()[:16]}"

    def check(self, peer: "Shows", names: Sequence[str]) -> None:
        """Errors: PeerError unless the verified certificate of a peer is for one of these names; where there is a list,
        unless the key that it shows is one of theirs."""
        if self.sites is None:
            check_names(peer.certificate, names)
        else:
            self.sites.check(names, key_in(peer.certificate_bytes or b""))


def file_name(directory: Path, name: str) -> str:
    """What the certificate and key of process `name` are called in `directory`: as the process, or as the site that is
    this party and this owner, where only those are there."""
    site = re.sub(r"^(party|owner)(?=\d)", "site", name)
    return name if (directory / f"{name}.crt").exists() or not (directory / f"{site}.crt").exists() else site


def check_dates(path: Path) -> None:
    """Errors: UsageError for a certificate that has expired; NotYetError for one that is not valid yet."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    now = datetime.datetime.now(datetime.UTC)
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    when = f"(valid {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC, and here it is {now:%Y-%m-%d %H:%M})"
    if now < first:  # the clock of a machine that has just begun may not be in step yet
        raise NotYetError(
            f"a certificate must be valid today; {path} is not valid yet {when}; set this machine's clock, or have it "
            "made again",
            lacks=CLOCK.format(path.name, first),
        )
    if now > last:
        raise UsageError(
            f"a certificate must be valid today; {path} has expired {when}; have it made again, or set this machine's "
            "clock"
        )


def check_names(certificate: object, names: Sequence[str]) -> None:
    """Errors: PeerError unless the verified certificate of a peer (as `SSLObject.getpeercert` gives it) is for one of
    these names, which what it says needs.

    MPyC's listener accepts any certificate of the CA for any party; this is the check it lacks.
    """
    found = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"]  # type: ignore[attr-defined]
    if not set(names) & set(found):
        claimed = names[0] if len(names) == 1 else f"one of {names[0]} .. {names[-1]}"
        raise PeerError(
            f"a peer's certificate must be for the name it claims; it claims {claimed}, the certificate is for "
            f"{', '.join(found) or 'nobody'}; mend <<tls>>"
        )
