"""The backend mpyc: MPyC's own protocols give the exact law, Box-Muller within its bound, at the cost counted ahead;
whoever is not of this run is refused, and nobody waits for ever."""

import asyncio
import dataclasses
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from dpmpc.aggregation.party.noise_source import about_noise
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.circuits.fixed_sampler import gaussian_by_box_muller, laplace_by_logarithm
from dpmpc.circuits.sampler import DiscreteSampler, discrete_gaussian, discrete_laplace
from dpmpc.mpc.contract.backend import BACKENDS, Holder
from dpmpc.mpc.mpyc import drawing, fixed
from dpmpc.mpc.mpyc import runtime as mpyc_runtime
from dpmpc.mpc.mpyc.exchange import Exchange, Turn
from dpmpc.mpc.mpyc.holder import MpycHolder
from dpmpc.mpc.parties.loopback import run_parties
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.channels import KEYS
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.wire import HEADER, Peer
from dpmpc.noise.goodness import chi_square
from dpmpc.privacy.law import LAWS
from dpmpc.verify.structure import check_structure
from tests.refusals import refuses
from tests.runs import HANG, alive, children_of, dpmpc, errors_of, own_addresses, run, small, started, wait_until

MPYC = BACKENDS["mpyc"]
ALPHA = 1e-9


# -- laws --------------------------------------------------------------------------------------------------------------
DRAWS = (
    ("gaussian", "discrete", 2.0**20, 1_500),
    ("laplace", "discrete", 2.0**20, 45),
    ("gaussian", "box-muller", 2.0**20 / 3, 33),
    ("laplace", "log-laplace", 1000.0, 21),
)


async def _draws(holder: Holder, draws: list[tuple[str, str, float, int]]) -> list[Any]:
    """(what was opened, rounds, bytes, frames) of each draw."""
    found = []
    for k, (law, name, scale, count) in enumerate(draws):
        sampler = MPYC.drawn(LAWS[law].sampler(name, scale), 3, 1, count, 1e-6)
        await holder.here(3 * k)
        before = np.array([holder.rounds, holder.bytes_sent, holder.frames_sent])
        share = await holder.noise(sampler, 3 * k + 1, count)
        cost = np.array([holder.rounds, holder.bytes_sent, holder.frames_sent]) - before
        found.append([await holder.open(share, 3 * k + 2), cost.tolist()])
    return found


@pytest.fixture(scope="module")
def drawn() -> list[list[Any]]:
    """What three parties drew, by party."""
    return run_parties(_draws, 3, None, (DRAWS,), backend="mpyc")


def test_every_sampler_costs_what_is_counted(drawn: list[list[Any]]) -> None:
    for k, (law, name, scale, count) in enumerate(DRAWS):
        sampler = MPYC.drawn(LAWS[law].sampler(name, scale), 3, 1, count, 1e-6)
        counts = MPYC.count_noise(sampler, count, 3, 1)
        for party in range(3):
            values, cost = drawn[party][k]
            sent = counts.bytes_with_headers(HEADER.size)[party], counts.messages_sent[party]
            assert cost == [counts.rounds, *sent], name
            assert (values == drawn[0][k][0]).all() and len(values) == count
            assert abs(values).max() <= sampler.largest and len(set(values)) > count // 2


