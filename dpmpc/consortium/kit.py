"""The kits of a consortium: a folder for every site, with all it needs to take part but its records and its key.

Made by whoever coordinates; nothing in them is secret. A site reads its limits, makes its key, has it signed, and
starts (`consortium.joining`).
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.limits import OWN_WORD, AcceptFile, limits_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium import kit_texts
from dpmpc.consortium.site_file import SITE, SiteFile
from dpmpc.consortium.toml import Consortium, SiteEntry
from dpmpc.consortium.wheel import Wheel
from dpmpc.errors import UsageError
from dpmpc.folders import make_folder, write_file
from dpmpc.intake.written import read_written
from dpmpc.lazy import dataclass
from dpmpc.local.holdout import ids_wanted
from dpmpc.mpc.transport.credentials import make_authority, remember_sites

_KITS = "kits go into a folder that can be written"
LIMITS = "limits.toml"
KEYS = "keys"


@dataclass(frozen=True)
class Kit:
    """A kit as its site reads it."""

    folder: Path
    site: SiteFile
    plan: Plan

    @property
    def number(self) -> int:
        """Of the party, of the owner, or of both."""
        return int(self.site.role.removeprefix(self.kind))

    @property
    def kind(self) -> str:
        """ "party", "owner" or "site" (both)."""
        return self.site.role.rstrip("0123456789")

    @property
    def keys(self) -> Path:
        """The folder of this site's key and certificates."""
        return self.folder / KEYS


def write_kits(consortium: Consortium, out: Path, authority: Path, wheel: Wheel | None = None) -> list[Path]:
    """Writes a folder for every site into `out`, and returns them. `wheel`: what its texts say to install. Errors:
    `out` holds something already, or is not to be written."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"kits go into a new or empty folder; {out} is not; name another with <<out>>")
    certificate = make_authority(authority) if consortium.file.run.tls else None
    if certificate is not None:
        of = consortium.plan.file_digest
        remember_sites(authority, {site.name: site.role for site in consortium.sites}, of)
    folders = []
    try:
        for site in consortium.sites:
            folder = out / site.name
            make_folder(folder, _KITS, "name another with <<out>>", new=True)
            _write_kit(consortium, site, folder, certificate, wheel)
            folders.append(folder)
    except (OSError, UsageError) as error:
        shutil.rmtree(out, ignore_errors=True)  # it was empty, or not there
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{_KITS}; {out}: {error.strerror}; name another with <<out>>") from None
    return folders


def _write_kit(
    consortium: Consortium, site: SiteEntry, folder: Path, certificate: bytes | None, wheel: Wheel | None
) -> None:
    plan = consortium.plan
    plan.write(plan_path(folder))
    if consortium.schema is not None:
        consortium.schema.write(folder / "schema.json")
    if certificate is not None:
        make_folder(folder / KEYS, _KITS, "name another with <<out>>", new=True)
        (folder / KEYS / "ca.crt").write_bytes(certificate)
    mine = None if site.party is None else consortium.file.parties[site.party]
    run = consortium.file.run
    file = SiteFile(
        name=site.name,
        role=site.role,
        plan=_digest(folder),
        addresses=[str(endpoint) for endpoint in consortium.addresses],
        tls=run.tls,
        wait=run.wait,
        stall=run.stall,
        listen=None if mine is None else mine.listen,
        threads=None if mine is None else mine.threads,
    )
    _text(folder / SITE, [kit_texts.SITE_HEAD, *_lines(file)])
    _text(folder / LIMITS, [kit_texts.LIMITS_HEAD, *_lines(limits_for(consortium))])
    port = None if site.party is None else consortium.addresses[site.party].port
    about = kit_texts.About(
        site.name,
        site.role,
        plan.run_id,
        site.owner is not None,
        run.tls,
        port,
        plan.parties,
        version("dpmpc"),
        plan.source.comes_to,
        ids_wanted(plan),
        plan.source.tells_owners,
        wheel,
    )
    for name, text in kit_texts.files(about).items():
        _text(folder / name, [text])


def rewrite_site(folder: Path, addresses: Sequence[str], wait: float) -> None:
    """Writes the kit in `folder` anew for other addresses of the parties, at which they listen too."""
    file = read_written(folder / SITE, SiteFile, "a site")
    moved = msgspec.structs.replace(file, addresses=list(addresses), listen=None, wait=wait)
    _text(folder / SITE, [kit_texts.SITE_HEAD, *_lines(moved)])


def limits_for(consortium: Consortium) -> AcceptFile:
    """What every site's limits.toml begins with: what the plan says of itself, and [limits] where that says more."""
    given = {key: value for key, value in msgspec.structs.asdict(consortium.file.limits).items() if value is not None}
    if theirs := sorted(OWN_WORD & given.keys()):
        raise UsageError(
            f"some limits nobody writes for another organisation; [limits] has {theirs[0]}; take it out: a site that "
            "agrees writes it into its own limits.toml",
            code="together",
        )
    return AcceptFile(**{**limits_of(consortium.plan), **given})


def read_kit(folder: Path) -> Kit:
    """The kit in `folder`. Errors: it is none; its plan is not the one that it was made for."""
    if not (folder / SITE).is_file():
        raise UsageError(
            f"a kit is a folder that `dpmpc kit` wrote; {folder} has no {SITE}; name the folder of one site"
        )
    site = read_written(folder / SITE, SiteFile, "a site")
    plan = Plan.read(plan_path(folder))
    if _digest(folder) != site.plan:
        raise UsageError(
            f"a kit's plan is the one that it was made with; {plan_path(folder)} is another; get the kit again"
        )
    kit = Kit(folder, site, plan)
    if kit.number >= (plan.owners if kit.kind == "owner" else plan.parties) or (kit.kind == "site") != (
        plan.role == "both"
    ):
        raise UsageError(f"a kit is for a site of its plan; {folder / SITE} says {site.role}; get the kit again")
    return kit


def is_kit(folder: Path) -> bool:
    """Whether this folder is a site's kit."""
    return (folder / SITE).is_file()


def owner_of_kit(plan: Path) -> int | None:
    """The owner whose kit holds this plan.json; None where it is in no kit, or in a party's. Errors: as `read_kit`."""
    if plan.name != plan_path(plan.parent).name or not (plan.parent / SITE).is_file():
        return None
    kit = read_kit(plan.parent)
    return None if kit.kind == "party" else kit.number


def _digest(folder: Path) -> str:
    return hashlib.sha256(plan_path(folder).read_bytes()).hexdigest()


def _lines(value: msgspec.Struct) -> Iterable[str]:
    """TOML lines of a flat value, without what is None."""
    for key, each in msgspec.to_builtins(value).items():
        if each is not None:
            text = repr(each) if isinstance(each, float) else json.dumps(each, ensure_ascii=False)  # inf is no JSON
            yield f"{key} = {text}\n"


def _text(path: Path, parts: Iterable[str]) -> None:
    write_file(path, "".join(parts), public=True)
