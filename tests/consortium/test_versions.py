"""Versions of dpmpc: what derives must be alike at all sites; versions that differ elsewhere meet, and are said."""

import json
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmpc.aggregation.plan import derivation, fields, identities
from dpmpc.aggregation.plan.derivation import FILES, ROOMS, digest_of, own
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import read_versions
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.mpc.native import speed
from dpmpc.privacy.ledgers import read_ledgers
from tests.machines import apart, sites
from tests.made_up_sites import BOTH, files, planned

ROOT = Path(derivation.__file__).parents[2]


def laid_out(folder: Path) -> Path:
    """A folder with a source in every room, and one that derives nothing."""
    for name in (*(f"{room}/a.py" for room in ROOMS), "mpc/native/b.py", *FILES, "cli/c.py", "show/d.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n", encoding="utf-8")
    return folder


def test_every_source_that_derives_is_in_the_digest_and_no_other(tmp_path: Path) -> None:
    root = laid_out(tmp_path)
    whole = digest_of(root)
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        path.write_bytes(text + b"x = 1\n")
        derives = not path.relative_to(root).as_posix().startswith(("cli/", "show/"))
        assert (digest_of(root) != whole) == derives, path
        path.write_bytes(text.replace(b"\n", b"\r\n"))  # a checkout on another system
        assert digest_of(root) == whole
        path.write_bytes(text)
    shutil.move(root / "mpc" / "a.py", root / "noise" / "z.py")
    assert digest_of(root) != whole


def test_the_digest_is_of_the_programs_that_are_there() -> None:
    assert all(any((ROOT / room).rglob("*.py")) for room in ROOMS) and all((ROOT / name).is_file() for name in FILES)
    assert own() == digest_of(ROOT) and len(own()) == 32


def by_thread(site: str, usual: Callable[..., bytes], other: bytes) -> Callable[..., bytes]:
    """The digest of another version in the thread that plays this site."""
    return lambda plan: other if threading.current_thread().name == site else usual(plan)


@pytest.mark.parametrize("site", ["site 1", "site 4"])  # a party, an owner
def test_a_site_that_derives_by_other_sources_is_refused_by_name_and_nothing_is_spent(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (identities, fields):
        monkeypatch.setattr(module, "derivation", by_thread(site, derivation.derivation, bytes(32)))
    ends = apart(planned(tmp_path), tmp_path, files(tmp_path))
    assert all(end is not None for end in ends), ends
    said = [str(end) for end in ends]
    assert any("the sources that derive, here those of dpmpc" in text for text in said), said
    assert any("have one dpmpc" in text for text in said), said
    assert not [text for text in (*said, *(log.read_text() for log in tmp_path.rglob("*.log"))) if "[mark" in text]
    assert not any(book.entries for folder in tmp_path.iterdir() if folder.is_dir() for book in read_ledgers(folder))


def test_versions_that_derive_alike_run_together_and_are_said_in_logs_and_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = speed.kernels_in_use()
    there = iter(["0.2.0", "0.2.1", "0.2.0"])
    named = dict[int, str]()

    def mine() -> speed.Kernels:
        version = named.setdefault(threading.get_ident(), next(there, "0.2.0"))
        return speed.Kernels(usual.names, usual.pace, version)

    for module in ("dpmpc.aggregation.party.start", "dpmpc.aggregation.owner.client"):
        monkeypatch.setattr(f"{module}.kernels_in_use", mine)
    plan = planned(tmp_path, **BOTH)
    ends = sites(plan, tmp_path, files(tmp_path))
    assert ends == [None] * 3, ends
    logs = [path.read_text(encoding="utf-8") for i in range(3) for path in (tmp_path / str(i)).rglob("*.log")]
    (line,) = {re.sub("^.*?versions: ", "", each) for log in logs for each in log.splitlines() if "versions: " in each}
    assert "runs dpmpc 0.2.1" in line and line.endswith("the sources that derive are alike")
    found = read_versions(tmp_path / "0")
    assert set(found.values()) == {"0.2.0", "0.2.1"} and set(found) >= {"party 0", "party 1", "party 2"}
    assert json.loads(next((tmp_path / "0").rglob("versions_0.json")).read_text()) == found
    html = page(facts_of(tmp_path / "0", None))
    assert "Versions of dpmpc, as each process said" in html and "0.2.1" in html


def test_what_another_process_says_of_its_version_drives_no_terminal() -> None:
    here = speed.kernels_in_use()
    odd = speed.Kernels("AVX2", here.pace, "1\x1b[31m" + "9" * 80)
    found = speed.Kernels.unpack(odd.pack())
    assert found is not None and found.version.isprintable() and len(found.version) <= 40
    assert len(odd.pack()) <= speed.MOST_SAID
    assert speed.versions({"party 0": here, "party 1": None}) == {"party 0": here.version, "party 1": "unknown"}
    assert speed.versions_line({"a": "1", "b": "1"}) == "versions: all 2 processes run dpmpc 1"


def test_a_plan_has_the_digest_that_it_had(tmp_path: Path) -> None:
    """What derives is compared beside the plan, not in it: a run goes on after an update that derives alike."""
    plan = Plan.read(planned(tmp_path))
    assert own().hex() not in plan.to_text()
