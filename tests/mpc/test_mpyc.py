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

from dpmpc.aggregation.noise_source import about_noise
from dpmpc.aggregation.plan import Plan
from dpmpc.circuits.fixed_sampler import gaussian_by_box_muller, laplace_by_logarithm
from dpmpc.circuits.sampler import DiscreteSampler, discrete_gaussian, discrete_laplace
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc import mpyc_runtime
from dpmpc.mpc.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.backend import BACKENDS, Holder
from dpmpc.mpc.backends.mpyc import drawing, fixed
from dpmpc.mpc.backends.mpyc.exchange import FRAME, Counters, Greeting, connect
from dpmpc.mpc.backends.mpyc.holder import MpycHolder
from dpmpc.mpc.credentials import make_credentials
from dpmpc.mpc.dial import TcpLink
from dpmpc.mpc.loopback import run_parties
from dpmpc.mpc.tls import Tls
from dpmpc.noise.goodness import chi_square
from dpmpc.privacy.law import LAWS
from dpmpc.verify.structure import check_structure
from tests.runs import alive, children_of, dpmpc, errors_of, own_addresses, run, small, started, wait_until

MPYC = BACKENDS["mpyc"]
MINE = Greeting("0.11", drawing.P, 2, 0, 0, b"d" * 32)
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
            assert cost == [counts.rounds, counts.bytes_with_headers(0)[party], counts.messages_sent[party]], name
            assert (values == drawn[0][k][0]).all() and len(values) == count
            assert abs(values).max() <= sampler.largest and len(set(values)) > count // 2
        assert counts.header == FRAME


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
    with pytest.raises(UsageError, match="draws the discrete laws, box-muller and log-laplace; got the sampler other"):
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
    text = about_noise(plan("mpyc"), 1)
    assert text.startswith("100,000 samples take about ") and text.endswith(" s of a core at each party")
    assert about_noise(dataclasses.replace(plan("mpyc"), scale=0.0), 1) == ""


# -- who is refused ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "0.10"}, r"same version of MPyC; party 0 has 0\.10, party 1 has 0\.11; install the same"),
        ({"prime": 2**31 - 1}, r"same prime; party 0 has 2147483647, party 1 has"),
        ({"threshold": 1}, r"number of parties and threshold; party 0 has \(2, 1\)"),
        ({"digest": b"e" * 32}, "same parameters; party 0 has 65656565, party 1 has 64646464; copy plan.json"),
    ],
)
def test_a_party_that_differs_is_refused_by_both_before_mpyc_deals_keys(changes: dict[str, Any], words: str) -> None:
    first, second = pair(dataclasses.replace(MINE, **changes), dataclasses.replace(MINE, party=1))
    assert isinstance(first, PeerError) and isinstance(second, PeerError)
    with pytest.raises(PeerError, match=words):
        raise second


def pair(first: Greeting, second: Greeting, tls: tuple[Tls | None, Tls | None] = (None, None)) -> list[Any]:
    """What `connect` gives two parties of one process, errors included."""

    async def main() -> list[Any]:
        bound = [bound_socket(), bound_socket()]
        addresses = [endpoint_of(each) for each in bound]
        runtimes = [mpyc_runtime.make_runtime(i, 2, 0) for i in range(2)]
        lost = lambda peer, why: None  # noqa: E731
        calls = [
            connect(runtimes[i], mine, addresses, tls[i], bound[i], 60.0, Counters(None), lost)
            for i, mine in enumerate((first, second))
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        for found in results:
            for each in found.values() if isinstance(found, dict) else ():
                each.close()
        await asyncio.sleep(0)
        return list(results)

    return asyncio.run(main())


def test_over_tls_a_certificate_is_for_its_own_party(tmp_path: Path) -> None:
    make_credentials(tmp_path, ["party0", "party1", "party2"])
    contexts = [Tls.load(tmp_path, f"party{i}") for i in range(3)]
    second = dataclasses.replace(MINE, party=1)
    first_found, second_found = pair(MINE, second, (contexts[0], contexts[1]))
    assert list(first_found) == [1] and list(second_found) == [0]
    wrong = pair(MINE, second, (contexts[2], contexts[1]))
    assert any(isinstance(e, PeerError) and "the certificate is for party2" in str(e) for e in wrong)


def test_without_tls_no_address_off_this_machine_is_called() -> None:
    async def main() -> None:
        holder = MpycHolder(0, 2, 0, b"run")
        link = TcpLink(0, [Endpoint("127.0.0.1", 1), Endpoint("192.0.2.1", 1)])
        with pytest.raises(UsageError, match="without TLS only loopback addresses are allowed"):
            await holder.connect(link, seconds=5.0)
        with pytest.raises(UsageError, match="MPyC makes its own connections over TCP"):
            await holder.connect(object(), seconds=5.0)  # type: ignore[arg-type]

    asyncio.run(main())


def test_a_missing_party_is_named() -> None:
    async def main() -> None:
        bound = bound_socket()
        addresses = [endpoint_of(bound), Endpoint("127.0.0.1", 1)]
        runtime = mpyc_runtime.make_runtime(0, 2, 0)
        with pytest.raises(PeerError, match=r"every party must come within 0\.2 s; missing: party 1 \(127"):
            await connect(runtime, MINE, addresses, None, bound, 0.2, Counters(None), lambda peer, why: None)

    asyncio.run(main())


def test_numbers_of_parties_whose_messages_cannot_be_counted_are_refused() -> None:
    for n, t in ((1, 0), (2, 0), (3, 1), (5, 2), (3, 0)):
        MPYC.check(n, t)
    with pytest.raises(UsageError, match="cannot be counted ahead; got n = 4, t = 1; use an odd -M"):
        MPYC.check(4, 1)
    with pytest.raises(UsageError, match="0 <= 2t < n; got t = 2, n = 4"):
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
