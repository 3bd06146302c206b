"""The list of a run's keys: a second key that the authority signs for a party is that party's to everybody without one,
and to nobody with one. Every attack is also tried without the list."""

import asyncio
import datetime
import hashlib
import shutil
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.owner.sites import Owner, Party, Site
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.identities import greeting
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.credentials import (
    accept_list,
    check_certificate,
    check_listed,
    list_of_certificates,
    make_credentials,
    make_request,
    sign_request,
)
from dpmpc.mpc.transport.site_keys import LIST, SiteKeys, changes, list_for, list_in
from dpmpc.mpc.transport.tls import Tls
from tests.mpc.test_tls import _pair
from tests.refusals import refuses
from tests.runs import HANG, own_addresses

NAMES = ("party0", "party1", "owner0")
PLAN = hashlib.sha256(b"a plan").hexdigest()


def signed(folder: Path, *names: str, again: str = "") -> Path:
    """The keys of sites, each in a folder of its own, signed by the authority in `folder`; its list is there. `again`:
    the folder of keys that are signed a second time."""
    for name in names:
        keys = folder / f"{name}{again}"
        sign_request(folder / "authority", make_request(keys, name), name, keys, PLAN)
    return folder / "authority" / LIST


def of(path: Path) -> str:
    """By hand: SHA-256 of the public key of a certificate."""
    public = x509.load_pem_x509_certificate(path.read_bytes()).public_key()
    return hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


# -- between processes -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mend", [True, False])
@pytest.mark.parametrize("calls", [True, False])
def test_a_second_key_that_the_authority_signs_for_a_party_is_nobodys(tmp_path: Path, mend: bool, calls: bool) -> None:
    """Party 0 calls, party 1 listens: the impostor is either. Without the list each is who its certificate says."""
    true = SiteKeys.read(signed(tmp_path, *NAMES))
    who, other = ("party1", "party0") if calls else ("party0", "party1")
    shutil.copy(tmp_path / "authority" / LIST, tmp_path / "before.txt")
    signed(tmp_path, who, again=" again")
    if mend:
        accept_list(tmp_path / other, other, SiteKeys.read(tmp_path / "before.txt"), PLAN)
        (tmp_path / f"{who} again" / LIST).write_text(true.to_text())  # as it was sent to all
    sides = {who: Tls.load(tmp_path / f"{who} again", who), other: Tls.load(tmp_path / other, other)}
    found = asyncio.run(_pair(sides["party0"], sides["party1"], seconds=HANG if not mend else 3.0))
    if not mend:
        assert found == [7, 7]
        return
    assert not any(result == 7 for result in found)
    shown = of(tmp_path / f"{who} again" / f"{who}.crt")[:16]
    words = f"{who} shows {shown}, which the list here does not"
    assert words in str(found[0]), found  # whoever calls has it: of the impostor, or as one
    assert calls or found[1] is None  # who listens goes on waiting for the true one


def test_processes_with_one_list_meet_and_with_two_do_not(tmp_path: Path) -> None:
    """An owner and a party; the greeting is the plan's with the list's digest."""
    listed = SiteKeys.read(signed(tmp_path, *NAMES))
    other = SiteKeys(listed.plan, (*listed.keys, ("party9", "f" * 64)))
    plan = Plan.create(owners=1, dimension=2, clip=1.0, delta=1e-5, parties=1, threshold=0)
    assert len({greeting(plan, FIRST_ATTEMPT, sites=each.digest) for each in (listed, other)}) == 2

    async def meet(owner: SiteKeys | None, party: SiteKeys | None) -> str:
        for role, site in (("owner0", owner), ("party0", party)):
            (tmp_path / role / LIST).unlink(missing_ok=True)
            if site is not None:
                (tmp_path / role / LIST).write_text(site.to_text())
        holder = BACKENDS[plan.backend].holder(0, 1, 0, plan.session_id(FIRST_ATTEMPT))
        gate, bound = OwnerGate(plan, FIRST_ATTEMPT, holder), bound_socket()
        await gate.listen(endpoint_of(bound), Tls.load(tmp_path / "party0", "party0"), bound)
        client = OwnerClient(two, FIRST_ATTEMPT, 0, 1)
        try:
            await client.connect([endpoint_of(bound)], 3.0, Tls.load(tmp_path / "owner0", "owner0"))
        except PeerError as error:
            return str(error)
        finally:
            client.abandon()
            gate.abandon()
            holder.abandon()
        return ""

    two = plan = Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5, parties=1, threshold=0)
    assert asyncio.run(meet(listed, listed)) == "" == asyncio.run(meet(None, None))
    for mine, theirs in ((listed, other), (other, listed), (listed, None), (None, listed)):
        said = asyncio.run(meet(mine, theirs))
        name = "it has no list of keys" if theirs is None else f"its list of keys is {theirs.digest.hex()[:16]}"
        assert "must have the same plan" in said and name in said, said


