"""The file `site.toml` of a kit."""

from typing import Annotated

import msgspec

SITE = "site.toml"


class SiteFile(msgspec.Struct, forbid_unknown_fields=True):
    """Which process of which plan is started where. `plan`: SHA-256 of plan.json."""

    name: str
    role: Annotated[str, msgspec.Meta(pattern=r"^(party|owner|site)[0-9]{1,6}$")]
    plan: str
    addresses: list[str]
    tls: bool
    wait: float
    stall: float
    listen: str | None = None
    threads: int | None = None
