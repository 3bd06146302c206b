"""Public facts about the named data sets: file names, columns, ranges and category lists.

Category lists are those of the sets' own descriptions. Ranges are round numbers that contain the published files'
values. Both are part of this program and do not change with the records a user trains on, hence they are `public`.
That these sets were once looked at to describe them is not accounted for.
"""

from typing import Literal

from dpmpc.lazy import dataclass
from dpmpc.records.schema import Categorical, Column, Labels, Numeric


@dataclass(frozen=True)
class FileSet:
    """A set kept in files: where they are, how they read, what the columns mean."""

    folder: str
    files: tuple[str, ...]  # each under one of its names ("a|b"); together they make up the set
    official_test: tuple[str, ...]  # the files that the set's makers hold out, if any
    names: tuple[str, ...] | None  # column names where the files have none
    separator: str
    comment: str | None
    columns: tuple[Column, ...]
    target: Labels
    missing: Literal["fill", "drop"]


def _categories(name: str, words: str) -> Categorical:
    return Categorical(name, tuple(words.split()))


def _numeric(text: str) -> tuple[Numeric, ...]:
    """Numeric columns from lines of `name: low high`."""
    columns = []
    for line in text.strip().splitlines():
        name, _, pair = line.partition(":")
        low, high = pair.split()
        columns.append(Numeric(name.strip(), float(low), float(high)))
    return tuple(columns)


