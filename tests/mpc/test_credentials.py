"""Keys that nobody sees all of: a request at a site, a signature at the authority; renewals, late owners, and what is
refused."""

import stat
from pathlib import Path

import pytest
from cryptography import x509

from dpmpc.cli import main as cli
from dpmpc.mpc.transport.credentials import (
    check_process,
    make_authority,
    make_request,
    process_of,
    remember_sites,
    sign_request,
)
from dpmpc.mpc.transport.tls import Tls
from tests.mpc.test_tls import _pair
from tests.refusals import refuses


def names_of(path: Path) -> list[str]:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
        x509.DNSName
    )


def dpmpc(*arguments: object) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(a) for a in arguments])
    assert exit_.value.code == 0


def test_sites_with_keys_of_their_own_meet(tmp_path: Path) -> None:
    import asyncio

    for name in ("party0", "party1"):
        dpmpc("keys", "request", name, "--out", tmp_path / name)
        assert stat.S_IMODE((tmp_path / name / f"{name}.key").stat().st_mode) == 0o600
        request = tmp_path / name / f"{name}.csr"
        assert b"PRIVATE" not in request.read_bytes()
        # what comes back is all that the site gets
        dpmpc("keys", "sign", request, "--for", name, "--authority", tmp_path / "authority", "--out", tmp_path / name)
    assert stat.S_IMODE((tmp_path / "authority" / "ca.key").stat().st_mode) == 0o600
    assert not list((tmp_path / "authority").glob("party*"))
    sites = [Tls.load(tmp_path / name, name) for name in ("party0", "party1")]
    assert asyncio.run(_pair(*sites)) == [7, 7]


def test_a_request_gets_the_name_that_the_authority_says(tmp_path: Path) -> None:
    """Not the one that it claims."""
    request = make_request(tmp_path / "site", "party0")
    path = sign_request(tmp_path / "authority", request, "owner3", tmp_path / "back")
    assert path.name == "owner3.crt" and names_of(path) == ["owner3"]


def test_a_renewal_is_for_the_same_key_or_a_new_one(tmp_path: Path) -> None:
    site, authority = tmp_path / "site", tmp_path / "authority"
    request = make_request(site, "owner0")
    first = sign_request(authority, request, "owner0", site).read_bytes()
    again = sign_request(authority, request, "owner0", site).read_bytes()
    assert first != again and Tls.load(site, "owner0")
    with refuses("keys"):
        make_request(site, "owner0")
    (site / "owner0.key").unlink()
    sign_request(authority, make_request(site, "owner0"), "owner0", site)
    assert Tls.load(site, "owner0")


def test_one_key_is_signed_for_one_process(tmp_path: Path) -> None:
    """Two sites with one key, or one request sent twice: the authority says for whom it was."""
    authority = tmp_path / "authority"
    request = make_request(tmp_path / "site0", "site0")
    sign_request(authority, request, "site0", tmp_path / "site0")
    with refuses("keys", 0):
        sign_request(authority, request, "site1", tmp_path / "site1")
    assert not (tmp_path / "site1" / "site1.crt").exists()
    sign_request(authority, request, "site0", tmp_path / "site0")  # a renewal
    sign_request(authority, make_request(tmp_path / "site1", "site1"), "site1", tmp_path / "site1")
    signed = authority / "signed.txt"
    assert [line.split()[1] for line in signed.read_text().splitlines()] == ["site0", "site1"]
    signed.write_text("what is this?\n")
    with refuses("keys"):
        sign_request(authority, request, "site0", tmp_path / "site0")


def test_what_is_no_request_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csr").write_text("hello")
    with refuses("keys"):
        sign_request(tmp_path / "authority", tmp_path / "x.csr", "owner0", tmp_path / "back")
    request = make_request(tmp_path / "site", "party0")
    lines = request.read_text().splitlines()
    middle = lines[3]
    lines[3] = middle[:-1] + ("A" if middle[-1] != "A" else "B")
    request.write_text("\n".join(lines) + "\n")
    with refuses("keys"):
        sign_request(tmp_path / "authority", request, "party0", tmp_path / "back")


@pytest.mark.parametrize("name", ["", "party", "party-1", "owner1x", "ca", "../party0", "owner12345678", "partyowner1"])
def test_only_processes_have_certificates(name: str) -> None:
    with refuses("keys"):
        check_process(name)


def test_a_site_is_signed_for_by_its_own_name(tmp_path: Path) -> None:
    authority = tmp_path / "authority"
    make_authority(authority)
    assert process_of(authority, "owner3") == "owner3"  # where there is no consortium
    remember_sites(authority, {"charite": "party0", "akh": "party1", "party1": "owner0"})
    assert make_authority(authority)
    assert [process_of(authority, name) for name in ("charite", "party0", "owner0", "owners")] == [
        "party0", "party0", "owner0", "owners"
    ]  # fmt: skip
    with refuses("keys", "s name and another"):
        process_of(authority, "party1")
    with refuses("choice", "insel"):
        process_of(authority, "insel")
