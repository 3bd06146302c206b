"""The plan of a run: every public parameter that owners and parties must agree on, fixed before the first message.

Both sides compare the plan's digest when they connect; a process with other parameters is refused. Everything here is
public: sizes, dimension, noise scale. No value of a record enters, except that `bounds` says whether scaling bounds
were read from records.
"""

import hashlib
import json
import math
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpc.aggregation.grid import NARROWEST, Grid, check_range, check_width, choose_grid
from dpmpc.errors import UsageError
from dpmpc.privacy.ledger import Law, Mechanism
from dpmpc.runs.request import Options

if TYPE_CHECKING:
    from dpmpc.noise.samplers import Sampler

SCHEMA = 1
_SAMPLER_TV = 2.0**-60  # what the discrete samplers certify per coordinate at worst; the report uses the real one


@dataclass(frozen=True)
class Facts:
    """What is public about the data: shape, task, who holds how many records, where the scaling bounds came from."""

    name: str
    task: str
    dimension: int
    sizes: tuple[int, ...]
    bounds: str


@dataclass(frozen=True)
class Plan:
    """One run. Lengths that end in `_steps` are grid steps of the opened integer sum; `sensitivity` is of the
    aggregate."""

    schema: int
    run_id: str
    attempt: int  # 0, then one more for every resume; part of what tells messages of two attempts apart
    first_release: int
    data: str
    data_id: str
    task: str
    bounds: str
    dimension: int
    sizes: tuple[int, ...]
    parties: int
    threshold: int
    method: str
    loss: str
    G: float
    L: float
    lam: float
    weights: str
    releases: int
    step: float
    radius: float | None
    average: str
    solver_tolerance: float
    clip: float
    grid_bits: int
    epsilon: float
    delta: float
    calibration: str
    law: str
    sampler: str
    sensitivity: float
    sensitivity_parts: dict[str, float]
    sensitivity_steps: float
    sensitivity_l1_steps: int  # a bound on the L1 norm of an integer vector of that L2 norm
    noise_asked: float  # the noise scale that the budget asks for
    noise_steps: float  # the noise scale that the sampler reaches; 0 only in tests
    noise_tv: float  # total-variation distance of one coordinate from the exact law
    certificate: dict[str, float | str]
    hiding: float  # statistical distance that the masks of the openings of noise leave over the run; 0: perfect
    security_bits: float
    pool: bool

    @property
    def grid(self) -> Grid:
        return Grid(self.grid_bits)

    @property
    def owners(self) -> int:
        """m."""
        return len(self.sizes)

    @property
    def divisor(self) -> int:
        """What an opened sum is divided by, in the clear: m with equal weights, n = sum n_j with weights n_j/n."""
        return self.owners if self.weights == "equal" else sum(self.sizes)

    @property
    def session_id(self) -> bytes:
        """What every message and every PRSS stream of this attempt is bound to."""
        return f"{self.run_id}/{self.attempt}".encode()

    def mechanism(self) -> Mechanism:
        """What one release adds, for the ledger and for accounting. A run without noise (tests only) spends
        everything."""
        gaussian = self.law == "gaussian"
        laws: dict[tuple[bool, bool], Law] = {
            (True, True): "discrete-gaussian",
            (False, True): "discrete-laplace",
            (True, False): "gaussian",
            (False, False): "laplace",
        }
        return Mechanism(
            law=laws[gaussian, self.sampler == "discrete"],
            scale=self.noise_steps or 1e-300,
            sensitivity=self.sensitivity_steps if gaussian else float(self.sensitivity_l1_steps),
            dimension=self.dimension,
            tv=self.noise_tv,
            mpc_failure=2.0**-self.security_bits / self.releases if self.parties else 0.0,
        )

    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON text."""
        return hashlib.sha256(self.to_text().encode()).digest()

    def to_text(self) -> str:
        """Canonical JSON: sorted keys, no spaces, floats as Python's repr."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @staticmethod
    def from_text(text: str) -> "Plan":
        """The plan that `to_text` wrote. Errors: not a plan of this version."""
        try:
            value: dict[str, Any] = json.loads(text)
            if value["schema"] != SCHEMA:
                raise UsageError(
                    f"a plan must have schema {SCHEMA}; this one has {value['schema']}; use the same version of dpmpc "
                    "everywhere"
                )
            return Plan(**{**value, "sizes": tuple(value["sizes"])})
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"a plan must be what train wrote as plan.json; {error}; copy it again") from None

    @staticmethod
    def read(path: Path) -> "Plan":
        """The plan in a file. Errors: as `from_text`, and an unreadable file."""
        try:
            return Plan.from_text(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"a run has a plan.json; {path}: {error.strerror}; check the path") from None

    def write(self, path: Path) -> None:
        """Writes the plan whole or not at all."""
        partial = path.with_suffix(".tmp")
        partial.write_text(self.to_text(), encoding="utf-8")
        partial.replace(path)

    def resumed(self, first_release: int) -> "Plan":
        """The same run, carried on from `first_release` by a new attempt."""
        return replace(self, attempt=self.attempt + 1, first_release=first_release)