_ADULT_NAMES = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
# Nobody who never worked has an occupation, so no complete record has this class: 98 one-hot features, 104 in all.
_ADULT_COLUMNS: tuple[Column, ...] = (
    *_numeric("""
        age: 17 90
        fnlwgt: 10000 1500000
        education-num: 1 16
        capital-gain: 0 99999
        capital-loss: 0 4500
        hours-per-week: 1 99
    """),
    _categories("workclass", "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay"),
    _categories(
        "education",
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters"
        " 1st-4th 10th Doctorate 5th-6th Preschool",
    ),
    _categories(
        "marital-status",
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    ),
    _categories(
        "occupation",
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners"
        " Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv"
        " Armed-Forces",
    ),
    _categories("relationship", "Wife Own-child Husband Not-in-family Other-relative Unmarried"),
    _categories("race", "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
    _categories("sex", "Female Male"),
    _categories(
        "native-country",
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan"
        " Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal"
        " Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua"
        " Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
    ),
)

_KDD_NAMES = tuple(
    """
    duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins
    logged_in num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files
    num_outbound_cmds is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate
    srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count
    dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate
    dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate attack
    """.split()
)
# The ranges of the whole set of 4,898,431 connections, rounded outwards. The others are flags or rates in [0, 1].
_KDD_RANGES = {
    "duration": 60_000, "src_bytes": 1_400_000_000, "dst_bytes": 1_400_000_000, "wrong_fragment": 3, "urgent": 14,
    "hot": 101, "num_failed_logins": 5, "num_compromised": 7_500, "su_attempted": 4, "num_root": 7_500,
    "num_file_creations": 100, "num_shells": 5, "num_access_files": 9, "count": 511, "srv_count": 511,
    "dst_host_count": 255, "dst_host_srv_count": 255,
}  # fmt: skip
_KDD_CATEGORIES = {
    "protocol_type": "icmp tcp udp",
    # the 70 services of the whole set; the 10 % file has 66 of them
    "service": """IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs
        exec finger ftp ftp_data gopher harvest hostnames http http_2784 http_443 http_8001 imap4 iso_tsap
        klogin kshell ldap link login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u other
        pm_dump pop_2 pop_3 printer private red_i remote_job rje shell smtp sql_net ssh sunrpc supdup systat
        telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet whois""",
    "flag": "OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH",
}
_KDD_COLUMNS: tuple[Column, ...] = tuple(
    _categories(name, _KDD_CATEGORIES[name])
    if name in _KDD_CATEGORIES
    else Numeric(name, 0.0, float(_KDD_RANGES.get(name, 1)))
    for name in _KDD_NAMES[:-1]
)
# Denial of service: six attacks of the training file and four that only the test file has.
_DOS = tuple(
    f"{attack}{dot}"
    for attack in "back land neptune pod smurf teardrop apache2 mailbomb processtable udpstorm".split()
    for dot in (".", "")
)

_BANK_COLUMNS: tuple[Column, ...] = (
    *_numeric("""
        age: 17 100
        duration: 0 5000
        campaign: 1 60
        pdays: 0 999
        previous: 0 7
        emp.var.rate: -3.5 1.5
        cons.price.idx: 92 95
        cons.conf.idx: -51 -26
        euribor3m: 0.5 5.5
        nr.employed: 4900 5300
    """),
    _categories(
        "job",
        "admin. blue-collar entrepreneur housemaid management retired self-employed services student"
        " technician unemployed unknown",
    ),
    _categories("marital", "divorced married single unknown"),
    _categories(
        "education",
        "basic.4y basic.6y basic.9y high.school illiterate professional.course university.degree unknown",
    ),
    _categories("default", "no yes unknown"),
    _categories("housing", "no yes unknown"),
    _categories("loan", "no yes unknown"),
    _categories("contact", "cellular telephone"),
    _categories("month", "jan feb mar apr may jun jul aug sep oct nov dec"),
    _categories("day_of_week", "mon tue wed thu fri"),
    _categories("poutcome", "failure nonexistent success"),
)

_CYTOLOGY = (
    "clump_thickness", "cell_size_uniformity", "cell_shape_uniformity", "marginal_adhesion", "epithelial_cell_size",
    "bare_nuclei", "bland_chromatin", "normal_nucleoli", "mitoses",
)  # fmt: skip

FILE_SETS = {
    "adult": FileSet(
        folder="adult",
        files=("adult.data", "adult.test"),
        official_test=("adult.test",),
        names=_ADULT_NAMES,
        separator=",",
        comment="|",
        columns=_ADULT_COLUMNS,
        target=Labels("income", (">50K", ">50K."), ("<=50K", "<=50K."), ">50K", "<=50K"),
        missing="drop",
    ),
    "kddcup99": FileSet(
        folder="kddcup99_10pct",
        files=("kddcup.data_10_percent.gz|kddcup.data_10_percent",),
        official_test=("corrected.gz|corrected",),
        names=_KDD_NAMES,
        separator=",",
        comment=None,
        columns=_KDD_COLUMNS,
        target=Labels("attack", _DOS, None, "denial of service", "other"),
        missing="fill",
    ),
    "bank": FileSet(
        folder="bank_additional",
        files=("bank-additional-full.csv",),
        official_test=(),
        names=None,
        separator=";",
        comment=None,
        columns=_BANK_COLUMNS,
        target=Labels("y", ("yes",), ("no",), "yes", "no"),
        missing="fill",
    ),
    "breast-cancer-wisconsin": FileSet(
        folder="breast_cancer_wisconsin",
        files=("breast-cancer-wisconsin.data",),
        official_test=(),
        names=("sample", *_CYTOLOGY, "class"),
        separator=",",
        comment=None,
        columns=tuple(Numeric(name, 1.0, 10.0) for name in _CYTOLOGY),
        target=Labels("class", ("4",), ("2",), "malignant", "benign"),
        missing="fill",
    ),
}

# scikit-learn's copies of WDBC (mean, standard error and worst of ten measures) and of the diabetes set.
WDBC_COLUMNS = _numeric("""
    mean radius: 6 30
    mean texture: 9 40
    mean perimeter: 40 190
    mean area: 140 2510
    mean smoothness: 0.05 0.17
    mean compactness: 0.01 0.35
    mean concavity: 0 0.43
    mean concave points: 0 0.21
    mean symmetry: 0.1 0.31
    mean fractal dimension: 0.04 0.1
    radius error: 0.1 2.9
    texture error: 0.3 4.9
    perimeter error: 0.7 22
    area error: 6 550
    smoothness error: 0.001 0.032
    compactness error: 0.002 0.14
    concavity error: 0 0.4
    concave points error: 0 0.053
    symmetry error: 0.007 0.08
    fractal dimension error: 0 0.03
    worst radius: 7 37
    worst texture: 12 50
    worst perimeter: 50 252
    worst area: 180 4300
    worst smoothness: 0.07 0.23
    worst compactness: 0.02 1.1
    worst concavity: 0 1.3
    worst concave points: 0 0.3
    worst symmetry: 0.15 0.67
    worst fractal dimension: 0.05 0.21
""")
DIABETES_COLUMNS = _numeric("""
    age: 18 80
    sex: 1 2
    bmi: 17 43
    bp: 60 135
    s1: 95 305
    s2: 40 245
    s3: 20 100
    s4: 2 10
    s5: 3.2 6.2
    s6: 55 125
""")
# Sets of scikit-learn with more than two classes: the range of each of its columns in their order, or of all. Round
# numbers that such measurements stay within.
CLASS_SETS: dict[str, tuple[tuple[float, float], ...]] = {
    "iris": ((4, 8), (2, 4.5), (1, 7), (0, 2.5)),
    "wine": (
        (11, 15),
        (0.5, 6),
        (1.2, 3.5),
        (10, 30),
        (70, 165),
        (0.9, 4),
        (0.3, 5.2),
        (0.1, 0.7),
        (0.4, 3.6),
        (1, 13),
        (0.4, 1.8),
        (1.2, 4),
        (270, 1700),
    ),
    "digits": ((0, 16),),
}
