"""A consortium's keys, by the commands that people type and real processes over loopback: request, sign, list, accept,
join. Then the authority signs a key of its own for a party, and takes that party's place."""

import contextlib
import shutil
from pathlib import Path

import pytest
from runs import HANG, dpmpc, errors_of, own_addresses, started
from test_last_word import NAMES, TOML

from dpmpc.mpc.transport.credentials import make_request, sign_request
from dpmpc.mpc.transport.site_keys import LIST

SOUTH = '[[owners]]\nname = "south"\nrecords = 60\n[records]\n'
SITES = (*NAMES, "north", "south")


def said(*words: object) -> str:
    done = dpmpc(*words)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout


def kits(folder: Path) -> list[Path]:
    named = zip(NAMES, own_addresses(3)[1::2], strict=True)
    parties = "\n".join(f'[[parties]]\nname = "{name}"\naddress = "{address}"' for name, address in named)
    (folder / "consortium.toml").write_text(
        TOML.replace("tls = false\n", "").replace("[records]\n", SOUTH, 1).format(parties=parties)
    )
    said("kit", folder / "consortium.toml", "--out", folder / "kits", "--authority", folder / "authority")
    made = [folder / "kits" / name for name in SITES]
    said("keys", "request", *made)
    (folder / "records.csv").write_text(
        "age,ill\n" + "".join(f"{20 + k},{'yes' if k % 3 else 'no'}\n" for k in range(60))
    )
    return made


def joined(folder: Path, made: list[Path], wait: float = HANG) -> tuple[list[int], list[str]]:
    """The exit codes of all sites, and what each said last."""
    with contextlib.ExitStack() as stack:
        sites = []
        for kit in made:
            records = ("--csv", folder / "records.csv") if kit.name in SITES[3:] else ()
            sites.append(stack.enter_context(started("join", kit, *records, "--wait", wait, "--overwrite")))
        lines = [errors_of(site) for site in sites]
    return [site.returncode for site in sites], lines


def impostor(folder: Path, name: str, role: str) -> None:
    """The authority signs a second key for a site, whose kit it starts itself."""
    keys = folder / "kits" / name / "keys"
    for each in (f"{role}.key", f"{role}.csr", f"{role}.crt"):
        (keys / each).unlink()
    sign_request(folder / "authority", make_request(keys, role), role, keys)


def agreed(folder: Path, made: list[Path], listed: bool) -> str:
    """The number of the list that all sites accept, or could."""
    signed = said("keys", "sign", *made, "--authority", folder / "authority")
    sent = folder / "list.txt"
    shutil.copy(folder / "authority" / LIST, sent)  # what was sent to all
    number = said("keys", "list", sent).split("number  ")[1].strip()
    assert number in signed and len(number.replace(" ", "")) == 30
    if listed:
        taken = said("keys", "accept", *made, "--list", sent, "--number", number)
        assert taken.count(f"accepted, 5 keys, number {number}") == 5
        assert said("keys", "list", made[0]) == said("keys", "list", sent)
    return number


@pytest.mark.parametrize("listed", [True, False])
def test_screen_and_page_say_what_keys_rest_on(tmp_path: Path, listed: bool) -> None:
    made = kits(tmp_path)
    number = agreed(tmp_path, made, listed)
    codes, lines = joined(tmp_path, made)
    assert codes == [0] * 5, lines
    words = f"keys: those of the list with the number {number}" if listed else "could be every other site"
    assert all(words in text for text in lines)
    said("report", made[3])
    page = (made[3] / "run" / "report.html").read_text()
    assert (number in page) == listed and ("could have been every other site" in page) != listed


