"""Certificates and keys for the processes of a run: all at once for a trial, or without anybody seeing them all.

A site makes its own key and a request (`make_request`); the authority signs the request for the name of a process
(`sign_request`) and sends the certificate back. A key leaves no site, and the authority's stays with the authority.
"""

import datetime
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmpc.codec import loads
from dpmpc.errors import NotYetError, UsageError
from dpmpc.folders import make_folder
from dpmpc.mpc.transport.site_keys import LIST, SiteKeys, changes, key_digest, list_in
from dpmpc.mpc.transport.tls import CLOCK

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_DAYS = 825
_EARLY = datetime.timedelta(minutes=5)  # clocks differ
_AUTHORITY = "dpmpc run"
_SITES = "sites.json"
_PLAN = "plan.txt"
_PROCESS = re.compile(r"owners|(party|owner|site)[0-9]{1,6}")


def make_credentials(directory: Path, names: Sequence[str]) -> None:
    """Write a new certificate authority and a certificate and key for each name into `directory` (keys readable by the
    owner alone).

    Whoever runs this sees every key: fit for trials, or for one trusted operator. The authority's key is not kept.
    Errors: UsageError if files are in the way.
    """
    _make_folder(directory)
    taken = [p.name for p in directory.iterdir()]
    if taken:
        raise UsageError(
            f"the folder for new keys must be empty; {directory} holds {taken[0]}; name another", code="keys"
        )
    authority = _new_key()
    _write(directory / "ca.crt", _pem(_certificate(_AUTHORITY, authority.public_key(), authority, ca=True)))
    for name in names:
        key = _new_key()
        _write(directory / f"{name}.crt", _pem(_certificate(name, key.public_key(), authority, ca=False)))
        _write_key(directory / f"{name}.key", key)