def homogeneity(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of a chi-square of two samples in 16 bins of equal content."""
    edges = np.quantile(np.concatenate([first, second]), np.arange(1, 16) / 16)
    table = np.stack([np.bincount(np.searchsorted(edges, x), minlength=16) for x in (first, second)]).astype(float)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), 15))


async def _fast(holder: Holder, count: int) -> Any:
    await holder.here(0)
    return await holder.open(await holder.noise(discrete_gaussian(2.0**20), 1, count), 2)


def test_mpyc_and_the_fast_engine_draw_from_one_law(drawn: list[list[Any]]) -> None:
    """Two implementations that share only the tables. False alarms below 1e-9 each; noise that is a third wider is
    told apart."""
    values = drawn[0][0][0]
    fast = run_parties(_fast, 3, None, (20_000,))[0]
    assert homogeneity(values, fast) >= ALPHA
    assert homogeneity(values, fast * 4 // 3) < ALPHA
    assert chi_square(values, LAWS["gaussian"].exact(2.0**20, True)).p_value >= ALPHA


# -- the fixed-point transform -----------------------------------------------------------------------------------------
def alone(body: Callable[[MpycHolder, Any], Any]) -> Any:
    """What `body(holder, SecFxp)` returns at one party alone, which sees everything."""

    async def main() -> Any:
        holder = MpycHolder(0, 1, 0, b"run")
        holder.mpc.options.sec_param = 40
        fxp = holder.mpc.SecFxp(
            fixed.LENGTH, fixed.FRACTION, p=mpyc_runtime.prime_of(fixed.LENGTH + fixed.FRACTION + 42)
        )
        return await body(holder, fxp)

    return asyncio.run(main())


def bits_of(number: mpmath.mpf, lead: int, place: np.ndarray) -> mpmath.mpf:
    """2^-(lead + 2) m, for m with these bits, most significant first."""
    x = mpmath.mpf(int("".join(map(str, place)), 2)) + mpmath.mpf(1) / 2
    return number * mpmath.mpf(2) ** -(lead + 2) * (1 + x / 2 ** len(place))


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_transform_of_known_bits_is_within_its_bound(law: str) -> None:
    """MPyC's SecFxp on given bits against mpmath on the same: all leads, random and extreme places."""
    rng = np.random.default_rng(1)
    leads = [*range(fixed.LEAD + 1), 0, 0, 0, 1, 64]
    n, place = len(leads), fixed.PLACE
    rows = rng.integers(0, 2, (fixed.LEAD + 1 + 2 * place + 2, n))
    for column, lead in enumerate(leads):
        rows[:lead, column] = 1
        rows[lead : lead + 1, column] = 0 if lead < fixed.LEAD else rows[lead, column]
    rows[fixed.LEAD + 1 :, -4], rows[fixed.LEAD + 1 :, -5] = 0, 1

    async def transform(holder: MpycHolder, fxp: Any) -> Any:
        mpc, bits = holder.mpc, fxp.array(rows.astype(np.int64))
        if law == "laplace":
            part = mpc.np_concatenate((bits[: fixed.LEAD], bits[fixed.LEAD + 1 : fixed.LEAD + 1 + place], bits[-1:]))
            return np.asarray(await mpc.output(await fixed._laplace(mpc, part, 1.0)))
        radius = await fixed._radii(mpc, bits[: fixed.LEAD + 1 + place], 1.0)
        vectors = await fixed._unit_vectors(mpc, bits[fixed.LEAD + 1 + place :])
        return np.asarray(await mpc.output(radius * vectors))

    found = alone(transform)
    worst = mpmath.mpf(0)
    mpmath.mp.prec = 120
    for i, lead in enumerate(leads):
        v = bits_of(mpmath.mpf(1), lead, rows[fixed.LEAD + 1 : fixed.LEAD + 1 + place, i])
        if law == "laplace":
            exact = [-mpmath.log(2 * v) * (1 - 2 * int(rows[-1, i]))]
        else:
            u = 1 - v if rows[fixed.LEAD, i] else v
            angle_bits = rows[fixed.LEAD + 1 + place : fixed.LEAD + 1 + 2 * place, i]
            angle = mpmath.pi / 2 * bits_of(mpmath.mpf(4), 0, angle_bits) - mpmath.pi / 2
            radius = mpmath.sqrt(-2 * mpmath.log(u))
            signs = [1 - 2 * int(b) for b in rows[-2:, i]]
            exact = [radius * mpmath.cos(angle) * signs[0], radius * mpmath.sin(angle) * signs[1]]
        worst = max(worst, *(abs(mpmath.mpf(float(found[k, i])) - e) for k, e in enumerate(exact)))
    bound = fixed.transform_error(law)  # type: ignore[arg-type]
    assert bound / 1000 < worst < bound < 2.0**-24


def test_a_run_on_secfxp_says_its_error_and_its_openings_fail_below_a_thousandth_of_delta() -> None:
    plan = Plan.create(
        owners=3, dimension=50, clip=1.0, epsilon=1.0, delta=1e-6, releases=7, backend="mpyc", sampler="box-muller"
    )
    assert 0 < plan.derived.hiding < min(1e-6 / 1000, 2.0**-40)
    loose = dataclasses.replace(plan, security_bits=10.0)
    assert 2.0**-40 < loose.derived.hiding < 1e-6 / 1000
    certificate = plan.derived.certificate
    assert certificate["transform_error_in_scales"] == fixed.transform_error("gaussian")
    assert "SecFxp" in str(certificate["law"]) and int(certificate["sec_param"]) > 40
    assert Plan.create(owners=3, dimension=50, clip=1.0, delta=1e-6, backend="mpyc").derived.sampler.discrete
    for sampler in (gaussian_by_box_muller(100.0), laplace_by_logarithm(100.0)):
        small_, large = (MPYC.drawn(sampler, 3, 1, count, 1e-6) for count in (100, 100_000))
        assert isinstance(small_, fixed.SecFxpSampler) and isinstance(large, fixed.SecFxpSampler)
        assert large.sec_param - small_.sec_param in (9, 10)  # a thousand times the openings
        assert MPYC.drawn(large, 3, 1, 1, 1e-6) is large


def test_the_exact_sampler_pays_for_its_shared_deep_bits() -> None:
    for sampler in (discrete_gaussian(1e4), discrete_laplace(1e4)):
        exact = drawing.drawn_exactly(sampler)
        assert MPYC.count_noise(sampler, 700, 3, 1).distance == 700 * exact.group > 0
    with refuses("choice", "other", setting="sampler"):
        drawing.drawn_exactly(dataclasses.make_dataclass("Other", [], namespace={"name": "other"})())
    assert isinstance(MPYC.drawn(discrete_gaussian(1e4), 3, 1, 5, 0.0), DiscreteSampler)


# -- whole runs --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"method": "output", "sampler": "box-muller", "law": "gaussian"}, {"iterations": 3, "pool": False}]
)
def test_a_run_ends_and_its_transcripts_hold(changes: dict[str, Any], tmp_path: Path) -> None:
    told: list[str] = []
    settings = {"iterations": None} | changes
    report = run(
        small(backend="mpyc", **settings),
        tmp_path / "run",
        progress=lambda event: told.append(str(event.get("text"))),
    )
    assert check_structure(tmp_path / "run").holds
    assert report["privacy"]["noise_law"] == ("gaussian (box-muller)" if "sampler" in changes else "discrete Gaussian")
    assert any("s of a core at each party" in text or "s of noise" in text for text in told)