@pytest.mark.parametrize("mend", [True, False])
def test_an_authority_that_takes_a_partys_place(tmp_path: Path, mend: bool) -> None:
    """Without the list it takes part, and nobody sees anything. With one whoever calls it ends, at once: who comes
    later finds fewer there, and so a party and an owner meet it alone here. Whom it calls refuses the call."""
    made = kits(tmp_path)
    agreed(tmp_path, made, mend)
    impostor(tmp_path, "charite", "party1")
    if not mend:
        codes, lines = joined(tmp_path, made)
        assert codes == [0] * 5, lines
        return
    # it has the list of its own, with the key that it made
    shutil.copy(tmp_path / "authority" / LIST, made[1] / "keys" / LIST)
    for kit in (made[0], made[3]):
        records = ("--csv", tmp_path / "records.csv") if kit.name in SITES[3:] else ()
        with started("join", made[1], "--wait", HANG, "--overwrite"):
            met = dpmpc("join", kit, *records, "--wait", HANG, "--overwrite")
        assert met.returncode == 3, met.stderr
        assert "party1 shows" in met.stderr and "which the list here does not" in met.stderr, met.stderr
        assert not list((kit / "run").glob("model.npz"))


def test_a_renewed_key_is_a_new_list_that_every_site_accepts(tmp_path: Path) -> None:
    made = kits(tmp_path)
    said("keys", "sign", *made, "--authority", tmp_path / "authority")
    said("keys", "accept", *made, "--list", tmp_path / "authority" / LIST)
    impostor(tmp_path, "charite", "party1")  # this time it is charite's own
    listed = tmp_path / "authority" / LIST
    refused = dpmpc("join", made[1])
    assert refused.returncode == 2 and "a list of keys has this site's own; for party1 it has" in refused.stderr
    assert dpmpc("keys", "accept", made[0], "--list", listed, "--number", "1" * 30).returncode == 2
    taken = said("keys", "accept", *made, "--list", listed)
    assert taken.count("party1: another key") == 5
    codes, lines = joined(tmp_path, made)
    assert codes == [0] * 5, lines


def test_a_kit_that_does_without_keys_takes_no_list_away(tmp_path: Path) -> None:
    """Whoever writes kits sends one that says tls = false: a site that accepted a list meets nobody by it, for a run or
    a trial. One without a list hears what that means."""
    made = kits(tmp_path)
    agreed(tmp_path, made, listed=True)
    for kit in made:
        written = (kit / "site.toml").read_text()
        assert written.count("tls = true") == 1
        (kit / "site.toml").write_text(written.replace("tls = true", "tls = false"))
    codes, lines = joined(tmp_path, made, wait=20)
    assert codes == [2] * 5, lines
    for kit, text in zip(made, lines, strict=True):
        assert "meets nobody without keys" in text and not list((kit / "run").glob("*"))
    tried = dpmpc("join", made[0], "--dry-run")
    assert tried.returncode == 2 and "meets nobody without keys" in tried.stderr
    for kit in made:
        (kit / "keys" / LIST).unlink()
    codes, lines = joined(tmp_path, made)
    assert codes == [0] * 5 and all("keys: none are in use: every user" in text for text in lines), lines


def test_a_list_of_another_plan_is_refused(tmp_path: Path) -> None:
    made = kits(tmp_path)
    said("keys", "sign", *made, "--authority", tmp_path / "authority")
    other, text = tmp_path / "other.txt", (tmp_path / "authority" / LIST).read_text().splitlines()
    other.write_text("\n".join(f"plan {'0' * 64}" if line.startswith("plan") else line for line in text) + "\n")
    refused = dpmpc("keys", "accept", made[0], "--list", other)
    assert refused.returncode == 2 and "a list of keys is for one plan" in refused.stderr
    shutil.copy(other, made[0] / "keys" / LIST)
    refused = dpmpc("join", made[0])
    assert refused.returncode == 2 and "a list of keys is for one plan" in refused.stderr
    roles = ("party0", "party1", "party2", "owner0", "owner1")
    certificates = [kit / "keys" / f"{role}.crt" for kit, role in zip(made, roles, strict=True)]
    said("keys", "list", *certificates, "--plan", made[0] / "plan.json", "--out", tmp_path / "own.txt")
    assert (tmp_path / "own.txt").read_text() == (tmp_path / "authority" / LIST).read_text()
