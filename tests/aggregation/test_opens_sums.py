"""Whoever opens sums has the whole protocol, and no more is asked of any of them."""

import inspect
from typing import Any

import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.carrier import Carrier
from dpmpc.aggregation.owner.opens_sums import OpensSums, Progress
from dpmpc.aggregation.owner.session import Connected, InTheClear, OwnerSession
from dpmpc.local.sites import SitesRun

ASKED = {
    OpensSums: (Aggregator, SitesRun, Carrier),
    OwnerSession: (Connected, InTheClear),
    Progress: (Connected, InTheClear),
}


def names(kind: type) -> set[str]:
    own = {name for name in vars(kind) if not name.startswith("_")}
    return own | set(inspect.get_annotations(kind))


@pytest.mark.parametrize(("protocol", "kind"), [(p, kind) for p, kinds in ASKED.items() for kind in kinds])
def test_it_has_all_that_is_asked(protocol: Any, kind: Any) -> None:
    """Attributes are set where one is made; methods take what the protocol says."""
    wanted = names(protocol)
    made = inspect.getsource(kind.__init__) + "".join(
        inspect.getsource(getattr(kind, name)) for name in ("_begin",) if hasattr(kind, name)
    )
    absent = {name for name in wanted if not hasattr(kind, name) and f"self.{name}" not in made}
    assert wanted and not absent, absent
    for name in wanted:
        asked, has = getattr(protocol, name, None), getattr(kind, name, None)
        if inspect.isfunction(asked):
            assert inspect.isfunction(has)
            assert len(inspect.signature(asked).parameters) == len(inspect.signature(has).parameters), name