def plan_path(out: Path) -> Path:
    """Where a run directory keeps its plan."""
    return out / "plan.json"


def make_plan(options: Options, facts: Facts) -> Plan:
    """The plan for these options and this data.

    Errors: a budget that cannot be met, noise too wide for the grid, a sum that could overflow the field.
    """
    from dpmpc.learning.erm import LOGISTIC, ridge  # these import SciPy, which a party reading a plan does not need
    from dpmpc.noise.samplers import make_sampler
    from dpmpc.privacy.discrete import l1_steps_of
    from dpmpc.privacy.sensitivity import Sensitivity, gradient_sensitivity, output_sensitivity, rounding_bound

    loss = LOGISTIC if facts.task == "logistic" else ridge(options.residual_clip)
    m, d, n, T = len(facts.sizes), facts.dimension, sum(facts.sizes), options.releases
    divisor = m if options.weights == "equal" else n
    clip = loss.G
    if options.method == "output":
        clip = loss.G / options.regularisation  # an optimum satisfies lam theta = -mean gradient
        if options.radius is not None:
            clip = min(clip, options.radius)

    def sensitivity(rounding: float) -> Sensitivity:
        if options.method == "gradient":
            return gradient_sensitivity(G=loss.G, sizes=facts.sizes, weights=options.weights, rounding=rounding)
        return output_sensitivity(
            G=loss.G,
            lam=options.regularisation,
            sizes=facts.sizes,
            weights=options.weights,
            rounding=rounding,
            solver_gradient_norm=options.solver_tolerance,
        )

    unrounded = sensitivity(0.0).l2 * divisor
    if options.grid_bits is None:
        # The ratio on a grid so fine that rounding does not matter; then the grid, then the real scale on it.
        ratio = _noise_steps(options, d, T, 2.0**30) / 2.0**30
        grid = choose_grid(unrounded, ratio, d)
    else:
        grid = Grid(options.grid_bits)
    rounded = sensitivity(rounding_bound(d, grid.step, divisor))
    sensitivity_steps = rounded.steps(grid.step / divisor)
    asked = _noise_steps(options, d, T, sensitivity_steps)
    if asked < NARROWEST / 2 or rounded.parts["rounding"] > 0.5 * rounded.l2:
        raise UsageError(
            f"noise must be at least {NARROWEST / 2:g} grid steps wide and rounding at most half the sensitivity; "
            f"with --grid-bits {grid.bits} it is {asked:.4g} steps and {rounded.parts['rounding'] / rounded.l2:.0%}; "
            "choose a finer grid or leave --grid-bits out"
        )
    check_width(asked)
    sampler = make_sampler(options.sampler, options.law, asked)
    check_range(divisor * clip, grid, m, sampler.largest)
    tv = float(sampler.certificate["total_variation"])
    return Plan(
        schema=SCHEMA,
        run_id=options.run_id or secrets.token_hex(8),
        attempt=0,
        first_release=0,
        data=facts.name,
        data_id=data_digest(options.data_id or facts.name),
        task=facts.task,
        bounds=facts.bounds,
        dimension=d,
        sizes=facts.sizes,
        parties=options.parties if options.engine == "mpc" else 0,
        threshold=options.t if options.engine == "mpc" else 0,
        method=options.method,
        loss=loss.name,
        G=loss.G,
        L=loss.L,
        lam=options.regularisation,
        weights=options.weights,
        releases=T,
        step=options.step or 1 / (loss.L + options.regularisation),
        radius=options.radius,
        average=options.average,
        solver_tolerance=options.solver_tolerance,
        clip=clip,
        grid_bits=grid.bits,
        epsilon=options.epsilon,
        delta=options.delta or 0.0,
        calibration=options.calibration,
        law=options.law,
        sampler=options.sampler,
        sensitivity=rounded.l2,
        sensitivity_parts=rounded.parts,
        sensitivity_steps=sensitivity_steps,
        sensitivity_l1_steps=l1_steps_of(sensitivity_steps, d),
        noise_asked=asked,
        noise_steps=0.0 if options.noiseless else sampler.scale,
        noise_tv=tv,
        hiding=_hiding(options, sampler, T * d),
        certificate={
            key: value for key, value in sampler.certificate.items() if isinstance(value, str) or math.isfinite(value)
        },
        security_bits=options.security_bits,
        pool=options.method == "gradient" if options.pool is None else options.pool,
    )


