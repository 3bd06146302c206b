"""What a user asks of a training run: one frozen value, checked when it is made. Touches no network and no file."""

from dataclasses import replace
from typing import Any

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.of_vectors import chosen
from dpmpc.aggregation.plan.settings import Accounting, Attendance, Choosing, Computing, Ledgers, Noise, PromiseSettings
from dpmpc.codec import of_json, to_json
from dpmpc.errors import UsageError
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.lazy import dataclass
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Method
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.planning.settings import LearningSettings, Naming, OwnerSettings, RecordSettings
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.privacy.law import LAWS, Law, law_of_sampler
from dpmpc.records.memory import parse_memory
from dpmpc.records.ownership import KeptOwners
from dpmpc.records.scikit import scikit_learn

_ITERATIONS = 50


@dataclass(frozen=True, kw_only=True)
class Request(
    RecordSettings,
    OwnerSettings,
    LearningSettings,
    PromiseSettings,
    Noise,
    Choosing,
    Computing,
    Attendance,
    Naming,
    Ledgers,
    Accounting,
):
    """A training run as asked for. What is not said is chosen by the rule that the setting states (docs/settings.md).

    `planned`: a plan that was made before says all but whose records are here, and where they are. `without`: columns
    that were left out, as asked, before a survey made the schema.
    """

    planned: bool = False
    spelling: Spelling = PLAIN  # of the records here: their owner's own business
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_records(self)
        if not self.planned:
            _check_choices(self)
            _check_parties(self)

    @property
    def has_records(self) -> bool:
        """Whether records are named; else only their public shape is."""
        return self.data is not None or self.source is not None

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that are no features because somebody said so; ids are none."""
        known = [name for name in dict.fromkeys((self.ids, self.person)) if name and name not in self.drop]
        return (*self.drop, *known)

    def books(self, budget: Budget | None = None) -> Books:
        """Where the releases of the run count, within a budget."""
        return Books.kept(self.account, budget, callers=self.source is not None)

    @property
    def among_others(self) -> "Request":
        """The same of an owner that takes part among others."""
        return replace(self, spelling=self.spelling.among_others)

    @property
    def kept(self) -> KeptOwners | None:
        """What is kept of each person's records, where the promise is of persons."""
        if self.person is None:
            return None
        return KeptOwners(self.person, self.person_rows, self.owners_column, self.person_owners or None)

    @property
    def source(self) -> str | None:
        """Where records that users keep are: a path, a pattern or a URL."""
        return self.csv or self.records or self.database

    def require_owners(self) -> None:
        """Errors: nothing says who holds which of the records that are all here."""
        if self.owners is None and self.owner_sizes is None and self.owners_column is None:
            raise UsageError(
                "the owners must be known; add <<owners=M>>, <<owner_sizes=N1,N2,...>>, or <<owners_column>> for a CSV "
                "file",
                code="missing",
            )

    @property
    def plan_settings(self) -> dict[str, Any]:
        """The settings of the plan, flat, with what the rules choose. Errors: some do not go together."""
        pool = self.learning_method.repeats if self.pool is None else self.pool
        return chosen(self, self.noise_law.name) | {"pool": pool}

    @property
    def learning_method(self) -> Method:
        """The method's entry; the default where none is named."""
        return METHODS[self.method or DEFAULT_METHOD]

    @property
    def advised(self) -> bool:
        """Whether the adviser fills in what is left out: it plans descents with Gaussian noise at the exact scale."""
        return (
            self.scale is None
            and bool(self.delta)
            and self.method in (None, DEFAULT_METHOD)
            and self.noise_law.by_mu
            and self.calibration == "tight"
        )

    @property
    def noise_law(self) -> Law:
        """The law of the noise: as given, else the only law that has the sampler, else the method's own."""
        alone = law_of_sampler(self.sampler) if self.sampler else None
        return LAWS[self.law or alone or self.learning_method.law_for(self.delta or None)]

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
        return to_json(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Request":
        """The request that `to_json` wrote."""
        return of_json(Request, value)


def _check_records(r: Request) -> None:
    named = {"--data": r.data, "--csv": r.csv, "--records": r.records, "--database": r.database}
    given = [option for option, value in named.items() if value is not None]
    if len(given) > 1:
        raise UsageError(
            f"training needs one source of records; got {len(given)}; leave out {' or '.join(given)}", code="missing"
        )
    if not (r.has_records or (r.schema and r.owner_sizes)):
        raise UsageError(
            "training needs one source of records; give <<data=NAME>>, <<csv=FILE>>, <<records=SOURCE>> or "
            "<<database=URL>>"
            " (or, to plan without records, <<schema=FILE>> and <<owner_sizes=N1,N2,...>>)",
            code="missing",
        )
    if (r.database is None) != (r.sql is None):
        raise UsageError(
            "<<database>> and <<sql>> go together: where the records are, and which; one is missing", code="missing"
        )
    if r.ids is not None and (r.source is None or r.ids in (r.target, r.owners_column)):
        raise UsageError(
            f"<<ids>> is a column of a source of records, beside target and owners; got {r.ids!r}; leave it out, or "
            "name the column of the records' ids",
            code="together",
        )
    if r.memory is not None:
        parse_memory(r.memory)
    if r.word_list is not None and not r.named:
        raise UsageError(
            "<<word_list>> has words that are tried as names of columns; no column is named; add <<named>>, or leave "
            "it out",
            code="together",
        )
    _check_executor(r)
    if r.person is not None and (r.missing == "drop" or r.max_rows is not None or r.person == r.target):
        raise UsageError(
            "persons have places that do not depend on their records, and their column is no target; <<missing=drop>>, "
            "<<max_rows>> or such a target was given; leave it out",
            code="together",
        )
    if r.source is not None and r.target is None and r.schema is None and not r.planned:
        what = "a CSV file needs" if r.csv is not None else "records need"
        raise UsageError(
            f"{what} the name of the column to predict; none was given; add <<target=COLUMN>>", code="missing"
        )
    described = r.target or r.drop or r.positive or r.classes or r.bounds
    if r.classes and r.bounds is not None:
        raise UsageError("bounds state the target's classes; <<classes>> was given too; leave it out", code="together")
    if r.source is None and (described or r.owners_column or (r.schema and r.data)):
        raise UsageError(
            "<<target>>, <<owners_column>>, <<drop>>, <<positive>>, <<classes>>, <<bounds>> and <<schema>> describe a "
            "source of records; there is none; add <<csv=FILE>>, <<records=SOURCE>> or <<database=URL>>",
            code="together",
        )
    if r.planned and (described or r.schema):
        raise UsageError(
            "the plan's schema says all about the columns; <<target>>, <<drop>>, <<positive>>, <<classes>>, "
            "<<bounds>> or <<schema>> was given beside <<plan_file>>; leave it out",
            code="together",
        )
    if r.schema is not None and described:
        raise UsageError(
            "<<schema>> says all about the columns; <<target>>, <<drop>>, <<positive>>, <<classes>> or "
            "<<bounds>> was given too; leave it out",
            code="together",
        )
    if r.preprocessing == "survey":
        if r.source is None and r.schema is None:
            raise UsageError(
                "<<preprocessing=survey>> is for a source of records, or for the <<schema>> of such; there is neither; "
                "add <<csv=FILE>> or <<records=SOURCE>>",
                code="together",
            )
        if not r.delta or r.missing == "drop" or r.scale is not None or r.calibration != "tight":
            raise UsageError(
                "a survey needs a delta, the tight calibration and all records; add <<delta>>, and leave "
                "<<calibration>>"
                " and <<missing=drop>> out, or use <<preprocessing=records>>",
                code="missing",
            )
    if r.owners_column is not None and r.owners is not None:
        raise UsageError(
            "<<owners_column>> already says who owns a record; <<owners>> was given too; leave one out", code="together"
        )


def _check_executor(r: Request) -> None:
    if (r.workers is not None and r.executor is None) or (r.executor is not None and not r.planned):
        raise UsageError(
            "<<workers>> are an <<executor>>'s, and an executor's workers read the records of one owner, by a plan "
            "that was made before; here no owner is alone, or there is no executor; leave both out, or start the owner "
            "from its kit or with <<plan_file>>",
            code="together",
        )


def _check_choices(r: Request) -> None:
    if r.baseline:
        scikit_learn("<<baseline>> needs")  # before anything is spent
    law = r.noise_law  # refuses an unknown one
    if r.calibration not in law.calibrations:
        raise UsageError(
            f"<<calibration>> must be one of {', '.join(law.calibrations)} for {law.name} noise; got "
            f"{r.calibration!r}; choose one of them",
            code="choice",
        )
    if r.neighbours == "stated":
        raise UsageError(
            "<<neighbours>> of learning are 'record' or 'owner'; got 'stated'; choose one of them", code="together"
        )
    if r.noise_sampler not in law.samplers:
        raise UsageError(
            f"<<sampler={r.sampler}>> does not make {law.name} noise; use {' or '.join(law.samplers)}, or change "
            f"<<law>>",
            code="together",
        )
    law.check_delta(r.delta)
    if not r.learning_method.repeats and r.iterations not in (None, 1):
        raise UsageError(
            f"<<method={r.method}>> makes one release; got <<iterations={r.iterations}>>; leave it out, or use "
            f"<<method>> "
            f"{DEFAULT_METHOD}",
            code="together",
        )
    if r.budget is not None:
        parse_budget(r.budget)
        if r.data is None and r.data_id is None:
            raise UsageError(
                "<<budget>> is kept by the name of the records, not of their file; none was given; add "
                "<<data_id=NAME>>, "
                "the same for every run on them",
                code="missing",
            )


def _check_parties(r: Request) -> None:
    if r.engine == "mpc":
        if r.parties < 1:
            raise UsageError(
                f"the number of parties must be at least 1; got {r.parties}; use <<parties=3>>", code="range"
            )
        made = r.plan_settings
        BACKENDS[made["backend"]].check(r.parties, made["threshold"])
    else:
        _ = r.plan_settings
    if r.role == "both":
        if r.engine != "mpc":
            raise UsageError(
                "<<role=both>> makes every owner a party; <<engine=clear>> has none; leave one of them out",
                code="together",
            )
        owners = r.owners or (r.owner_sizes and len(r.owner_sizes)) or r.parties
        if owners != r.parties:
            raise UsageError(
                f"with <<role=both>> every owner is a party, one process a site; got {owners} owners and {r.parties} "
                "parties; give as many of both with <<parties>>, or leave <<role>> out",
                code="together",
            )
    if r.run_id is not None and not (
        r.run_id and r.run_id.isascii() and r.run_id.isprintable() and len(r.run_id) <= 64
    ):
        raise UsageError(
            "<<run_id>> must be 1 to 64 printable ASCII characters; give a short name that no earlier run had",
            code="range",
        )
