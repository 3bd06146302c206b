"""The model at a party: it opened every sum itself, so it makes the model from them as every owner does. Public."""

from pathlib import Path

import numpy as np

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.party.resume import standing
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import opened_path
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.data import Dataset, Schema
from dpmpc.data.blocks import in_memory
from dpmpc.learning.learner import Learner
from dpmpc.learning.method import Learning
from dpmpc.learning.model import write_model
from dpmpc.runs.resume import presence_anywhere
from dpmpc.runs.stats import statistics_of
from dpmpc.statistics.tables import Tables


def deliver_answers(plan: Plan, out: Path, index: int) -> bool:
    """The same for the answers of a finished run of questions."""
    if not isinstance(plan.source, Tables) or not standing(plan, out, index).over:
        return False
    opened = read_opened(opened_path(out, index), plan.dimension)
    if not opened:
        return False
    statistics_of(plan, opened[max(opened)]).write(out)
    return True


def deliver_model(plan: Plan, out: Path, index: int) -> bool:
    """Whether `out` has got model.npz, the same that every owner writes: of a finished run of training with a schema.
    Post-processing of what party `index` opened. A party without which the others finished has not opened all of it,
    and gets none."""
    if not isinstance(plan.source, Learning) or plan.schema is None or not standing(plan, out, index).over:
        return False
    schema = Schema.from_json(plan.schema)
    opened = read_opened(opened_path(out, index), plan.dimension)
    if not opened:
        return False
    nothing = in_memory(np.empty((0, len(schema.feature_names))), np.empty(0))
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    learner = Learner(plan.learning, plan.releases, nothing, (0,), noise)
    present = presence_anywhere(out, plan) if plan.names_owners else {}
    for release in sorted(opened):
        learner.apply(decode(plan, opened[release], present.get(release)))
    write_model(
        out / "model.npz", learner.model, Dataset(plan.data, schema, nothing, 0), plan.run_id, plan.learning.weights
    )
    return True
