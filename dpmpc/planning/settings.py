"""What a user may say of a training run beside its plan: records, owners, learning, names."""

from typing import ClassVar, Literal

from dpmpc.lazy import dataclass
from dpmpc.learning.method import DEFAULT_METHOD, METHODS
from dpmpc.learning.settings import Average, Descent
from dpmpc.learning.task import TASKS
from dpmpc.mpc.transport.channels import MOST_RELEASES
from dpmpc.privacy.checks import check_positive
from dpmpc.privacy.sensitivity import Weights
from dpmpc.records.schema import Basis
from dpmpc.settings import Settings, setting, within

Preprocessing = Literal["survey", "records"]
Figures = Literal["inside", "plain", "both"]


@dataclass(frozen=True, kw_only=True)
class RecordSettings(Settings):
    """Which records, how they are read, and who owns them."""

    SECTION: ClassVar[str] = "records"

    data: str | None = setting(
        None,
        "A data set: breast-cancer, diabetes, iris, wine, digits, synthetic (embedded); adult, kddcup99, bank, "
        "breast-cancer-wisconsin (from the data folder).",
        metavar="NAME",
    )
    data_dir: str | None = setting(
        None, "Folder with the files of a named data set.", metavar="PATH", rule="$DPMPC_DATA"
    )
    csv: str | None = setting(
        None, "Records in a CSV file with a header; text columns become one-hot features.", metavar="PATH"
    )
    records: str | None = setting(
        None,
        "Records in a file, a folder or a pattern of files: CSV, TSV, Parquet, Arrow or Feather, JSON lines; text also "
        "as .gz or .zst.",
        metavar="SOURCE",
    )
    database: str | None = setting(
        None,
        "With a query: records in sqlite:///FILE or postgresql://HOST/DATABASE. Login by PGUSER, PGPASSWORD or a "
        "password file, never in the URL.",
        metavar="URL",
    )
    sql: str | None = setting(None, "With a database: one SELECT; its rows are the records.", metavar="QUERY")
    schema: str | None = setting(
        None,
        "Public schema of the records, JSON or TOML, as `dpmpc describe` drafts it. Says what target, bounds, "
        "positive, drop and missing would.",
        metavar="PATH",
    )
    memory: str | None = setting(
        None,
        "What the owners' process may use, such as 2GB; features that need more lie in the run's folder.",
        metavar="SIZE",
        rule="half of the machine's",
    )
    precision: Literal["double", "single"] = setting(
        "double", "single: records in 32 bits, half the room; each is rounded within the unit ball."
    )
    executor: str | None = setting(
        None,
        "Of an owner's own process: workers that read its Parquet files, or ranges of a database's table, where they "
        "are and bring it nothing but sums: processes, joblib, dask:ADDRESS, ray:HOST:PORT, or MODULE:FUNCTION, a "
        "function of yours that returns an Executor.",
        metavar="NAME",
        rule="the process reads the records itself",
    )
    workers: int | None = setting(
        None,
        "How many workers an executor is made with.",
        check=within(1, 1 << 16),
        metavar="N",
        rule="one for each core; of Dask and Ray, as many as the cluster has",
    )
    target: str | None = setting(
        None,
        "The column to predict. Two values: logistic regression; some texts: softmax; numbers: ridge.",
        metavar="COLUMN",
    )
    owners_column: str | None = setting(None, "The column that says who owns a record.", metavar="COLUMN")
    bounds: str | None = setting(
        None,
        "JSON or TOML file of public bounds, {column: [low, high] or [category, ...]}. They restrict a survey; without "
        "them and without one, bounds are read from the records, which the guarantee does not cover.",
        metavar="PATH",
    )
    preprocessing: Preprocessing | None = setting(
        None,
        "survey: ranges, scales and categories come from one noisy release, inside the promise, within the bounds or "
        "the schema if there are any. records: without these, they are read off the records, outside of it.",
        rule="survey, where delta and the number of records allow it and no schema is given",
    )
    named: tuple[str, ...] = setting(
        (),
        "A column of texts whose values a survey finds and names, where public lists have their words and enough "
        "records hold them; may be repeated. It costs no noise.",
        flags=("--name",),
        metavar="COLUMN",
    )
    spell: tuple[str, ...] = setting(
        (),
        "A column of texts whose values a survey finds, and whose words are opened first, of those that enough records "
        "of all owners together have: a release of its own, with at most a tenth of the budget; may be repeated.",
        flags=("--spell",),
        metavar="COLUMN",
    )
    word_list: str | None = setting(
        None,
        "A public list of words to try as names beside those that everybody knows, one a line; never one that was read "
        "off records.",
        metavar="PATH",
    )
    basis: Basis | None = setting(
        None,
        "additive: every number becomes a straight line and a few smooth functions, so that a model is a sum of one "
        "curve a column, which `dpmpc report` draws. linear: the line alone.",
        rule="what the schema says; of a survey additive where the records are many for the budget; else linear",
    )
    missing: Literal["fill", "drop"] = setting(
        "fill", "Missing features become the middle of the range (all zero for categories), or the record is dropped."
    )
    drop: tuple[str, ...] = setting((), "A column to leave out; may be repeated.", metavar="COLUMN")
    positive: str | None = setting(None, "The target's value that counts as +1.", metavar="VALUE")
    classes: tuple[str, ...] = setting(
        (),
        "A class of the target, known without the records; to be repeated, once for each. Without it, a schema or "
        "bounds the list of classes is read off the records, and the promise holds if it is public.",
        metavar="VALUE",
    )
    task: str | None = setting(
        None,
        "What a model says of the target, and its loss.",
        choices=TASKS.names,
        details=lambda: [(name, task.help) for name, task in TASKS.items()],
        rule="by the target: of two classes logistic, of more softmax, of numbers ridge",
    )
    test_fraction: float | None = setting(None, "Share of records held out for the test.", rule="0.2; synthetic 0.5")
    official_test: bool = setting(False, "Test on the set's own test file (adult, kddcup99).")
    max_rows: int | None = setting(None, "Use at most so many records, drawn by the seed (synthetic: make so many).")
    dimension: int | None = setting(None, "Of synthetic data.", rule="10")
    intercept: bool | None = setting(
        None, "Add a constant feature, inside the unit ball.", rule="yes, but for synthetic"
    )
    seed: int = setting(1, "Of the split into training, test and owners. Noise never depends on it.")
    evaluate: bool = setting(True, "Say how good the model is on held-out records.")
    figures: Figures | None = setting(
        None,
        "Where the model's figures come from. inside: from one noisy release over held-out records, inside the "
        "promise. plain: from the plain records of this local run, outside of it, with the loss of every iteration. "
        "both: both.",
        rule="inside, where delta and the number of held-out records allow it (both for a named data set); else plain",
    )
    baseline: bool = setting(
        False,
        "Say beside the model's figures what an ordinary pipeline reaches without privacy on the same split "
        "(scikit-learn, its own scaling, lambda by cross-validation); from plain records, outside the guarantee.",
    )
    ids: str | None = setting(
        None,
        "The column that says which record or person is which; no feature. Held-out records are known again by it when "
        "rows are appended or sorted.",
        flags=("--id",),
        metavar="COLUMN",
        rule="records are known by their place in an unchanged file",
    )