def own_authority(folder: Path, name: str) -> tuple[Path, Path]:
    """(certificate of an organisation's own authority, folder of a key that it signed by a second one, in a file called
    after the process, for the name of a machine). RSA, as many have."""
    keys = [rsa.generate_private_key(65537, 2048) for _ in range(3)]
    now, found = datetime.datetime.now(datetime.UTC), list[x509.Certificate]()
    for k, words in enumerate(("Hospital root", "Hospital issuing", "mpc.hospital.example")):
        named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, words)])
        builder = x509.CertificateBuilder(
            issuer_name=found[-1].subject if found else named,
            subject_name=named,
            public_key=keys[k].public_key(), serial_number=x509.random_serial_number(),
            not_valid_before=now - datetime.timedelta(1), not_valid_after=now + datetime.timedelta(9),
        )  # fmt: skip
        builder = builder.add_extension(x509.BasicConstraints(k < 2, None), critical=True)
        if k == 2:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(words)]), critical=False)
        found.append(builder.sign(keys[max(0, k - 1)], hashes.SHA256()))
    mine = folder / name
    mine.mkdir()
    root, middle, leaf = (each.public_bytes(Encoding.PEM) for each in found)
    (folder / "hospital.crt").write_bytes(root)
    (mine / f"{name}.crt").write_bytes(leaf + middle)
    pem = keys[2].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (mine / f"{name}.key").write_bytes(pem)
    return folder / "hospital.crt", mine


@pytest.mark.parametrize("calls", [True, False])
def test_an_organisations_own_authority_stands_beside_the_runs(tmp_path: Path, calls: bool) -> None:
    """By its own certificate, for a machine's name, a site is who the list says; without the list it is nobody, and
    with a list that has another key too."""
    mine, other = ("party0", "party1") if calls else ("party1", "party0")
    signed(tmp_path, other)
    root, folder = own_authority(tmp_path, mine)
    run = (tmp_path / "authority" / "ca.crt").read_bytes()
    for each in (folder, tmp_path / other):
        (each / "ca.crt").write_bytes(run + root.read_bytes())
    listed = list_of_certificates([folder / f"{mine}.crt", tmp_path / other / f"{other}.crt"], PLAN)
    assert dict(listed.keys) == {name: of(tmp_path / name / f"{name}.crt") for name in (mine, other)}
    theirs = tmp_path / other  # a renewal does not take the other authority away
    sign_request(tmp_path / "authority", theirs / f"{other}.csr", other, theirs)
    assert (tmp_path / other / "ca.crt").read_bytes() == run + root.read_bytes()

    def met() -> list[object]:
        first, second = (Tls.load(tmp_path / name, name) for name in ("party0", "party1"))
        return asyncio.run(_pair(first, second, seconds=3.0))

    own = folder / f"{mine}.crt"
    assert not any(result == 7 for result in met())
    with refuses("keys", mine):
        check_certificate(own, folder / "ca.crt", mine)
    listed = list_of_certificates([own, tmp_path / other / f"{other}.crt"], PLAN)
    for name in (mine, other):
        accept_list(tmp_path / name, name, listed, PLAN)
    check_certificate(own, folder / "ca.crt", mine, listed=True)
    assert asyncio.run(_pair(*(Tls.load(tmp_path / name, name) for name in ("party0", "party1")))) == [7, 7]
    another = SiteKeys(PLAN, tuple(sorted({**dict(listed.keys), mine: "0" * 64}.items())))
    (tmp_path / other / LIST).write_text(another.to_text())
    assert not any(result == 7 for result in met())

    lone = tmp_path / "lone.crt"
    lone.write_bytes(own.read_bytes().split(b"-----END CERTIFICATE-----\n")[0] + b"-----END CERTIFICATE-----\n")
    with refuses("keys"):
        check_certificate(lone, folder / "ca.crt", mine, listed=True)  # what issued it is missing
    with refuses("keys"):
        check_certificate(own, tmp_path / "authority" / "ca.crt", mine, listed=True)


