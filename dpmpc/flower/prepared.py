"""A plan with the parties' public keys: the one public file that clients, server and parties of a Flower run share."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Self, Unpack

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.identities import shows_accounts
from dpmpc.aggregation.plan.keywords import PlanKeywords
from dpmpc.aggregation.plan.of_vectors import OfVectors
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.flower.sealing import OVERHEAD, write_key
from dpmpc.folders import make_folder, write_file
from dpmpc.lazy import cached_property, dataclass
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.privacy.heads import HEAD
from dpmpc.settings import keywords

VERSION = 1
FILE = "flower.json"
_KEY = 32  # bytes


@dataclass(frozen=True)
class Prepared:
    """The plan of a Flower run and the key that shares are sealed for, by party."""

    plan: Plan
    keys: tuple[bytes, ...]

    def __post_init__(self) -> None:
        plan = self.plan
        if not plan.parties:
            raise UsageError("under Flower parties add up; this plan has none; plan with parties=3", code="plan")
        if plan.role == "both":
            raise UsageError('under Flower owners and parties are apart; this plan has role="both"; leave it out')
        if not plan.source.OF_RECORDS and plan.neighbours not in ("owner", "stated"):
            raise UsageError(
                f"under Flower whole updates are clipped, which says nothing of one record; this plan's neighbours are "
                f"by {plan.neighbours}; leave <<records>> out, and clip by record in programs of your own",
                code="together",
            )
        if not plan.dropouts:
            raise UsageError(
                f"under Flower clients are sampled, and some fail: min_owners must lie below the number of owners, "
                f"{plan.owners}; it is {plan.fewest}; give a smaller one",
                code="range",
            )
        if len(self.keys) != plan.parties or any(len(key) != _KEY for key in self.keys):
            raise UsageError(f"there is one public key a party, {plan.parties} of {_KEY} bytes; mend {FILE}")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the plan, what follows from it, and the parties' keys: what server and clients compare."""
        return hashlib.sha256(b"dpmpc flower\0" + self.plan.digest(FIRST_ATTEMPT) + b"".join(self.keys)).digest()

    @property
    def model_dimension(self) -> int:
        """d of the model: one less than the plan's, where the clipping bound adapts."""
        return self.plan.dimension - (self.plan.adaptive is not None)

    @cached_property
    def sealed_bytes(self) -> tuple[int, ...]:
        """The size of one owner's sealed share, by party."""
        plan = self.plan
        sizes = BACKENDS[plan.backend].payload_bytes(plan.parties, plan.threshold, 1, plan.dimension)
        return tuple(size + OVERHEAD + (HEAD if self.shows_heads else 0) for size in sizes)

    @property
    def shows_heads(self) -> bool:
        """Whether clients show parties the heads of their accounts."""
        return shows_accounts(self.plan)

    def to_text(self) -> str:
        """JSON."""
        keys = [base64.b64encode(key).decode() for key in self.keys]
        return json.dumps({"version": VERSION, "plan": loads(self.plan.to_text()), "keys": keys}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` wrote. Errors: UsageError where it is something else."""
        try:
            value = loads(text)
            if value["version"] != VERSION:
                raise UsageError(
                    f"{FILE} must have version {VERSION}; this one has {value['version']}; prepare again", code="file"
                )
            keys = tuple(base64.b64decode(key, validate=True) for key in value["keys"])
            return cls(Plan.from_text(json.dumps(value["plan"])), keys)
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{FILE} must be what prepare wrote; {error}; copy it again", code="file") from None

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """The file, or the one in a folder. Errors: UsageError where it cannot be read."""
        path = Path(path)
        path = path / FILE if path.is_dir() else path
        try:
            return cls.from_text(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"a Flower run has a {FILE}; {path}: {error.strerror}; call prepare first") from None
        except UnicodeDecodeError:
            raise UsageError(f"{FILE} is UTF-8 text; {path} is not; copy it again") from None


def key_path(folder: Path, party: int) -> Path:
    """Where the private key of a party is."""
    return folder / f"party{party}.share.key"


@keywords(OfVectors)
def prepare(
    folder: Path | str,
    *,
    owners: int,
    dimension: int,
    clip: float,
    run_id: str | None = None,
    **settings: Unpack[PlanKeywords],
) -> Prepared:
    """Writes the plan of a Flower run and the parties' keys into `folder`: flower.json, which is public and goes with
    the app, and party<i>.share.key, of which each party gets its own alone.

    `owners`: the most clients that there may be; `dimension`: numbers of the model (`dimension_of`); `clip`: the L2
    norm that a client's update is clipped to; `min_owners`: how many must answer for a round to count, half of them by
    default; `settings`: as of `Plan.create`, `releases` being the rounds. Errors: UsageError for what no run can do,
    for `records` (whole updates are clipped, not records' parts), and where keys are in the folder already.
    """
    if settings.get("security") == "active":
        raise UsageError(
            "under Flower clients are sampled, and some fail, and active security needs all of them in every round; "
            "got <<security=active>>; use <<security=semi-honest>>",
            code="together",
        )
    if settings.get("min_owners") is None:
        settings["min_owners"] = max(1, owners // 2)
    plan = Plan.create(owners=owners, dimension=dimension, clip=clip, run_id=run_id, **settings)
    return written(plan, folder)


def written(plan: Plan, folder: Path | str) -> Prepared:
    """A plan with new keys, in files of a folder. Errors: as `prepare`."""
    _ = plan.derived  # what no run can keep is refused before a key is written
    Prepared(plan, (bytes(_KEY),) * plan.parties)
    folder = Path(folder)
    make_folder(folder, "the keys' folder must be one that can be written")
    prepared = Prepared(plan, tuple(write_key(key_path(folder, party)) for party in range(plan.parties)))
    write_file(folder / FILE, prepared.to_text(), public=True)
    return prepared


def read_prepared(given: Prepared | Path | str) -> Prepared:
    """The plan with keys, or the one in the file or folder."""
    return given if isinstance(given, Prepared) else Prepared.read(given)
