"""Columns of a schema made of a survey's findings: scaled numbers, hashed categories, missing indicators.

A number becomes (v - mean)/(2 deviations), clipped to [-1, 1], so that a missing value, which is 0, is the mean.
"""

from dpmpc.data.schema import Labels, Range, Schema, Surveyed
from dpmpc.errors import UsageError
from dpmpc.learning.survey import Findings


def surveyed_columns(findings: Findings, names: tuple[str, ...] | None = None) -> tuple[Surveyed, ...]:
    """The columns, in the survey's order, of all or of some of its names. One of which nothing stands out is left
    out. Errors: all are."""
    made = []
    for name, found in findings.columns.items():
        if names is not None and name not in names:
            continue
        low, high = (0.0, 0.0) if found.numbers is None else found.numbers.bounds
        number = found.numbers is not None
        if number or found.kept or found.missing:
            made.append(Surveyed(name, number, low, high, found.buckets, found.kept, found.missing))
    if not made:
        raise UsageError("no column stood out of the survey's noise; the budget is too small; give --bounds")
    return tuple(made)


def surveyed_schema(findings: Findings, target: Labels | str, intercept: bool) -> Schema:
    """The schema of a survey. `target`: labels, or the name of a surveyed column of numbers, whose range is then what
    its counts say. Errors: no column stood out."""
    if isinstance(target, Labels):
        return Schema(surveyed_columns(findings), target, intercept, "fill", "survey")
    names = tuple(name for name in findings.columns if name != target)
    numbers = findings.columns[target].numbers
    if numbers is None or not numbers.low < numbers.high:
        raise UsageError(
            f"ridge needs a target of numbers; those of '{target}' do not stand out of the survey's noise; give "
            "--bounds"
        )
    low = max(numbers.low, numbers.mean - 3 * numbers.deviation)
    high = min(numbers.high, numbers.mean + 3 * numbers.deviation)
    return Schema(surveyed_columns(findings, names), Range(target, low, high), intercept, "fill", "survey")