# -- the list ----------------------------------------------------------------------------------------------------------
def test_the_authority_writes_the_list_of_all_keys_as_they_are_now(tmp_path: Path) -> None:
    path = signed(tmp_path, *NAMES, "site7")
    listed = SiteKeys.read(path)
    roles = (*sorted(NAMES), "site7")
    assert listed == SiteKeys(PLAN, tuple((name, of(tmp_path / name / f"{name}.crt")) for name in roles))
    assert [listed.key_of(name) for name in ("party7", "owner7", "party8")] == [*[dict(listed.keys)["site7"]] * 2, None]
    sign_request(tmp_path / "authority", tmp_path / "party1" / "party1.csr", "party1", tmp_path / "party1")
    assert SiteKeys.read(path) == listed  # the same key: a certificate that goes on
    signed(tmp_path, "party1", "owner7", again=" again")
    renewed = SiteKeys.read(path)
    assert [name for name, _ in renewed.keys] == ["owner0", "owner7", "party0", "party1"]  # site7 was owner 7
    said = changes(listed, renewed)
    assert [line.split(":")[0] for line in said] == ["owner7", "party1", "site7"]
    assert (
        said[1]
        == f"party1: another key, {of(tmp_path / 'party1 again' / 'party1.crt')[:16]} in place of "
        + of(tmp_path / "party1" / "party1.crt")[:16]
    )


def test_an_authority_that_knows_of_no_plan_writes_no_list_and_lists_all_that_it_signed_once_it_does(
    tmp_path: Path,
) -> None:
    """Keys may be signed before there is a plan. No list of theirs is for any plan: there is none."""
    for name in NAMES:
        sign_request(tmp_path / "authority", make_request(tmp_path / name, name), name, tmp_path / name)
    path = tmp_path / "authority" / LIST
    assert not path.exists()
    signed(tmp_path, "owner1")
    listed = SiteKeys.read(path)
    assert dict(listed.keys) == {name: of(tmp_path / name / f"{name}.crt") for name in (*NAMES, "owner1")}
    assert listed.plan == PLAN


def test_a_list_of_no_plan_is_none_and_one_of_another_plan_is_refused_wherever_a_plan_is_begun(tmp_path: Path) -> None:
    """By kits, and by programs of one's own: a party, an owner, a site."""
    signed(tmp_path, *NAMES)
    listed = SiteKeys.read(tmp_path / "authority" / LIST)
    for plan in ("", "0" * 63, "x" * 64, PLAN.upper()):
        with refuses("keys"):
            SiteKeys(plan, listed.keys)
    text = listed.to_text().replace(f"plan {PLAN}\n", "")
    (tmp_path / "of_none.txt").write_text(text)
    with refuses("keys", "none"):
        SiteKeys.read(tmp_path / "of_none.txt")
    assert list_for(None, PLAN) is None is list_for(tmp_path / "owner0", PLAN)
    where = own_addresses(2)[1::2]
    made = partial(Plan.create, owners=2, dimension=2, clip=1.0, delta=1e-5, parties=2, threshold=1, backend="ot")
    apart, together = made(), made(role="both")
    (tmp_path / "site0").mkdir()
    begin = (
        (apart, "party0", lambda keys: Party(apart, 0, where, tls=keys, out=tmp_path / "out")),
        (apart, "owner0", lambda keys: Owner(apart, 0, where, tls=keys, wait=1)),
        (together, "site0", lambda keys: Site(together, 0, where, tls=keys, out=tmp_path / "both", wait=1)),
    )
    for plan, name, one in begin:
        other = SiteKeys("0" * 64, listed.keys)
        (tmp_path / name / LIST).write_text(other.to_text())
        with refuses("keys", plan.file_digest[:16]):
            one(tmp_path / name)
        mine = SiteKeys(plan.file_digest, listed.keys)
        (tmp_path / name / LIST).write_text(mine.to_text())
        assert list_for(tmp_path / name, plan.file_digest) == mine


