"""What every law of noise must do: its circuit draws from it, and a release costs at least what it loses."""

import math
from collections.abc import Sequence

import numpy as np

from dpmpc.circuits.sampler import is_over_field
from dpmpc.errors import UsageError
from dpmpc.extend.failed import hold
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.noise.goodness import chi_square
from dpmpc.noise.sampling import sample
from dpmpc.privacy.exact import ExactLaw, Reals
from dpmpc.privacy.law import LAWS, Need
from dpmpc.privacy.sensitivity import Sensitivity

FALSE_ALARM = 1e-9  # of one sampler
MOST_STEPS = 1 << 22  # of a law that is summed term by term
DRAWN, LEAST = 400, 100  # by parties, with every backend
_CDF = 1e-8  # what `ExactLaw.cdf` may be off by


def check_law(
    name: str,
    scale: float = 1000.0,
    count: int = 20_000,
    backends: Sequence[str] | None = None,
    drawn: int = DRAWN,
) -> dict[str, tuple[str, ...]]:
    """The backends that each sampler of the law called `name` runs on, by sampler.

    Holds the law called `name` against itself: each of its samplers, drawn in the clear, follows `Law.exact`; its
    certificate is of a law that close; no sample exceeds `largest`; and of one coordinate that moves by 1, a tenth of
    the scale and the scale, the price `Law.spending` is at least what the exact law loses, computed from its
    probabilities alone.

    `scale`: in grid steps. `count`: samples in the clear. `backends`: all, by default: processes on this machine draw
    and open `drawn` samples with each, which follow the law, at the cost that was counted. A sampler with an arithmetic
    circuit (`OverField`, as that of tables has) runs on all of them; one that is a Boolean program alone is refused
    where no bits are shared.
    Errors: ConformanceError (a true law fails with probability below 1e-9 a sampler and backend). Cost: some seconds,
    and a few for each backend.
    """
    ran: dict[str, tuple[str, ...]] = {}
    law = LAWS[name]
    hold(law.name == name, f"a law's name is that of its entry; it is {law.name!r} under {name!r}")
    hold(drawn >= LEAST, f"what parties draw is held against the law from {LEAST} samples on; got {drawn}")
    hold(law.norm in (1, 2), "a law's norm is 1 or 2")
    hold(bool(law.samplers), "a law has a sampler")
    for sampler_name in law.samplers:
        sampler = law.sampler(sampler_name, scale)
        variation = float(sampler.certificate["total_variation"])
        hold(0 < variation < 1e-3, f"{sampler_name}: a certificate bounds total_variation, and it is small")
        exact = law.exact(sampler.scale, sampler.discrete)
        _, values = sample(name, scale, count, parties=3, engine="clear", sampler=sampler_name)
        assert values is not None
        hold(int(np.abs(values).max()) <= sampler.largest, f"{sampler_name}: no sample exceeds `largest`")
        found = chi_square(values, exact).p_value
        hold(found > FALSE_ALARM, f"{sampler_name}: samples follow `exact`; chi-square gives p = {found:.2g}")
        wanted = BACKENDS.names() if backends is None else backends
        ran[sampler_name] = tuple(each for each in wanted if _check_drawn(name, sampler_name, scale, each, drawn))
    _check_price(name, scale)
    return ran


def _check_drawn(name: str, sampler_name: str, scale: float, backend: str, drawn: int) -> bool:
    """Whether the backend draws the sampler. Errors: ConformanceError where it should, or draws something else."""
    parties = next(n for n in (3, 2, 5) if BACKENDS[backend].threshold(n) >= 0)
    try:
        report, _ = sample(name, scale, drawn, parties=parties, backend=backend, sampler=sampler_name, opened=True)
    except UsageError as error:
        over_field = is_over_field(LAWS[name].sampler(sampler_name, scale))
        hold(not over_field, f"{sampler_name}: a sampler with an arithmetic circuit runs on {backend}; {error.message}")
        return False
    found, largest = report["opened"]["p_value"], report["opened"]["largest"]
    hold(found > FALSE_ALARM, f"{sampler_name} on {backend}: samples follow `exact`; chi-square gives p = {found:.2g}")
    hold(largest <= report["largest"], f"{sampler_name} on {backend}: no sample exceeds `largest`")
    measured, predicted = report["measured"], report["predicted"]
    kept = all(measured[what] == predicted[what] for what in ("rounds", "messages", "bytes"))
    hold(kept, f"{sampler_name} on {backend}: rounds, messages and bytes are those that were counted")
    return True


def _check_price(name: str, scale: float) -> None:
    law = LAWS[name]
    exact = law.exact(scale, True)
    hold(exact.reach <= MOST_STEPS, f"the law at scale {scale:g} can be summed; its reach is {exact.reach}")
    for shift in sorted({1, max(1, round(scale / 10)), max(1, round(scale))}):
        moved = Sensitivity(l1=float(shift), l2=float(shift), linf=float(shift))
        need = Need(epsilon=1.0, delta=1e-5, sensitivity=moved, dimension=1, releases=1)
        price = law.spending(law.mechanism(scale, True, need))
        for delta in (1e-2, 1e-4, *((0.0,) if law.pure else ())):
            claimed = price.epsilon(delta)
            if not math.isfinite(claimed):
                continue
            lost = hockey_stick(exact, shift, claimed)
            hold(
                lost <= delta + 4 * _CDF * math.exp(claimed) + 1e-12,
                f"a shift of {shift} at scale {scale:g} costs epsilon {claimed:.4g} at delta {delta:g}, but the exact"
                f" law loses delta {lost:.4g} there",
            )


def hockey_stick(law: ExactLaw, shift: int, epsilon: float) -> float:
    """sum over x of max(0, P(x) - e^epsilon P(x - shift)), the larger of both directions, from the law's own
    probabilities: the delta that one coordinate needs at this epsilon."""
    x = np.arange(-law.reach - shift - 1, law.reach + shift + 1, dtype=np.int64)
    pmf: Reals = np.maximum(np.diff(np.asarray(law.cdf(x), dtype=np.float64)), 0.0)
    first, second = pmf[shift:], pmf[:-shift]
    factor = math.exp(epsilon)
    return float(max(np.maximum(first - factor * second, 0).sum(), np.maximum(second - factor * first, 0).sum()))
