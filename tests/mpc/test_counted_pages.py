"""Figures of pages that the counting engine gives, held to it: the pages are two-servers.md, noise.md and words.md."""

import re
from pathlib import Path
from typing import Any

import pytest

from dpmpc.aggregation.plan.decided import count_decisions
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.circuits.sampler import discrete_gaussian, discrete_laplace
from dpmpc.learning.naming import VOTES, NamingSource
from dpmpc.mpc.contract.backend import Counts
from dpmpc.mpc.replicated.backend import SHARING
from dpmpc.mpc.two_servers.backend import GARBLED, OT, OT_1, OT_2, OT_8
from dpmpc.tables.meet_words import foreseen_words

DOCS = Path(__file__).parents[2] / "docs"
MILLION = 10**6
LAWS: dict[str, Any] = {"Gaussian": discrete_gaussian, "Laplace": discrete_laplace}


def page(name: str) -> str:
    """Its text, a line a paragraph or a row."""
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("backend", [OT_1, OT_2, OT, OT_8], ids=lambda each: str(each.name))
def test_bytes_of_two_servers(backend: Any) -> None:
    counts = backend.count_noise(discrete_gaussian(2.0**20), MILLION, 2, 1)
    assert f"| `{backend.name}` | {backend.k} | {sum(counts.bytes_sent) / MILLION:,.0f} |" in page("two-servers.md")


@pytest.mark.parametrize("law", LAWS)
def test_products_and_garbled_circuits_of_two_servers(law: str) -> None:
    text, sampler = page("two-servers.md"), LAWS[law](2.0**20)
    few, many = (GARBLED.count_noise(sampler, n, 2, 1) for n in (122, 10_000))
    made = OT.count_noise(sampler, 10_000, 2, 1)
    ands, transfers = (made.sample[key] for key in ("ands", "transfers"))
    assert f"| {law} | {ands} | {transfers} | {made.rounds} |" in text
    sent = " | ".join(f"{each / 10_000:,.0f}" for each in many.bytes_sent)
    assert f"| {law} | {ands} | {sent} | {few.rounds} |" in text


@pytest.mark.parametrize("scale", [2.0**13, 1e5, 2.0**18, 2.0**24])
def test_noise_of_three_parties(scale: float) -> None:
    said = "100,000" if scale == 1e5 else f"2^{scale.hex().partition('p+')[2]}"
    assert row(said, SHARING.count_noise(discrete_gaussian(scale), 1 << 16, 3, 1)) in page("noise.md")


def row(said: str, made: Counts) -> str:
    sent = max(made.bytes_sent) / (1 << 16)
    return f"| {said} | {made.sample['ands']} | {made.rounds} | {sent:.0f} | {made.sample['random bits']} |"


def test_laplace_noise_of_three_parties() -> None:
    made = SHARING.count_noise(discrete_laplace(2.0**17), 1 << 16, 3, 1)
    assert row("Laplace, b = 2^17", made) in page("noise.md")


def naming(columns: int, epsilon: float) -> Plan:
    names = tuple("abcde"[:columns])
    return plan_of(NamingSource(names), (6000, 4000), data_id="made up", epsilon=epsilon, delta=1e-5)


def test_how_many_records_a_word_needs_and_what_it_costs() -> None:
    text = page("words.md")
    said = {
        (columns, epsilon): foreseen_words(naming(columns, epsilon))[1]
        for columns in (1, 5)
        for epsilon in (0.1, 0.5, 1.0)
    }
    a, b, c, d, e, f = (each.partition("at least ")[2].split()[0] for each in said.values())
    assert f"For one column: {a} at epsilon 0.1, {b} at 0.5, {c} at 1; for five: {d}, {e} and {f} (delta 1e-5)." in text
    plan = naming(1, 1.0)
    found = re.search(r"sends ([\d.]+) MB in (\d+) exchanges .* an owner ([\d.]+) MB", foreseen_words(plan)[2])
    assert found is not None
    assert f"takes {float(found[1]):.0f} MB a party and {found[2]} exchanges; an owner sends {found[3]} MB" in text
    ands = sum(each.sample.get("ands", 0) for each in count_decisions(plan, plan.derived.decision)) / 256
    assert f"some {round(ands / VOTES, -2):.0f} ANDs a vote for three parties: {round(ands, -4):,.0f} a cell." in text
