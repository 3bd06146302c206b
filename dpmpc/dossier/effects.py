"""What a trained model's weights are not, and which question would give effects, at which cost."""

import math

from dpmpc.errors import UsageError
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.records.schema import Schema
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.expected import expected
from dpmpc.statistics.joint import Coded
from dpmpc.statistics.tables import Tables
from dpmpc.statistics.where import word

MOST = 240  # combinations of covariates that a question which is proposed has
NOT_EFFECTS = (
    "The model's weights are no effects: they are shrunk by regularisation and by clipping, moved by the noise, and "
    "have no interval. Report none of them as an odds ratio."
)


def question_of(schema: Schema) -> str | None:
    """The question whose answer has effects of the model's columns on its target: as many of them, in the order of the
    schema, as one table of cells holds. None where there is none, as for several classes. Public."""
    if schema.kind not in ("two", "number"):
        return None
    columns, target = Columns.of_schema(schema), schema.target.name
    names = [column.name for column in columns.columns if column.name != target]
    if schema.kind == "number":
        few = [name for name in names if isinstance(columns[name], Quantity)][:8]
        return f"lm({', '.join(map(word, (target, *few)))})" if few and target in columns else None
    kept: list[str] = []
    cells = 1
    for name in names:
        many = len(Coded.of(name, columns).labels)
        if many > 1 and cells * many <= MOST:
            kept, cells = [*kept, name], cells * many
    return f"logit({', '.join(map(word, (target, *kept)))})" if kept and target in columns else None


def of_weights(schema: Schema, sizes: tuple[int, ...], epsilon: float | None, delta: float) -> list[str]:
    """Sentences: that weights are no effects; the question that has them, and how far it would be off at the run's own
    promise, which is spent again for it."""
    said, question = [NOT_EFFECTS], question_of(schema)
    if question is None or epsilon is None:
        return said
    try:
        tables = Tables.of(Columns.of_schema(schema), [question])
        sigma = gaussian_scale(epsilon, delta, tables.layout.distance(sizes).l2)
        (found,) = expected(tables, sizes, sigma)
    except UsageError:
        return said
    off = found.line or found.also
    if not off or not math.isfinite(found.half):
        return said
    return [*said, f"Effects with intervals are asked of the records: {question}. At another epsilon = {epsilon:.4g}, "
                   f"which is spent beside this run's, it would be off by: {off}."]  # fmt: skip
