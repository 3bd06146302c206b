"""Things chosen by name: our own, those of other packages, and what happens when there is none or one too many."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from dpmpc import registry
from dpmpc.errors import UsageError
from dpmpc.learning.method import METHODS
from dpmpc.mpc.backend import BACKENDS, DEFAULT
from dpmpc.mpc.link import LINKS
from dpmpc.privacy.law import LAWS, calibration_names, law_of_sampler, sampler_names
from dpmpc.registry import Registry

GROUP = "dpmpc.things"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """The entry points that other packages have."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
    return points


def things() -> Registry[object]:
    return Registry("thing", GROUP, {"pi": "math:pi", "mean": "statistics:mean"})


def test_things_are_loaded_when_they_are_first_asked_for(
    installed: list[EntryPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("a_package_elsewhere")
    module.thing = object()  # type: ignore[attr-defined]
    installed += [EntryPoint("theirs", "a_package_elsewhere:thing", GROUP), EntryPoint("x", "none:none", "others")]
    found = things()
    assert found.names() == ("pi", "mean", "theirs") and "theirs" in found and "x" not in found
    with pytest.raises(ModuleNotFoundError):
        found["theirs"]
    monkeypatch.setitem(sys.modules, "a_package_elsewhere", module)
    assert found["theirs"] is module.thing  # type: ignore[attr-defined]
    assert dict(found.items())["theirs"] is module.thing  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["none", "", "Pi", None, 3])
def test_an_unknown_name_is_told_the_known_ones(installed: list[EntryPoint], name: str) -> None:
    with pytest.raises(UsageError, match=rf"^a thing is one of pi, mean; got {name!r}; choose one, or install"):
        things()[name]


def test_a_name_belongs_to_one_package(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("pi", "math:pi", GROUP))  # the same thing twice is no clash
    assert things().names() == ("pi", "mean")
    installed.append(EntryPoint("mean", "statistics:fmean", GROUP))
    with pytest.raises(UsageError, match="'mean' is taken, and statistics:fmean claims it too; uninstall"):
        things().names()
    with pytest.raises(UsageError, match="'mean' is taken"):
        _ = "mean" in things()


@pytest.mark.parametrize("ours", [LAWS, BACKENDS, METHODS, LINKS])
def test_our_own_things_load_under_their_own_names(ours: Registry[object]) -> None:
    names = ours.names()
    assert names and len(set(names)) == len(names)
    for name in names:
        assert getattr(ours[name], "name", name) == name
    with pytest.raises(UsageError, match=f"^a {ours.kind} is one of"):
        ours["nonesuch"]


def test_choices_of_the_command_line_follow_from_the_laws() -> None:
    assert DEFAULT in BACKENDS
    assert [law_of_sampler(name) for name in ("discrete", "box-muller", "log-laplace", "none")] == [
        None, "gaussian", "laplace", None
    ]  # fmt: skip
    assert set(sampler_names()) >= {"discrete", "box-muller", "log-laplace"}
    assert set(calibration_names()) >= {"tight", "zcdp", "paper"}
    for name, law in LAWS.items():
        assert law.calibrations[0] == "tight" and str(law) == name
        for sampler in law.samplers:
            assert law.sampler(sampler, 1000.0).name == sampler
