"""`--link`: the k of two servers' transfers follows from the line between them, in every command that has a backend."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.cli import main as cli
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.local.named_records import load
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.levels import BY_LEVEL, by_link, described, level, transfers_k
from dpmpc.planning.training import facts_of, plan_of
from tests.refusals import refuses
from tests.runs import small


def test_the_level_follows_from_the_link() -> None:
    assert [by_link(link, "ot") for link in ("lan", "wan", "1000", "50", "0.5")] == [
        "ot",
        "ot-k8",
        "ot",
        *["ot-k8"] * 2,
    ]
    assert level(224) == 8 and level(226) == 4  # where a byte less in each direction is worth 35.6 ns
    assert {k: BACKENDS[name].k for k, name in BY_LEVEL.items()} == {k: k for k in BY_LEVEL}  # type: ignore[attr-defined]
    assert described("ot-k8") == "ot-k8, k = 8" and described("sharing") == "sharing"
    assert (transfers_k("garbled"), transfers_k("shamir")) == (4, None)


@pytest.mark.parametrize("link", ["fast", "0", "-1", "nan", "inf", ""])
def test_a_link_that_is_none_is_refused(link: str) -> None:
    with refuses("range", 0, "link=wan", setting="link"):
        by_link(link, "ot")


def test_requests_take_it_and_refuse_it_where_nothing_is_chosen() -> None:
    assert (
        small(parties=2, link="wan").plan_settings["backend"]
        == "ot-k8"
        == small(parties=2, backend="ot", link="80").plan_settings["backend"]
    )
    assert small(parties=2, link="lan").plan_settings["backend"] == "ot" == small(parties=2).plan_settings["backend"]
    for changes, has in (
        ({"parties": 3}, "sharing"),
        ({"parties": 2, "backend": "garbled"}, "garbled"),
        ({"parties": 2, "backend": "ot-k2"}, "ot-k2"),
        ({"parties": 2, "threshold": 0}, "sharing"),
    ):
        with refuses("together", has, setting="link"):
            small(link="wan", **changes)
    with refuses("together", "engine=clear", setting="link"):
        small(engine="clear", link="wan")


def test_the_plan_says_which_and_another_is_another_plan() -> None:
    plans = []
    for link in ("lan", "wan"):
        request = small(parties=2, link=link, run_id="same")
        plans.append(plan_of(request, facts_of(*load(request))))
    assert [plan.backend for plan in plans] == ["ot", "ot-k8"]
    assert plans[0].digest(FIRST_ATTEMPT) != plans[1].digest(FIRST_ATTEMPT)
    assert "(ot-k8, k = 8)" in "\n".join(taking_part(plans[1])) and Plan.from_text(plans[1].to_text()) == plans[1]


def test_a_consortiums_file_names_its_link(tmp_path: Path) -> None:
    path = tmp_path / "consortium.toml"
    for text, backend in (('"wan"', "ot-k8"), ("60", "ot-k8"), ("940.5", "ot"), (None, "ot")):
        file = text_of(Founding(addresses=("127.0.0.2:1000", "127.0.0.3:1000"), iterations=3))
        path.write_text(file if text is None else file.replace('# link = "lan" ', f"link = {text} "))
        assert read_consortium(path).plan.backend == backend
    path.write_text(file.replace('# link = "lan" ', 'link = "far" '))
    with refuses("range", "[mpc]", "wan", "far", setting="link"):
        read_consortium(path)


def test_sample_and_train_say_what_was_chosen(tmp_path: Path) -> None:
    run = CliRunner()
    words = "sample --law gaussian --scale 5000 --count 64 -M 2 --engine counting --link wan"
    said = run.invoke(cli.group, words.split(), catch_exceptions=False)
    assert "for n = 2, t = 1, ot-k8 with k = 8" in said.output, said.output
    words = "train --data synthetic --max-rows 120 --dimension 3 --owners 2 -M 2 --delta 1e-4 --iterations 2 --link 90"
    out = tmp_path / "plan"
    assert run.invoke(cli.group, [*words.split(), "--plan-only", "--out", str(out)]).exit_code == 0
    assert Plan.read(out / "plan.json").backend == "ot-k8"
    given = ["train", "--plan", str(out / "plan.json"), "--link", "lan", "-I", "owner0", "--out", str(tmp_path / "run")]
    refused = run.invoke(cli.group, [*given, "-P", "127.0.0.1:1", "-P", "127.0.0.1:3"])
    assert "link is settled by the plan: ot-k8; got lan beside it" in str(refused.exception)
