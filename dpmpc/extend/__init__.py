"""What another package needs to bring a law of noise, a backend, a method of learning, a task or a source of its own,
and the conformance tests that each has to pass.

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

A package that cannot be imported, or that claims a taken name, is one warning; nothing else breaks. Whoever installs a
package trusts it as this one: its law's price and its method's sensitivity are part of the promise. The conformance
tests try to refute them; they prove nothing.
"""

from dpmpc.circuits.alias import AliasTable
from dpmpc.circuits.sampler import OverField, Sampler
from dpmpc.circuits.table_sampler import TableSampler, Term, table_of
from dpmpc.errors import UsageError
from dpmpc.extend.backends import check_backend
from dpmpc.extend.failed import ConformanceError
from dpmpc.extend.laws import check_law
from dpmpc.extend.methods import check_method
from dpmpc.extend.planning import plan_of
from dpmpc.extend.sources import check_source
from dpmpc.extend.tasks import check_task
from dpmpc.intake.table import Table
from dpmpc.learning.losses import Loss
from dpmpc.learning.method import METHODS, Floats, Ints, Learning, Method, project
from dpmpc.learning.settings import Descent
from dpmpc.learning.source import SOURCES, Following, Schedule, Source, Stage, Sum, of_means
from dpmpc.learning.task import TASKS, Task
from dpmpc.mpc.contract.backend import BACKENDS, Backend, Counts, Dealer, Holder
from dpmpc.privacy.exact import ExactLaw, from_pmf
from dpmpc.privacy.law import LAWS, Law, Need
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity, Weights, gradient_sensitivity, owner_sensitivity
from dpmpc.privacy.spending import Spending
from dpmpc.records.blocks import Records
from dpmpc.records.schema import Labels, Range, Schema, Target

__all__ = [
    "BACKENDS",
    "LAWS",
    "METHODS",
    "SOURCES",
    "TASKS",
    "AliasTable",
    "Backend",
    "ConformanceError",
    "Counts",
    "Dealer",
    "Descent",
    "ExactLaw",
    "Floats",
    "Following",
    "Holder",
    "Ints",
    "Labels",
    "Law",
    "Learning",
    "Loss",
    "Mechanism",
    "Method",
    "Need",
    "OverField",
    "Range",
    "Records",
    "Sampler",
    "Schedule",
    "Schema",
    "Sensitivity",
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
    "check_backend",
    "check_law",
    "check_method",
    "check_source",
    "check_task",
    "from_pmf",
    "gradient_sensitivity",
    "of_means",
    "owner_sensitivity",
    "plan_of",
    "project",
    "table_of",
]
