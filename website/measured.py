"""Parts of pages that `website.figures` writes between their marks, from result files of `dpmpc bench`."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dpmpc
from dpmpc.benchmarks import parties_plot, result_file, tables
from dpmpc.benchmarks.cell import BASE
from dpmpc.benchmarks.parties import PUBLISHED
from dpmpc.benchmarks.plot import seconds
from dpmpc.benchmarks.result_file import Record, Results
from dpmpc.benchmarks.studies import meeting, two_servers
from dpmpc.mpc.contract.backend import DEFAULT
from website import comparison, waiting

_BUSY = 2.0  # load before a measurement from which on other work took part of its time
_SIZE = {**BASE, "dimension": 122, "owners": 100, "parties": 3}  # the release that is split and compared


def where(found: Results) -> str:
    """By what it was measured, on what, and how busy that was."""
    m = found.machine
    version, cores = m["versions"]["dpmpc"], f"{m['cores']} cores for all processes"
    said = [
        f"dpmpc {version}, commit {m['commit']}, {m['time'][:10]}. {m['processor']}, {cores}, "
        f"{m['memory_bytes'] / 2**30:.0f} GiB; Python {m['versions']['python']}, NumPy {m['versions']['numpy']}."
    ]
    if "kernels" in m:
        said.append(f"Kernels: {m['kernels']}.")
    before, after = m["load"][0], m["load_after"][0]
    said.append(f"Load {before:.1f} before, {after:.1f} after.")
    if before > _BUSY:
        said.append("Other work ran beside it, so compare rows with each other.")
    if version != dpmpc.__version__:
        said.append(f"Sizes and times are those of version {version}, not of {dpmpc.__version__}.")
    return " ".join(said)


def releases(found: Results) -> str:
    """The table of releases."""
    return tables.readme(found)


def noise(found: Results) -> str:
    """The table of samplers among three parties."""
    return tables.markdown(tables.noise_rows(found.find("noise", parties=3)))


def growth(found: Results) -> str:
    """The table of slopes."""
    return tables.markdown(tables.growth_rows([each for each in found.findings if each["kind"] == "growth"]))


def targets(found: Results) -> str:
    """The table of targets, and what is behind those that are missed."""
    asked = [each for each in found.findings if each["kind"] == "target"]
    missed = [each["target"] for each in asked if not each["met"]]
    said = f"{len(asked) - len(missed)} of {len(asked)} are met." + (f" Missed: {'; '.join(missed)}." if missed else "")
    return "\n\n".join((tables.markdown(tables.target_rows(asked)), said))


def _one(found: Results, **key: object) -> Record:
    (record,) = found.find("iteration", **{**_SIZE, **key})
    return record


def base(found: Results) -> str:
    """One release at d = 122, m = 100, n = 3: with and without its durable write, without a pool, over networks."""
    here = _one(found)
    total, plain = here.seconds["total"].median, here.seconds["without ledger"].median
    limit, durable = here.seconds["limit"].median, here.seconds["limit durable"].median
    rows = [["d = 122, m = 100, n = 3", "time", "bare TCP, the same bytes", "ratio"]]
    rows.append(["without the durable write", seconds(plain), seconds(limit), f"{plain / limit:.2f}"])
    rows.append(["with it", seconds(total), f"{seconds(durable)} with a durable line", f"{total / durable:.2f}"])
    for network in ("lan", "wan"):
        far = _one(found, network=network)
        plain, limit = far.seconds["without ledger"].median, far.seconds["limit"].median
        rows.append([f"without it, over {network}", seconds(plain), seconds(limit), f"{plain / limit:.2f}"])
    rows.append(["with it, its noise made within it", seconds(_one(found, pool=False).seconds["total"].median), "", ""])
    return tables.markdown(rows)


def networks(found: Results) -> str:
    """What the slow networks were made by, and the prediction beside the measurement."""
    said = []
    for network in ("lan", "wan"):
        far = _one(found, network=network)
        took = seconds(far.seconds["total"].median)
        said.append(
            f"`{network}` was made by {far.values['network_made_by']}: {took} measured, "
            f"{seconds(far.values['predicted_s'])} predicted for d = 122, m = 100."
        )
    return " ".join(said)


def published(found: Results, many: Results) -> str:
    """What others published beside what was found here. Sources: the papers named, as printed."""
    rows = [["published", "what", "theirs", "ours"]]
    took = seconds(_one(found).seconds["total"].median)
    fastest = max(r.values["samples_a_second"] for r in _gaussian(found))
    rows.append(
        ["Tian, Jayaraman, Gu, Evans 2016 (Obliv-C, 2 servers, garbled circuits)",
         "aggregate m = 20 / 40 / 60 / 80 / 100 models, d = 200, no noise",
         "0.33 / 0.52 / 0.70 / 0.88 / 1.06 s; 1.06 to 2.06 M gates",
         f"a release of m = 100, d = 122, 3 parties, noise made ahead: {took}; no gate, the sum is local"]
    )  # fmt: skip
    rows.append(
        ["Wei et al. 2023 (malicious security)", "discrete Gaussian samples", "about 364 a second",
         f"{fastest / 1e6:.2f} M a second, 3 semi-honest parties"]
    )  # fmt: skip
    (far,) = many.find("parties", parties=16, backend="shamir", network="loopback")
    few = max(_gaussian(found), key=lambda r: r.values["samples_a_second"])
    rows.append(
        ["Franzese et al. 2025, 16 parties, another trust model", "one sample", f"{1 / PUBLISHED[16]:.2f} s, 11.6 MB",
         f"n = 16, t = 7, by `shamir` (load {many.machine['load'][0]:.0f}): "
         f"{seconds(1 / far.values['samples_a_second'])}, "
         f"{far.counts['bytes_a_sample']:,.0f} bytes a party; n = 3: {seconds(1 / fastest)}, "
         f"{few.counts['bytes_a_sample']:,.0f} bytes a party"]
    )  # fmt: skip
    for law, theirs in (("laplace", "1,330 (ODO), 2,886 (Ostack)"), ("gaussian", "6,589 (ODO), 11,411 (Ostack)")):
        ours = found.find("noise", parties=3, law=law, sampler="discrete", backend=DEFAULT)[-1].counts["ands_a_sample"]
        rows.append(["Fu and Wang 2024, λ = 128", f"ANDs a sample, {law.capitalize()}", theirs, f"{ours:,}"])
    return tables.markdown(rows)


def _gaussian(found: Results) -> list[Record]:
    return found.find("noise", parties=3, law="gaussian", sampler="discrete", backend=DEFAULT)


def servers(found: Results) -> str:
    """Two servers beside three parties in a few figures."""
    rows = [["", "122 samples, once connected", "10,000 samples: a second", "bytes a sample that the busier one sends"]]
    rows[0].append("a release, d = 122, m = 100")
    for backend, n in two_servers.WHO:
        key: dict[str, object] = {"backend": backend, "parties": n}
        here = [r for r in found.find("noise", **key) if "network" not in r.key]
        few, many = (next(r for r in here if r.key["count"] == count) for count in (122, 10_000))
        row = [f"three parties, `{backend}`" if n > 2 else f"`{backend}`", seconds(few.seconds["draw"].median)]
        row += [f"{many.values['samples_a_second']:,.0f}", f"{many.counts['bytes_a_sample']:,.0f}"]
        rows.append([*row, seconds(_one(found, **key).seconds["total"].median)])
    return tables.markdown(rows)


def parties(found: Results) -> str:
    """The table against the number of parties."""
    return tables.markdown(parties_plot.rows(found.records))


def ratios(found: Results) -> str:
    """Rates of backends over each other, by number of parties on one machine, by the clock (and by processor time)."""
    rates: dict[tuple[int, str], Record] = {
        (r.key["parties"], r.key["backend"]): r for r in found.find("parties", network="loopback")
    }
    pairs = (
        ("shamir", "sharing"), ("shamir-checked", "shamir"), ("checked", "sharing"), ("checked", "shamir-checked"),
    )  # fmt: skip
    head = ["n", *(f"`{a}` over `{b}`" for a, b in pairs), "bytes of `shamir-checked`", "memory of `shamir-checked`"]
    return tables.markdown([head, *_ratio_rows(rates, pairs)])


def _ratio_rows(rates: Mapping[tuple[int, str], Record], pairs: tuple[tuple[str, str], ...]) -> Iterator[list[str]]:
    for n in sorted({n for n, _ in rates}):
        row = [str(n)]
        for a, b in pairs:
            both = (rates.get((n, a)), rates.get((n, b)))
            clock = [r.values["samples_a_second"] for r in both if r is not None]
            processor = [1 / r.values["cpu_us_a_sample"] for r in both if r is not None]
            said = [f"{rate[0] / rate[1]:.2f}" for rate in (clock, processor) if len(rate) == 2]
            row.append("{} ({})".format(*said) if said else "")
        one, other = rates[n, "shamir-checked"], rates[n, "shamir"]
        more = one.counts["bytes_a_sample"] / other.counts["bytes_a_sample"] - 1
        yield [*row, f"+{more:.2%}", f"{one.values['memory'] / 1e6:.0f} MB"]


def compared(old: Results, new: Results) -> str:
    """An older version's file beside this one's."""
    return "\n\n".join((f"Before: {where(old)}", f"Now: {where(new)}", comparison.text(old, new)))


PARTS: Mapping[str, Callable[..., str]] = {
    "where": where,
    "releases": releases,
    "networks": networks,
    "noise": noise,
    "growth": growth,
    "targets": targets,
    "base": base,
    "published": published,
    "servers": servers,
    "two-servers": two_servers.page,
    "parties": parties,
    "ratios": ratios,
    "compared": compared,
}
OF_PATHS: Mapping[str, Callable[..., str]] = {
    "meetings": lambda path: "\n".join(meeting.table_of(path)),
    **waiting.PARTS,
}


def part(name: str, files: list[Path]) -> str:
    """The part of a page of this name, from these result files. Errors: KeyError for a name that is none."""
    if name in OF_PATHS:
        return OF_PATHS[name](*files)
    return PARTS[name](*map(result_file.read, files))
