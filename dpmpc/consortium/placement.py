"""Where the processes of a run are, and which of them is started here: what `dpmpc train` was told of machines."""

from pathlib import Path

from dpmpc.aggregation.plan.here import Here
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass


@dataclass(frozen=True, kw_only=True)
class Placement(Here):
    """`Here`, and the plan that was made before. `data_id`: which the budget is for; `own_records`: whether an owner
    here has records of its own, whatever its plan calls them."""

    out: Path
    plan_file: Path | None = None
    data_id: str | None = None
    own_records: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.owner is not None and self.plan_file is None:
            raise UsageError(
                f"<<index={self.index}>> plays one owner of a plan; there is none; add <<plan_file=FILE>>, as "
                f"<<plan_only>> makes it",
                code="together",
            )
        if self.role == "both" and self.index is not None and not (self.index.isdecimal() and self.plan_file):
            raise UsageError(
                f"<<role=both>> starts one site of a plan, owner and party; got <<index={self.index}>>; give the "
                f"site's number "
                "and <<plan_file=FILE>>, as <<plan_only>> makes it",
                code="together",
            )