def make_request(directory: Path, name: str) -> Path:
    """Write a new key for the process `name` into `directory`, and the request that the authority is to sign; its path.

    The request holds no secret. Errors: UsageError if a key of that name is there.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    check_process(name)
    _make_folder(directory)
    key = _new_key()
    _write_key(directory / f"{name}.key", key)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    path = directory / f"{name}.csr"
    _write(path, request.public_bytes(serialization.Encoding.PEM), again=True)
    return path


def sign_request(authority: Path, request: Path, name: str, out: Path, plan: str = "") -> Path:
    """Write the certificate that `authority` (a folder; made when it does not exist) gives the key of a request, for
    the process `name` and no other (of site2: party2 and owner2), with ca.crt beside it, into `out`; its path.

    What the request says of its name is not believed: `name` counts, which the authority knows from whom it got the
    request. A second certificate of a name is a renewal. The authority keeps which key it signed for whom, in
    `signed.txt`, and the list of all sites' keys as they are now, in `sites.txt` (`site_keys`), for the plan of this
    digest, or the one that it knew. While it knows of none there is no list. Errors: UsageError for a file that is no
    request, and for a key that it signed for another process: whoever has it could be both.
    """
    from cryptography import x509

    check_process(name)
    key, ca = _authority(authority)
    try:
        asked = x509.load_pem_x509_csr(request.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"a request is what `dpmpc keys request` wrote; {request}: {error}; have it sent again", code="keys"
        ) from None
    if not asked.is_signature_valid:
        raise UsageError(
            f"a request must be signed by the key it is for; {request} is not; have it sent again", code="keys"
        )
    public = asked.public_key()
    _make_folder(out)
    there = (out / "ca.crt").read_bytes() if (out / "ca.crt").is_file() else ca
    if ca.strip() not in there:  # an organisation's own may stand beside it
        raise UsageError(
            f"a folder holds certificates of one run's authority; {out} has another one's than {authority}; name that "
            "authority, or another folder",
            code="keys",
        )
    _write(out / "ca.crt", there, again=True)
    certificate = _certificate(name, public, key, ca=False)
    _remember(authority / "signed.txt", certificate, name, request)
    _list(authority, name, key_digest(certificate), plan)
    path = out / f"{name}.crt"
    _write(path, _pem(certificate), again=True)
    return path


def _remember(signed: Path, certificate: "x509.Certificate", name: str, request: Path) -> None:
    """Notes which key was signed for whom. Errors: UsageError where it was signed for another process."""
    mine = key_digest(certificate)
    try:
        before = dict(line.split() for line in signed.read_text("ascii").splitlines()) if signed.exists() else {}
        if set(_names(before.get(mine, name))) & set(_names(name)):  # a site's party is the same site
            with signed.open("a", encoding="ascii") as file:
                file.write("" if mine in before else f"{mine} {name}\n")
            return
    except (OSError, ValueError) as error:
        raise UsageError(
            f"an authority notes whose keys it signed; {signed}: {error}; restore the file", code="keys"
        ) from None
    raise UsageError(
        f"each process has a key of its own; that of {request} was signed for {before[mine]}, and whoever has it could "
        f"be {name} too; have {name}'s own request sent, or strike that line out of {signed} if its certificate went "
        "nowhere",
        code="keys",
    )


def _list(authority: Path, name: str, key: str, plan: str) -> None:
    """Notes the key that a process has from now on, in the list for all sites."""
    before, path = list_in(authority), authority / LIST
    plan = plan or _plan_of(authority) or ("" if before is None else before.plan)
    if not plan:  # a list is for one plan; the keys are in `signed.txt` until there is one
        return
    known = {} if before is None else dict(before.keys)
    if before is None and (authority / "signed.txt").is_file():  # of before there was a list
        lines = (authority / "signed.txt").read_text("ascii").splitlines()
        known = {process: key for key, process in (line.split() for line in lines)}
    taken = set(_names(name))
    kept = {process: each for process, each in known.items() if not taken & set(_names(process)) and each != key}
    made = SiteKeys(plan, tuple(sorted({**kept, name: key}.items())))
    _write(path, made.to_text().encode(), again=True)


def _plan_of(authority: Path) -> str:
    """The digest of the plan whose kits were made with an authority last; "" where it knows none."""
    path = authority / _PLAN
    return path.read_text("ascii").strip() if path.is_file() else ""


def make_authority(folder: Path) -> bytes:
    """The certificate (PEM, public) of the authority in `folder`, which is made when there is none. Errors: UsageError
    for a folder that holds something else."""
    return _authority(folder)[1]


def remember_sites(folder: Path, sites: Mapping[str, str], plan: str = "") -> None:
    """Keeps what a consortium calls its sites with the authority in `folder`: name -> process; and its plan's
    digest."""
    (folder / _SITES).write_text(json.dumps(dict(sites), ensure_ascii=False) + "\n", encoding="utf-8")
    if plan:
        (folder / _PLAN).write_text(plan + "\n", encoding="ascii")


def process_of(folder: Path, name: str) -> str:
    """The process that a site's own name or a process's name means to the authority in `folder`. Errors: UsageError for
    a name that could be two sites', and for none."""
    try:
        sites = loads((folder / _SITES).read_text(encoding="utf-8")) if (folder / _SITES).exists() else {}
        found = {process for site, process in sites.items() if name in (site, process)}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"an authority knows its sites' names; {folder / _SITES}: {error}; restore the file") from None
    if len(found) > 1:
        raise UsageError(
            f"a name means one site; {name} is one's name and another's process ({', '.join(sorted(found))}); sign the "
            "kit, or rename the site",
            code="keys",
        )
    if not found and sites and not _PROCESS.fullmatch(name):
        raise UsageError(
            f"a site has a name of the consortium; got {name!r}; choose from {', '.join(sites)}", code="choice"
        )
    return found.pop() if found else name


