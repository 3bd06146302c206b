"""TLS between the processes of a run: mutual, TLS 1.3, every certificate bound to the name of the process that may use
it.

A directory holds `ca.crt` and, for the process NAME (`party0`, `party1`, ..., `owners`), `NAME.crt` and `NAME.key`.
Without TLS the PRSS keys and the owners' shares cross the network in the clear, so only loopback addresses may do
without.
"""

import datetime
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmpc.errors import PeerError, UsageError

_DAYS = 825
_EARLY = datetime.timedelta(minutes=5)  # clocks differ


@dataclass(frozen=True)
class Tls:
    """The contexts of one process, as server and as client."""

    server: ssl.SSLContext
    client: ssl.SSLContext

    @staticmethod
    def load(directory: Path, name: str) -> "Tls":
        """The contexts for the process `name`. Errors: UsageError for a missing or unreadable file."""
        contexts = []
        for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
            for file in ("ca.crt", f"{name}.crt", f"{name}.key"):
                if not (directory / file).is_file():
                    raise UsageError(
                        f"--tls needs ca.crt, {name}.crt and {name}.key in {directory}; {file} is missing; make "
                        "them with `dpmpc keys`"
                    )
            try:  # with `cafile` the authorities that the system trusts are left out
                context = ssl.create_default_context(purpose, cafile=str(directory / "ca.crt"))
                context.minimum_version = ssl.TLSVersion.TLSv1_3
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_cert_chain(directory / f"{name}.crt", directory / f"{name}.key")
            except (ssl.SSLError, OSError) as error:
                raise UsageError(
                    f"--tls needs matching PEM files for {name} in {directory}; {error}; make them with `dpmpc keys`"
                ) from None
            contexts.append(context)
        check_dates(directory / f"{name}.crt")
        return Tls(*contexts)


def check_dates(path: Path) -> None:
    """Errors: UsageError for a certificate that has expired, or is not valid yet."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    now = datetime.datetime.now(datetime.UTC)
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= now <= last:
        state = "has expired" if now > last else "is not valid yet"
        raise UsageError(
            f"a certificate must be valid today; {path} {state} (valid {first:%Y-%m-%d} to {last:%Y-%m-%d}); have it "
            "made again, or set this machine's clock"
        )


def check_name(certificate: object, name: str) -> None:
    """Errors: PeerError unless the verified certificate of a peer (as `SSLObject.getpeercert` gives it) is for `name`.

    MPyC's listener accepts any certificate of the CA for any party; this is the check it lacks.
    """
    names = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"]  # type: ignore[attr-defined]
    if name not in names:
        raise PeerError(
            f"a peer's certificate must be for the name it claims; it claims {name}, the certificate is for "
            f"{', '.join(names) or 'nobody'}; mend --tls"
        )


def make_credentials(directory: Path, names: Sequence[str]) -> None:
    """Write a new certificate authority and a certificate and key for each name into `directory` (keys readable by the
    owner alone).

    Whoever runs this sees every key: fit for trials, or for one trusted operator; otherwise let each organisation make
    its own key and have the authority sign it. The authority's key is not kept. Errors: UsageError if files are in the
    way.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    directory.mkdir(parents=True, exist_ok=True)
    taken = [p.name for p in directory.iterdir()]
    if taken:
        raise UsageError(f"the folder for new keys must be empty; {directory} holds {taken[0]}; name another")
    now = datetime.datetime.now(datetime.UTC)

    def certificate(
        name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey, *, ca: bool
    ) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _EARLY)
            .not_valid_after(now + datetime.timedelta(days=_DAYS))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=not ca,
                    key_cert_sign=ca,
                    crl_sign=ca,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        )
        if not ca:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    authority = ec.generate_private_key(ec.SECP256R1())
    (directory / "ca.crt").write_bytes(certificate("dpmpc run", authority, "dpmpc run", authority, ca=True))
    for name in names:
        key = ec.generate_private_key(ec.SECP256R1())
        (directory / f"{name}.crt").write_bytes(certificate(name, key, "dpmpc run", authority, ca=False))
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with open(os.open(directory / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