@pytest.mark.slow
def test_when_a_party_dies_the_others_end(tmp_path: Path) -> None:
    """MPyC by itself would wait for ever."""
    arguments = ["train", "--data", "synthetic", "--max-rows", "100", "--dimension", "3", "--owners", "2", "--delta"]
    arguments += ["1e-3", "--no-evaluate", "--iterations", "100000", "--backend", "mpyc", "--out", str(tmp_path / "r")]
    with started(*arguments) as process:
        log = tmp_path / "r" / "party_1.log"
        wait_until(lambda: log.exists() and "connected with all" in log.read_text())
        children = children_of(process.pid)
        party = next(pid for pid in children if _is_party(pid, tmp_path / "r" / "party_1.log"))
        os.kill(party, signal.SIGKILL)
        text = errors_of(process)
        assert process.returncode == 3 and "party 1" in text and "Traceback" not in text
        wait_until(lambda: not alive(children))


def _is_party(pid: int, log: Path) -> bool:
    try:
        return any(Path(os.readlink(fd)) == log for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def test_the_time_is_said_before_it_passes() -> None:
    def plan(backend: str) -> Plan:
        return Plan.create(owners=3, dimension=100_000, clip=1.0, delta=1e-6, backend=backend)

    assert about_noise(plan("sharing"), 1) == ""
    assert about_noise(dataclasses.replace(plan("sharing"), parties=0, threshold=0), 1) == ""  # in the clear
    text = about_noise(plan("mpyc"), 1)
    assert text.startswith("100,000 samples take about ") and text.endswith(" s of a core at each party")
    assert about_noise(dataclasses.replace(plan("mpyc"), scale=0.0), 1) == ""


# -- connections -------------------------------------------------------------------------------------------------------
def together(versions: list[str], monkeypatch: pytest.MonkeyPatch, sent: list[int]) -> list[Any]:
    """What two parties of one process get of `connect`, where their MPyC has these versions; `sent`: labels."""

    async def main() -> list[Any]:
        bound = [bound_socket(), bound_socket()]
        where = [endpoint_of(each) for each in bound]
        holders = [MpycHolder(i, 2, 0, b"run") for i in (0, 1)]
        told = iter(versions)
        monkeypatch.setattr(mpyc_runtime, "version", lambda: next(told))
        send = Peer.send
        monkeypatch.setattr(Peer, "send", lambda self, label, payload: (sent.append(label), send(self, label, payload)))
        links = [TcpLink(i, where, bound=bound[i]) for i in (0, 1)]
        calls = [h.connect(link, bytes(32), seconds=HANG) for h, link in zip(holders, links, strict=True)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        for holder in holders:
            holder.abandon()
        await asyncio.sleep(0)
        return list(found)

    return asyncio.run(main())


def test_another_version_of_mpyc_is_refused_by_both_before_a_key_is_dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    assert together(["0.11", "0.11"], monkeypatch, sent) == [None, None] and KEYS in sent
    sent.clear()
    found = together(["0.10", "0.11"], monkeypatch, sent)
    for error in found:
        rule, values, way = str(error).split("; ")
        assert rule == "all parties must have the same version of MPyC" and way == "install the same one everywhere"
        assert sorted(values.replace(",", "").split()) == ["0", "0.10", "0.11", "1", "has", "has", "party", "party"]
    assert KEYS not in sent


def test_messages_find_their_counters_in_whatever_order_they_are_asked_for() -> None:
    class Wire:
        """A connection that keeps what is sent, and gives out what a test delivers."""

        def __init__(self) -> None:
            self.sent: list[tuple[int, bytes]] = []
            self.coming: dict[int, asyncio.Future[bytearray]] = {}

        def send(self, label: int, payload: bytes) -> None:
            self.sent.append((label, payload))

        def receive(self, label: int) -> "asyncio.Future[bytearray]":
            return self.coming.setdefault(label, asyncio.get_running_loop().create_future())

    async def main() -> None:
        one, other, turns = Wire(), Wire(), [Turn(), Turn()]
        sender, receiver = Exchange(one, turns[0]), Exchange(other, turns[1])  # type: ignore[arg-type]
        for turn in turns:
            turn.begin(7)
        for counter in (5, -(2**63), 2**63 - 1):
            sender.send(counter, b"%d" % counter)
        assert [label for label, _ in one.sent] == [7 << 32, 7 << 32 | 1, 7 << 32 | 2]
        for label, payload in one.sent:
            other.receive(label).set_result(bytearray(payload))
        last = receiver.receive(2**63 - 1)
        assert isinstance(last, asyncio.Future) and await last == b"%d" % (2**63 - 1)
        assert receiver.receive(5) == b"5" and receiver.receive(-(2**63)) == b"%d" % -(2**63)
        assert turns[0].rounds == turns[1].rounds == 3
        for turn in turns:  # the next channel counts its frames from 0
            turn.begin(8)
        sender.send(6, b"next")
        waits = receiver.receive(6)
        other.receive(8 << 32).set_result(bytearray(one.sent[-1][1]))
        assert isinstance(waits, asyncio.Future) and await waits == b"next"

    asyncio.run(main())


def test_numbers_of_parties_whose_messages_cannot_be_counted_are_refused() -> None:
    for n, t in ((1, 0), (2, 0), (3, 1), (5, 2), (3, 0)):
        MPYC.check(n, t)
    with refuses("range", 4, 1, setting="parties"):
        MPYC.check(4, 1)
    with refuses("range", 0, 2, 4, setting="threshold"):
        MPYC.check(4, 2)


def test_owners_shares_are_mpycs_shares() -> None:
    """MPyC's own recombination gives the vectors back."""
    import mpyc.finfields
    import mpyc.thresha

    vectors = np.array([[5, -7, (drawing.P - 1) // 2]], dtype=np.int64)
    payloads = MPYC.dealer(5, 2).deal(vectors)
    points = [(i + 1, np.frombuffer(p, dtype="<u8").astype(object).tolist()) for i, p in enumerate(payloads)]
    opened = mpyc.thresha.recombine(mpyc.finfields.GF(drawing.P), points[1:4])
    assert [x % drawing.P for x in opened] == [int(v) % drawing.P for v in vectors[0]]


def test_ssl_means_the_folder_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    alone = ["train", "--data", "synthetic", "--max-rows", "60", "--dimension", "3", "--owners", "2", "--delta", "1e-3"]
    alone += ["--backend", "mpyc", "--out", "out", "--ssl", "-I", "0", *own_addresses(3)]
    assert "needs ca.crt, party0.crt and party0.key in .config; ca.crt is missing" in dpmpc(*alone).stderr
    assert "--ssl is --tls .config" in dpmpc(*alone, "--tls", "keys").stderr