def check_certificate(path: Path, authorities: Path, name: str, listed: bool = False) -> None:
    """Returns if the certificate in `path`, by those that stand after it there, comes from an authority whose
    certificate is in the other file, is for the process `name` and is valid now. `listed`: a list says whose its key
    is, and so it may be for any name. Errors: UsageError where it is not, or a file holds none."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    chain, known = _read_all(path), _read_all(authorities)

    def issues(ca: x509.Certificate) -> bool:
        try:
            chain[at].verify_directly_issued_by(ca)
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    at = 0  # of the chain: so far each comes from the one after it
    while not (by := [ca for ca in known if issues(ca)]) and at + 1 < len(chain) and issues(chain[at + 1]):
        at += 1
    if not by:
        raise UsageError(
            f"a certificate comes from an authority of this run, in {authorities}; {path} does not; have it signed "
            "again, or put the authority's certificate there too",
            code="keys",
        )
    now = datetime.datetime.now(datetime.UTC)
    for file, each in (*((path, each) for each in chain[: at + 1]), (authorities, by[0])):
        first, last = each.not_valid_before_utc, each.not_valid_after_utc
        when = f"from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC, and it is {now:%Y-%m-%d %H:%M}"
        if now < first:
            raise NotYetError(
                f"a certificate is valid for a time; {file} {when}; mend this machine's clock, or have it made again",
                lacks=CLOCK.format(file.name, first),
            )
        if now > last:
            raise UsageError(
                f"a certificate is valid for a time; {file} {when}; have it made again, or mend this machine's clock"
            )
    missing = set(_names(name)) - set(_names_in(chain[0]))
    if missing and not listed:
        raise UsageError(
            f"a certificate must be for the process that uses it, {name}, where no list says whose key it has; {path} "
            f"is not for {sorted(missing)[0]}; have it signed again, or accept a list of keys with `dpmpc keys accept`",
            code="keys",
        )


def check_key(key: Path, certificate: Path) -> None:
    """Returns if the certificate is for that key, and the key is its user's alone. Errors: UsageError where it is for
    another one, a file is none, or anybody on this machine may read or change the key."""
    from cryptography.hazmat.primitives import serialization

    try:
        own = serialization.load_pem_private_key(key.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise UsageError(
            f"keys are PEM files that `dpmpc keys` wrote; {key} cannot be read as one; move it away, make a new one "
            "with `dpmpc keys request`, and have it signed"
        ) from None
    mode = key.stat().st_mode
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise UsageError(
            f"a key is its site's alone; {key} has mode {stat.S_IMODE(mode):o}, so others on this machine may read or "
            f"change it; `chmod 600 {key}`, and have a new one signed if they did",
            code="keys",
        )
    if own.public_key() != _read(certificate).public_key():
        raise UsageError(
            f"a certificate must be for the key beside it; {certificate} is for another key than {key}; have the "
            "request that was made with this key signed"
        )


def _read(path: Path) -> "x509.Certificate":
    return _read_all(path)[0]


def _read_all(path: Path) -> "list[x509.Certificate]":
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        raise UsageError(
            f"certificates are PEM files, of `dpmpc keys` or of your own authority; {path} cannot be read as one; get "
            "it again"
        ) from None


def _names_in(certificate: "x509.Certificate") -> list[str]:
    """The names that a certificate is for."""
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
            x509.DNSName
        )
    except x509.ExtensionNotFound:
        return []


def _names(name: str) -> list[str]:
    """The processes that a certificate called `name` is for: of a site, its party and its owner."""
    number = name.removeprefix("site")
    return [f"party{number}", f"owner{number}"] if number != name else [name]


def check_process(name: str) -> None:
    """Errors: UsageError unless it is the name of a process of a run."""
    if not _PROCESS.fullmatch(name):
        raise UsageError(
            f"a process is called party0, owner0, site0 (both) and so on, or owners; got {name!r}; mend the name",
            code="keys",
        )


def _authority(folder: Path) -> "tuple[ec.EllipticCurvePrivateKey, bytes]":
    """(key, certificate) of the authority in `folder`, new where there is none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    _make_folder(folder)
    if not (folder / "ca.key").exists():
        key = _new_key()
        _write(folder / "ca.crt", _pem(_certificate(_AUTHORITY, key.public_key(), key, ca=True)))
        _write_key(folder / "ca.key", key)
    try:
        loaded = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        certificate = (folder / "ca.crt").read_bytes()
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"an authority is a folder with ca.crt and ca.key; {folder}: {error}; name another") from None
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise UsageError(f"an authority's key is one that dpmpc made; {folder / 'ca.key'} is not; name another folder")
    return loaded, certificate


