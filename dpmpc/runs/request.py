"""What a user asks of a training run: one frozen value, checked when it is made. Touches no network and no file."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from dpmpc.aggregation.asked import Role
from dpmpc.data.memory import parse_memory
from dpmpc.errors import UsageError
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Average, Method, Spread, Task
from dpmpc.mpc.backend import BACKENDS
from dpmpc.mpc.channels import MOST_RELEASES
from dpmpc.mpc.security import MODES, backend_for
from dpmpc.privacy.checks import check_delta, check_epsilon, check_positive
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.law import LAWS, PURE_LAW, Law, law_of_sampler
from dpmpc.privacy.sensitivity import Weights

Engine = Literal["mpc", "clear"]
Preprocessing = Literal["survey", "records"]
_MAY_BE_LEFT_OUT = ("--method", "--average", "--weights", "--preprocessing")
_ITERATIONS = 50


@dataclass(frozen=True)
class Request:
    """A training run as asked for. None means: chosen by the rule that `train --help` states; with neither `iterations`
    nor `step`, method, iterations, step, average and weights are the adviser's where they are left out (`advised`).

    `scale` fixes the noise scale of a coordinate of the mean (0: none), and the promise is what follows.
    """

    data: str | None = None
    csv: str | None = None
    records: str | None = None  # a file, folder or pattern
    database: str | None = None  # a URL without a password
    sql: str | None = None
    schema_file: str | None = None
    memory: str | None = None
    precision: Literal["double", "single"] = "double"
    target: str | None = None
    owners_column: str | None = None
    data_dir: str | None = None
    data_id: str | None = None
    bounds_file: str | None = None
    preprocessing: Preprocessing | None = None
    missing: Literal["fill", "drop"] = "fill"
    drop: tuple[str, ...] = ()
    positive: str | None = None
    task: Task | None = None
    test_fraction: float | None = None
    max_rows: int | None = None
    intercept: bool | None = None
    official_test: bool = False
    dimension: int | None = None
    seed: int = 1
    owners: int | None = None
    owner_sizes: tuple[int, ...] | None = None
    skew: float | None = None
    method: str | None = None
    lam: float | None = None
    residual_clip: float = 1.0
    iterations: int | None = None
    step: float | None = None
    radius: float | None = None
    average: Average | None = None
    weights: Weights | None = None
    neighbours: Literal["record", "owner"] = "record"
    solver_tolerance: float = 1e-8
    spread: Spread = "theta"
    epsilon: float = 1.0
    delta: float | None = None
    calibration: str = "tight"
    law: str | None = None
    sampler: str | None = None
    scale: float | None = None
    grid_bits: int | None = None
    security_bits: float = 40.0
    budget: str | None = None
    ledgers: str | None = None
    engine: Engine = "mpc"
    backend: str | None = None
    link: str | None = None  # between two servers
    security: str = "semi-honest"
    parties: int = 3
    threshold: int | None = None
    role: Role = "apart"
    pool: bool | None = None
    min_owners: int | None = None
    release_wait: float = 10.0
    check_owners: str | None = None
    evaluate: bool = True
    run_id: str | None = None
    planned: bool = False  # a plan that was made before says what the records mean

    def __post_init__(self) -> None:
        _check_records(self)
        _check_choices(self)
        _check_numbers(self)
        _check_parties(self)

    @property
    def has_records(self) -> bool:
        """Whether records are named; else only their public shape is."""
        return self.data is not None or self.source is not None

    @property
    def source(self) -> str | None:
        """Where records that users keep are: a path, a pattern or a URL."""
        return self.csv or self.records or self.database

    @property
    def computed_by(self) -> str:
        """The backend's name: as given, else the one that computes less, or that checks its parties, or suits the
        link."""
        security = self.security if self.security != "semi-honest" else None
        law, sampler = self.noise_law.name, self.noise_sampler
        return backend_for(security, self.backend, law, sampler, self.parties, self.threshold, self.link)

    @property
    def t(self) -> int:
        """The threshold: as given, else the largest that the backend allows."""
        return BACKENDS[self.computed_by].threshold(self.parties) if self.threshold is None else self.threshold

    @property
    def learning_method(self) -> Method:
        """The method's entry; the default where none is named."""
        return METHODS[self.method or DEFAULT_METHOD]

    @property
    def advised(self) -> bool:
        """Whether the adviser fills in what is left out: it plans descents with Gaussian noise at the exact scale."""
        return (
            self.iterations is None
            and self.step is None
            and self.scale is None
            and bool(self.delta)
            and self.method in (None, DEFAULT_METHOD)
            and self.noise_law.by_mu
            and self.calibration == "tight"
        )

    @property
    def noise_law(self) -> Law:
        """The law of the noise: as given, else the only law that has the sampler, else the method's own."""
        alone = None if self.sampler is None else law_of_sampler(self.sampler)
        return LAWS[self.law or alone or self.learning_method.law_for(self.delta)]

    @property
    def noise_sampler(self) -> str:
        """As given, else the law's first."""
        return self.sampler or next(iter(self.noise_law.samplers))

    @property
    def regularisation(self) -> float:
        """lam: as given, else the method's own."""
        return self.learning_method.lam if self.lam is None else self.lam

    @property
    def releases(self) -> int:
        """T: the number of releases planned."""
        return (self.iterations or _ITERATIONS) if self.learning_method.repeats else 1

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Request":
        """The request that `to_json` wrote."""
        fields = dict(value)
        fields["drop"] = tuple(fields["drop"])
        fields["owner_sizes"] = None if fields["owner_sizes"] is None else tuple(fields["owner_sizes"])
        return Request(**fields)


