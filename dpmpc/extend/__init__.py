"""What another package needs to bring a law of noise, a backend, a method of learning, a task, a source or a kind of
question of its own, and the conformance tests that each has to pass.

A package registers what it brings as entry points, and every process of a run, every command and every surface of the
library finds it by its name:

    [project.entry-points."dpmpc.laws"]
    staircase = "my_package.staircase:STAIRCASE"

| group | an entry is | its conformance test |
| --- | --- | --- |
| `dpmpc.laws` | a `Law` | `check_law(law)` |
| `dpmpc.backends` | a `Backend` | `check_backend(backend)` |
| `dpmpc.methods` | a `Method` | `check_method(method)` |
| `dpmpc.tasks` | a `Task` | `check_task(task)` |
| `dpmpc.sources` | a class that inherits `Source` | `check_source(source, sizes)` |
| `dpmpc.questions` | a `QuestionKind` | `check_question(lines, bounds)` |

A package that cannot be imported, or that claims a taken name, is one warning; nothing else breaks. Whoever installs a
package trusts it as this one: its law's price and its method's sensitivity are part of the promise. The conformance
tests try to refute them; they prove nothing.
"""

from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.circuits.alias import AliasTable
from dpmpc.circuits.sampler import OverField, Sampler
from dpmpc.circuits.table_sampler import TableSampler, Term, table_of
from dpmpc.errors import UsageError
from dpmpc.extend.backends import check_backend
from dpmpc.extend.failed import ConformanceError
from dpmpc.extend.laws import check_law
from dpmpc.extend.methods import check_method
from dpmpc.extend.outcomes import outcome_of
from dpmpc.extend.questions import check_question
from dpmpc.extend.sources import check_source
from dpmpc.extend.tasks import check_task
from dpmpc.intake.table import Table
from dpmpc.learning.losses import Loss
from dpmpc.learning.method import METHODS, Floats, Ints, Learning, Method, project
from dpmpc.learning.settings import Descent
from dpmpc.learning.source import SOURCES, Following, Invented, Opening, Schedule, Source, Stage, Sum, of_means
from dpmpc.learning.task import TASKS, Task
from dpmpc.mpc.contract.backend import BACKENDS, Backend, Counts, Dealer, Holder
from dpmpc.outcome import Answer, Bars, Curves, Forest, Line, Number, Outcome, Shape
from dpmpc.privacy.exact import ExactLaw, from_pmf
from dpmpc.privacy.law import LAWS, Law, Need
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity, Weights, gradient_sensitivity, owner_sensitivity
from dpmpc.privacy.spending import Spending
from dpmpc.records.blocks import Records
from dpmpc.records.schema import Labels, Range, Schema, Target
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Part
from dpmpc.statistics.cells import Axis
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.compile import axis_of, by_of, cells, scaled
from dpmpc.statistics.intervals import Pair, linear, quadratic, ratio, share
from dpmpc.statistics.kind import QUESTION_KINDS, QuestionKind
from dpmpc.statistics.options import Choice, Increasing, OfColumn, Option, Whole
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel

__all__ = [
    "BACKENDS",
    "LAWS",
    "METHODS",
    "QUESTION_KINDS",
    "SOURCES",
    "TASKS",
    "AliasTable",
    "Answer",
    "AskedQuestion",
    "Asking",
    "Axis",
    "Backend",
    "Bars",
    "Choice",
    "Columns",
    "ConformanceError",
    "Counts",
    "Curves",
    "Dealer",
    "Descent",
    "ExactLaw",
    "Floats",
    "Following",
    "Forest",
    "Here",
    "Holder",
    "Increasing",
    "Ints",
    "Invented",
    "Labels",
    "Law",
    "Learning",
    "Line",
    "Loss",
    "Mechanism",
    "Method",
    "Need",
    "Number",
    "OfColumn",
    "Opening",
    "Option",
    "Outcome",
    "OverField",
    "Pair",
    "Part",
    "QuestionKind",
    "Range",
    "Reading",
    "Records",
    "Sampler",
    "Schedule",
    "Schema",
    "ScoreModel",
    "Sensitivity",
    "Shape",
    "Source",
    "Spending",
    "Stage",
    "Sum",
    "Table",
    "TableSampler",
    "Target",
    "Task",
    "Term",
    "UsageError",
    "Weights",
    "Whole",
    "axis_of",
    "by_of",
    "cells",
    "check_backend",
    "check_law",
    "check_method",
    "check_question",
    "check_source",
    "check_task",
    "from_pmf",
    "gradient_sensitivity",
    "linear",
    "of_means",
    "outcome_of",
    "owner_sensitivity",
    "plan_of",
    "project",
    "quadratic",
    "ratio",
    "scaled",
    "share",
    "table_of",
]