def _certificate(name: str, public: object, signer: "ec.EllipticCurvePrivateKey", *, ca: bool) -> "x509.Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise UsageError("a request is for a key that `dpmpc keys request` made; this one is of another kind")
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _AUTHORITY)]))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
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
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(each) for each in _names(name)]), critical=False
        )
    return builder.sign(signer, hashes.SHA256())


def _new_key() -> "ec.EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: "x509.Certificate") -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: "ec.EllipticCurvePrivateKey") -> None:
    from cryptography.hazmat.primitives import serialization

    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    _write(path, pem, mode=0o600)


def _make_folder(folder: Path) -> None:
    make_folder(folder, "keys need a folder that can be written")


def _write(path: Path, content: bytes, *, mode: int = 0o644, again: bool = False) -> None:
    """Errors: UsageError if the file is there already, unless `again`."""
    how = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if again else os.O_EXCL)
    try:
        with open(os.open(path, how, mode), "wb") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(
            f"a key is never overwritten; {path}: {error.strerror}; move it away, or renew with it", code="keys"
        ) from None


def list_of_certificates(certificates: Sequence[Path], plan: str) -> SiteKeys:
    """The list of the keys in certificates, of whatever authorities, each for the process or site that it is for; one
    that names none is for the process that its file is called after. Errors: UsageError for what is no certificate, is
    for nobody of a run, or for a process that another is for."""
    found: dict[str, str] = {}
    for path in certificates:
        certificate = _read(path)
        said = [name for name in _names_in(certificate) if _PROCESS.fullmatch(name)]
        said = said or [path.stem] * bool(_PROCESS.fullmatch(path.stem))
        numbers = {re.sub(r"^(party|owner)(?=\d)", "site", name) for name in said}
        name = said[0] if len(said) == 1 else numbers.pop() if len(said) == 2 and len(numbers) == 1 else ""
        key = key_digest(certificate)
        if not name or name in found or key in found.values():
            raise UsageError(
                f"a list has a key for each process; {path} is for {', '.join(said) or 'nobody of a run'}, or repeats "
                "one; name the certificates of one run, and call one of a machine's name after its process, as "
                "party0.crt",
                code="keys",
            )
        found[name] = key
    return SiteKeys(plan, tuple(sorted(found.items())))


def accept_list(keys: Path, role: str, given: SiteKeys, plan: str) -> list[str]:
    """Puts a list into the folder of a site's keys, in place of the one that was there: what it says otherwise, a line
    each. Errors: UsageError for a list that is for another plan (`plan`: the digest of this site's), or has another key
    than this site's own."""
    check_listed(keys, role, given, plan)
    said = changes(list_in(keys), given)
    _write(keys / LIST, given.to_text().encode(), again=True)
    return said


def check_listed(keys: Path, role: str, given: SiteKeys, plan: str) -> None:
    """Returns if the list has this site's own key, and is for its plan. Errors: UsageError."""
    from cryptography.hazmat.primitives import serialization

    given.check_plan(plan)
    try:
        own = serialization.load_pem_private_key((keys / f"{role}.key").read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise UsageError(
            f"a site has a key of its own before it accepts a list; {keys} has no {role}.key; make it with `dpmpc keys "
            "request`"
        ) from None
    if given.key_of(role) != key_digest(own):
        said = "none" if given.key_of(role) is None else str(given.key_of(role))[:16]
        raise UsageError(
            f"a list of keys has this site's own; for {role} it has {said}, the key here is {key_digest(own)[:16]}; "
            "ask the authority which key it signed, and for whom",
            code="keys",
        )
