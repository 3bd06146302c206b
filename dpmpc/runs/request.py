"""What a user asks of a training run: one frozen value, checked when it is made. Touches no network and no file."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_delta, check_epsilon

Method = Literal["output", "gradient"]
Law = Literal["gaussian", "laplace"]
SamplerName = Literal["discrete", "box-muller", "log-laplace"]
Engine = Literal["mpc", "clear"]
Average = Literal["none", "tail", "all"]
SAMPLERS: dict[Law, tuple[SamplerName, ...]] = {
    "gaussian": ("discrete", "box-muller"),
    "laplace": ("discrete", "log-laplace"),
}
_MOST_RELEASES = (1 << 24) - 1000  # release r opens on channel 1000 + r; noise has those from 2^24 on


@dataclass(frozen=True)
class Options:
    """A training run as asked for. None means: chosen by the rule that `train --help` states.

    `noiseless` forces the noise scale to 0. It is for tests, which compare MPC with the clear engine; no command sets
    it.
    """

    data: str | None = None
    csv: str | None = None
    target: str | None = None
    owners_column: str | None = None
    data_dir: str | None = None
    data_id: str | None = None
    bounds_file: str | None = None
    missing: Literal["fill", "drop"] = "fill"
    drop: tuple[str, ...] = ()
    positive: str | None = None
    task: Literal["logistic", "ridge"] | None = None
    test_fraction: float | None = None
    max_rows: int | None = None
    intercept: bool | None = None
    official_test: bool = False
    dimension: int | None = None
    seed: int = 1
    owners: int | None = None
    owner_sizes: tuple[int, ...] | None = None
    skew: float | None = None
    method: Method = "gradient"
    lam: float | None = None
    residual_clip: float = 1.0
    iterations: int | None = None
    step: float | None = None
    radius: float | None = None
    average: Average = "tail"
    weights: Literal["equal", "size"] = "equal"
    solver_tolerance: float = 1e-8
    epsilon: float = 1.0
    delta: float | None = None
    calibration: Literal["tight", "zcdp", "paper"] = "tight"
    noise: Law | None = None
    sampler: SamplerName = "discrete"
    grid_bits: int | None = None
    security_bits: float = 40.0
    budget: str | None = None
    ledgers: str | None = None
    engine: Engine = "mpc"
    parties: int = 3
    threshold: int | None = None
    pool: bool | None = None
    evaluate: bool = True
    run_id: str | None = None
    noiseless: bool = False

    def __post_init__(self) -> None:
        if self.data is not None and self.csv is not None:
            raise UsageError("training needs one source of records; got two; leave out --data or --csv")
        if not (self.has_records or (self.dimension and self.owner_sizes and self.task)):
            raise UsageError(
                "training needs one source of records; give either --data NAME or --csv FILE (or, to plan without "
                "records, --dimension, --owner-sizes and --task)"
            )
        if self.csv is not None and self.target is None:
            raise UsageError("a CSV file needs the name of the column to predict; none was given; add --target COLUMN")
        if self.csv is None and (self.target or self.owners_column or self.drop or self.positive or self.bounds_file):
            raise UsageError(
                "--target, --owners-column, --drop, --positive and --bounds describe a CSV file; there is none; add "
                "--csv FILE"
            )
        if self.owners_column is not None and self.owners is not None:
            raise UsageError("--owners-column already says who owns a record; --owners was given too; leave one out")
        for name, value, allowed in (
            ("--method", self.method, get_args(Method)),
            ("--engine", self.engine, get_args(Engine)),
            ("--sampler", self.sampler, get_args(SamplerName)),
            ("--average", self.average, get_args(Average)),
            ("--weights", self.weights, ("equal", "size")),
            ("--calibration", self.calibration, ("tight", "zcdp", "paper")),
            ("--noise", self.law, get_args(Law)),
        ):
            if value not in allowed:
                raise UsageError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
        check_epsilon(self.epsilon)
        if self.delta is not None and not (self.delta == 0 and self.law == "laplace"):
            check_delta(self.delta)
        if self.law == "gaussian" and self.delta is None:
            raise UsageError(
                "Gaussian noise needs a delta in (0, 1); none was given; add --delta, for example 1e-5, or --noise "
                "laplace"
            )
        if self.sampler not in SAMPLERS[self.law]:
            raise UsageError(
                f"--sampler {self.sampler} does not make {self.law} noise; use {' or '.join(SAMPLERS[self.law])}, or "
                "change --noise"
            )
        for name, number in (
            ("--lam", self.lam),
            ("--residual-clip", self.residual_clip),
            ("--solver-tolerance", self.solver_tolerance),
            ("--step", self.step),
            ("--radius", self.radius),
        ):
            if number is not None and not (math.isfinite(number) and number > 0):
                raise UsageError(f"{name} must be positive and finite; got {number:g}; give a value above 0")
        if self.iterations is not None and not 1 <= self.iterations < _MOST_RELEASES:
            raise UsageError(f"--iterations must lie in 1..{_MOST_RELEASES - 1}; got {self.iterations}")
        if self.method == "output" and self.iterations not in (None, 1):
            raise UsageError(
                f"--method output makes one release; got --iterations {self.iterations}; leave it out, or use "
                "--method gradient"
            )
        if self.budget is not None:
            if self.engine == "clear":
                raise UsageError(
                    "--budget is held against the parties' ledgers; --engine clear has none; leave one of them out"
                )
            from dpmpc.privacy.composition import parse_budget  # imports SciPy, which a party does not need

            parse_budget(self.budget)
        if not 1 <= self.security_bits <= 128:
            raise UsageError(f"--security-bits must lie in 1..128; got {self.security_bits:g}; 40 is usual")
        if self.engine == "mpc":
            if self.parties < 1:
                raise UsageError(f"the number of parties must be at least 1; got {self.parties}; use -M 3")
            if not 0 <= 2 * self.t < self.parties:
                raise UsageError(
                    f"the threshold t must satisfy 0 <= 2t < n; got t = {self.t}, n = {self.parties}; mend -T or -M"
                )
        if self.run_id is not None and not (
            self.run_id and self.run_id.isascii() and self.run_id.isprintable() and len(self.run_id) <= 64
        ):
            raise UsageError(
                "--run-id must be 1 to 64 printable ASCII characters; give a short name that no earlier run had"
            )

    @property
    def has_records(self) -> bool:
        """Whether records are named; else only their public shape is."""
        return self.data is not None or self.csv is not None

    @property
    def t(self) -> int:
        """The threshold: as given, else the largest t < n/2."""
        return (self.parties - 1) // 2 if self.threshold is None else self.threshold

    @property
    def law(self) -> Law:
        """The law of the noise: as given, else Gaussian for gradients and Laplace for output (Gaussian with
        box-muller)."""
        if self.noise is not None:
            return self.noise
        if self.method == "gradient" or self.sampler == "box-muller":
            return "laplace" if self.sampler == "log-laplace" else "gaussian"
        return "laplace"

    @property
    def regularisation(self) -> float:
        """lam: as given, else 0.001 for gradients and 0.01 for output, whose sensitivity is inverse to it."""
        return self.lam if self.lam is not None else 0.01 if self.method == "output" else 0.001

    @property
    def releases(self) -> int:
        """T: the number of releases planned."""
        return 1 if self.method == "output" else self.iterations or 50

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Options":
        """The options that `to_json` wrote."""
        fields = dict(value)
        fields["drop"] = tuple(fields["drop"])
        fields["owner_sizes"] = None if fields["owner_sizes"] is None else tuple(fields["owner_sizes"])
        return Options(**fields)