@dataclass(frozen=True, kw_only=True)
class OwnerSettings(Settings):
    """How records are shared out among owners."""

    SECTION: ClassVar[str] = "owners"

    owners: int | None = setting(None, "Number of owners; records are split evenly.", metavar="M")
    owner_sizes: tuple[int, ...] | None = setting(None, "Records of each owner.", metavar="N1,N2,...")
    capacity: tuple[int, ...] | None = setting(
        None,
        "Places of each owner for training records (of persons, where the promise is of these): at least as "
        "many as it has. Empty places are zero vectors, every public number is of places, "
        "and how many records there are is private.",
        metavar="N1,N2,...",
    )
    skew: float | None = setting(
        None,
        "With a number of owners: two groups of owners, the larger ones with U times as many records.",
        metavar="U",
    )


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Descent):
    """Which model is learned, and how. The adviser chooses what is not said, beside what is."""

    SECTION: ClassVar[str] = "learning"

    method: str | None = setting(
        None,
        "What an owner sends.",
        choices=METHODS.names,
        rule="as advised, nearly always gradient",
        example=f'"{DEFAULT_METHOD}"',
        brief='or "output", "functional", ...',
        details=lambda: [(name, method.help) for name, method in METHODS.items()],
    )
    iterations: int | None = setting(
        None,
        "Releases of a method that repeats.",
        check=within(1, MOST_RELEASES),
        metavar="T",
        rule="what `dpmpc advise` advises, which looks at no record; where nothing is advised, 50",
        example="50",
        brief="releases of a method that repeats",
    )
    lam: float | None = setting(
        None,
        "Regularisation: mean loss + lam/2 |theta|^2. Output perturbation needs less noise when it is larger.",
        check=check_positive,
        rule="as advised; else the method's own",
        example="0.001",
        brief="mean loss + lam/2 |theta|^2",
    )
    average: Average | None = setting(
        None,
        "The model is the last iterate, or the mean of the last half of the iterates, or of all.",
        rule="tail; of one release none",
        example='"tail"',
        brief='or "none", "all": the model is the mean of so many iterates',
    )
    class_weight: str | None = setting(
        None,
        "How much records of each class count: `no=0.1,yes=1`, scaled so that the largest is 1; or balanced, so that "
        "classes count alike by the survey's noisy counts. A class is said where its probability times its weight is "
        "largest; probabilities are corrected. Weights cost signal, and the noise stays.",
        metavar="WEIGHTS",
        rule="all alike",
        example='"no=0.1,yes=1"',
        brief="how much records of each class count, or balanced by a survey",
    )
    weights: Weights | None = setting(
        None,
        "Weight of an owner: 1/m, or its share n_j/n of the records (better when sizes differ).",
        rule="by size",
        example='"size"',
        brief='or "equal": an owner of few records then sets the noise',
    )


@dataclass(frozen=True, kw_only=True)
class Naming(Settings):
    """What the run and its records are called."""

    SECTION: ClassVar[str] = "run"

    data_id: str | None = setting(
        None,
        "Name under which the ledger adds up what is spent on these records.",
        metavar="TEXT",
        rule="the data set's name",
    )
    run_id: str | None = setting(
        None,
        "Name of the run; all processes must give the same.",
        metavar="TEXT",
        rule="random; for processes started one by one, made from the settings",
    )