def _check_records(r: Request) -> None:
    named = {"--data": r.data, "--csv": r.csv, "--records": r.records, "--database": r.database}
    given = [option for option, value in named.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"training needs one source of records; got {len(given)}; leave out {' or '.join(given)}")
    if not (r.has_records or (r.schema_file and r.owner_sizes)):
        raise UsageError(
            "training needs one source of records; give --data NAME, --csv FILE, --records SOURCE or --database URL"
            " (or, to plan without records, --schema FILE and --owner-sizes N1,N2,...)"
        )
    if (r.database is None) != (r.sql is None):
        raise UsageError("--database and --sql go together: where the records are, and which; one is missing")
    if r.memory is not None:
        parse_memory(r.memory)
    if r.source is not None and r.target is None and r.schema_file is None and not r.planned:
        what = "a CSV file needs" if r.csv is not None else "records need"
        raise UsageError(f"{what} the name of the column to predict; none was given; add --target COLUMN")
    described = r.target or r.drop or r.positive or r.bounds_file
    if r.source is None and (described or r.owners_column or (r.schema_file and r.data)):
        raise UsageError(
            "--target, --owners-column, --drop, --positive, --bounds and --schema describe a source of records; "
            "there is none; add --csv FILE, --records SOURCE or --database URL"
        )
    if r.planned and (described or r.schema_file):
        raise UsageError(
            "the plan's schema says all about the columns; --target, --drop, --positive, --bounds or --schema was "
            "given beside --plan; leave it out"
        )
    if r.schema_file is not None and described:
        raise UsageError(
            "--schema says all about the columns; --target, --drop, --positive or --bounds was given too; leave it out"
        )
    if r.preprocessing == "survey":
        if r.source is None or r.schema_file is not None or r.bounds_file is not None:
            raise UsageError(
                "--preprocessing survey is for a source of records without --schema and --bounds; leave one of them out"
            )
        if r.task == "softmax":
            raise UsageError(
                "a survey is for labels of two values and for quantities; --task softmax has classes; give --bounds, "
                "or use --preprocessing records"
            )
        if not r.delta or r.missing == "drop" or r.scale is not None or r.calibration != "tight":
            raise UsageError(
                "a survey needs a delta, the tight calibration and all records; add --delta, and leave --calibration"
                " and --missing drop out, or use --preprocessing records"
            )
    if r.owners_column is not None and r.owners is not None:
        raise UsageError("--owners-column already says who owns a record; --owners was given too; leave one out")