def test_the_number_is_of_all_that_the_list_says(tmp_path: Path) -> None:
    """By another implementation of scrypt; 30 digits, of which every one moves with each key, process and plan."""
    listed = SiteKeys(PLAN, (("owner0", "a" * 64), ("party0", "b" * 64)))
    text = listed.to_text()
    digest = hashlib.sha256(b"dpmpc list of keys\0" + text.encode()).digest()
    found = hashlib.scrypt(
        digest, salt=b"dpmpc number of a list of keys", n=1 << 15, r=8, p=1, maxmem=1 << 26, dklen=32
    )
    wanted = f"{int.from_bytes(found, 'big') % 10**30:030d}"
    assert listed.number == " ".join(wanted[k : k + 5] for k in range(0, 30, 5))
    others = [
        SiteKeys("0" * 64, listed.keys), SiteKeys(PLAN, listed.keys[:1]),
        SiteKeys(PLAN, (("owner0", "b" * 64), ("party0", "a" * 64))),
    ]  # fmt: skip
    numbers = {each.number for each in (listed, *others)}
    assert len(numbers) == 4
    for k, each in enumerate((listed, *others)):
        (tmp_path / f"{k}").write_text("\n" + each.to_text() + "# a remark\n")
        assert SiteKeys.read(tmp_path / f"{k}") == each


@pytest.mark.parametrize(
    "text",
    [
        "party0 " + "a" * 63, "party0 " + "g" * 64, "nobody " + "a" * 64, f"party0 {'a' * 64}\nparty0 {'b' * 64}",
        f"party0 {'a' * 64}\nparty1 {'a' * 64}", f"party0 {'a' * 64}\nplan {'b' * 64}", "party0", "é",
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / LIST).write_text(text + "\n", encoding="utf-8")
    with refuses("keys"):
        list_in(tmp_path)


def test_a_site_accepts_a_list_that_has_its_own_key_and_its_plan(tmp_path: Path) -> None:
    listed = SiteKeys.read(signed(tmp_path, *NAMES))
    keys = tmp_path / "party0"
    assert list_in(keys) is None and accept_list(keys, "party0", listed, PLAN) == []
    assert list_in(keys) == listed
    signed(tmp_path, "party1", again=" again")
    renewed = SiteKeys.read(tmp_path / "authority" / LIST)
    assert accept_list(keys, "party0", renewed, PLAN) == changes(listed, renewed) != []
    with refuses("keys"):
        check_listed(keys, "party0", renewed, "f" * 64)
    with refuses("keys", "party1"):
        accept_list(tmp_path / "party1", "party1", renewed, PLAN)
    with refuses("keys", "owner5"):
        (tmp_path / "party1" / "party1.key").rename(tmp_path / "party1" / "owner5.key")
        accept_list(tmp_path / "party1", "owner5", renewed, PLAN)
    assert not (tmp_path / "party1" / LIST).exists()


def test_under_an_authority_of_ones_own_the_list_is_made_of_certificates(tmp_path: Path) -> None:
    make_credentials(tmp_path, (*NAMES, "site7"))
    made = list_of_certificates([tmp_path / f"{name}.crt" for name in (*NAMES, "site7")], PLAN)
    roles = (*sorted(NAMES), "site7")
    assert made == SiteKeys(PLAN, tuple((name, of(tmp_path / f"{name}.crt")) for name in roles))
    for wrong in (["ca.crt"], ["party0.crt", "party0.crt"]):
        with refuses("keys"):
            list_of_certificates([tmp_path / name for name in wrong], PLAN)