def check_promise(plan: Plan) -> None:
    """Returns if a plan that was made elsewhere adds the noise that its own public parameters ask for.

    Errors: less noise, a smaller sensitivity or another clipping than `make_plan` gives; what `make_plan` refuses.
    """
    options = Options(
        task="logistic" if plan.task == "logistic" else "ridge",
        dimension=plan.dimension,
        owner_sizes=plan.sizes,
        method=plan.method,  # type: ignore[arg-type]
        lam=plan.lam,
        residual_clip=plan.G,
        iterations=plan.releases,
        radius=plan.radius,
        weights=plan.weights,  # type: ignore[arg-type]
        solver_tolerance=plan.solver_tolerance,
        epsilon=plan.epsilon,
        delta=plan.delta or None,
        calibration=plan.calibration,  # type: ignore[arg-type]
        noise=plan.law,  # type: ignore[arg-type]
        sampler=plan.sampler,  # type: ignore[arg-type]
        grid_bits=plan.grid_bits,
        security_bits=plan.security_bits,
        engine="mpc" if plan.parties else "clear",
        parties=plan.parties or 1,
        threshold=plan.threshold,
    )
    honest = make_plan(options, Facts(plan.data, plan.task, plan.dimension, plan.sizes, plan.bounds))
    for name in ("noise_asked", "noise_steps", "noise_tv", "sensitivity", "sensitivity_steps", "sensitivity_l1_steps"):
        if getattr(plan, name) < getattr(honest, name) * (1 - 1e-9):
            raise UsageError(
                f"a plan's noise must keep the epsilon and delta it states; its {name} is {getattr(plan, name):.6g}, "
                f"needed are {getattr(honest, name):.6g}; plan again"
            )
    if (plan.loss, plan.G) != (honest.loss, honest.G) or plan.clip > honest.clip * (1 + 1e-9):
        raise UsageError(
            f"a plan must clip as its loss asks; it has {plan.loss}, G {plan.G:g}, clip {plan.clip:g}, needed are "
            f"{honest.loss}, G {honest.G:g}, clip {honest.clip:g}; plan again"
        )


def _hiding(options: Options, sampler: "Sampler", coordinates: int) -> float:
    """What the masks of the sampler's openings fail to hide, over the run. Errors: more than --security-bits allows."""
    from dpmpc.noise.fixed_point import FixedPointSampler

    if options.engine == "clear" or not isinstance(sampler, FixedPointSampler):
        return 0.0
    distance = sampler.hiding(options.parties, options.t) * coordinates
    if distance > 2.0**-options.security_bits:
        raise UsageError(
            f"the openings of {coordinates} coordinates by {options.sampler} must be {options.security_bits:g} bits "
            f"secure; they are {-math.log2(distance):.1f}; lower --security-bits, or use --sampler discrete"
        )
    return distance


def data_digest(name: str) -> str:
    """The name under which the ledger adds up what was spent on the same data: a digest of a text that the owners agree
    on."""
    return hashlib.sha256(b"dpmpc data\0" + name.encode()).hexdigest()


def _noise_steps(options: Options, dimension: int, releases: int, sensitivity_steps: float) -> float:
    """The noise scale (sigma or b), in the unit of `sensitivity_steps`, for the budget asked for.

    Guarantees: with `tight` and `zcdp` all releases together keep (epsilon, delta) in total, the failures of sampler
    and MPC included; `paper` is the printed formula, whose true guarantee the report states.
    """
    from dpmpc.privacy.discrete import discrete_gaussian_scale, discrete_laplace_scale, l1_steps_of
    from dpmpc.privacy.gaussian import gaussian_scale
    from dpmpc.privacy.guarantee import failure_factor, security_failure

    epsilon, delta = options.epsilon, options.delta or 0.0
    if options.law == "laplace":
        if options.calibration == "paper":  # Theorem 3.1 puts the L2 sensitivity where the L1 sensitivity belongs
            return discrete_laplace_scale(epsilon, sensitivity_steps, releases)
        return discrete_laplace_scale(epsilon, l1_steps_of(sensitivity_steps, dimension), releases)
    if options.calibration == "paper":
        return gaussian_scale(epsilon, delta, sensitivity_steps, releases, "paper")
    bits = options.security_bits if options.engine == "mpc" else None
    if options.calibration == "tight":
        return discrete_gaussian_scale(
            epsilon, delta, sensitivity_steps, releases, dimension, tv_per_coordinate=_SAMPLER_TV, security_bits=bits
        )
    failures = failure_factor(epsilon) * (releases * dimension * _SAMPLER_TV + security_failure(bits))
    if failures >= delta:
        raise UsageError(
            f"the failures of sampler and MPC alone add {failures:.3g} to delta; allowed {delta:g}; raise --delta or "
            "--security-bits"
        )
    return gaussian_scale(epsilon, delta - failures, sensitivity_steps, releases, "zcdp")