def _check_choices(r: Request) -> None:
    law = r.noise_law  # refuses an unknown one
    for name, value, allowed in (
        ("--method", r.method, METHODS.names()),
        ("--engine", r.engine, get_args(Engine)),
        ("--role", r.role, get_args(Role)),
        ("--security", r.security, MODES),
        ("--check-owners", r.check_owners, (None, "zero", "stop")),
        ("--backend", r.backend, (None, *BACKENDS.names())),
        ("--average", r.average, get_args(Average)),
        ("--weights", r.weights, get_args(Weights)),
        ("--neighbours", r.neighbours, ("record", "owner")),
        ("--sensitivity", r.spread, get_args(Spread)),
        ("--preprocessing", r.preprocessing, get_args(Preprocessing)),
        ("--calibration", r.calibration, law.calibrations),
    ):
        if value not in allowed and not (value is None and name in _MAY_BE_LEFT_OUT):
            known = ", ".join(filter(None, allowed))
            raise UsageError(f"{name} must be one of {known}; got {value!r}; choose one of them")
    if r.noise_sampler not in law.samplers:
        raise UsageError(
            f"--sampler {r.sampler} does not make {law.name} noise; use {' or '.join(law.samplers)}, or change --law"
        )


def _check_numbers(r: Request) -> None:
    check_epsilon(r.epsilon)
    law = r.noise_law
    if r.delta is not None and not (r.delta == 0 and law.pure):
        check_delta(r.delta)
    if not law.pure and r.delta is None:
        raise UsageError(
            f"{law.name.capitalize()} noise needs a delta in (0, 1); none was given; add --delta, for example 1e-5, or "
            f"--law {PURE_LAW}"
        )
    for name in ("lam", "residual_clip", "solver_tolerance", "step", "radius"):
        number = getattr(r, name)
        if number is not None:
            check_positive("--" + name.replace("_", "-"), number)
    if r.iterations is not None and not 1 <= r.iterations <= MOST_RELEASES:
        raise UsageError(f"--iterations must lie in 1..{MOST_RELEASES}; got {r.iterations}; give a number between")
    if not r.learning_method.repeats and r.iterations not in (None, 1):
        raise UsageError(
            f"--method {r.method} makes one release; got --iterations {r.iterations}; leave it out, or use --method "
            f"{DEFAULT_METHOD}"
        )
    if r.budget is not None:
        if r.engine == "clear":
            raise UsageError(
                "--budget is held against the parties' ledgers; --engine clear has none; leave one of them out"
            )
        parse_budget(r.budget)
        if r.data is None and r.data_id is None:
            raise UsageError(
                "--budget is kept by the name of the records, not of their file; none was given; add --data-id NAME, "
                "the same for every run on them"
            )
    if not 1 <= r.security_bits <= 128:
        raise UsageError(f"--security-bits must lie in 1..128; got {r.security_bits:g}; 40 is usual")


def _check_parties(r: Request) -> None:
    if r.engine == "mpc":
        if r.parties < 1:
            raise UsageError(f"the number of parties must be at least 1; got {r.parties}; use -M 3")
        BACKENDS[r.computed_by].check(r.parties, r.t)
    elif r.link is not None:
        raise UsageError("--link is the line between two servers; --engine clear has none; leave one of them out")
    if r.role == "both":
        if r.engine != "mpc":
            raise UsageError("--role both makes every owner a party; --engine clear has none; leave one of them out")
        owners = r.owners or (r.owner_sizes and len(r.owner_sizes)) or r.parties
        if owners != r.parties:
            raise UsageError(
                f"with --role both every owner is a party, one process a site; got {owners} owners and {r.parties} "
                "parties; give as many of both with -M, or leave --role out"
            )
    if r.run_id is not None and not (
        r.run_id and r.run_id.isascii() and r.run_id.isprintable() and len(r.run_id) <= 64
    ):
        raise UsageError(
            "--run-id must be 1 to 64 printable ASCII characters; give a short name that no earlier run had"
        )
