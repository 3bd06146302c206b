"""The conformance test of a kind of question: what its blocks move by, and answers to hostile sums."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmpc.extend.failed import ConformanceError
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.records.schema import checked_bounds
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.expected import expected, lines
from dpmpc.statistics.query import parse
from dpmpc.statistics.tables import Tables

_RECORDS, _SIZES = 400, (300, 500)


def check_question(asked: Sequence[str], bounds: Mapping[str, Any], seed: int = 1) -> float:
    """The largest L2 distance of two records' vectors that was found, over what is claimed: at most 1. `asked`: lines
    of the kind; `bounds`: of columns.

    A line is read as it is printed, from a plan too. Random records are encoded, among them missing and unknown ones.
    Answers are made of sums with noise, of nothing but noise, and of totals far below 0: intervals hold their
    estimates, or there is no estimate. Errors: ConformanceError says what fails."""
    columns, rng, worst = Columns.of_bounds(checked_bounds(dict(bounds), "bounds")), np.random.default_rng(seed), 0.0
    for line in asked:
        query = parse(line, columns)
        tables = Tables.of(columns, [line])
        if parse(str(query), columns) != query or Tables.from_json(tables.to_json()).layout != tables.layout:
            raise ConformanceError(f"a question is read as it is printed; {line} is not")
        layout = tables.layout
        values = {
            field: rng.choice([field.low - 1, field.low, field.high, field.high + 1, np.nan], _RECORDS)
            if isinstance(field, Quantity)
            else rng.integers(-2, len(getattr(field, "levels", "")) or 1, _RECORDS)
            for field in layout.fields
        }
        rows = layout.encode(RecordFields(_RECORDS, values), np.arange(_RECORDS), _RECORDS).astype(np.float64)
        squares = np.square(rows).sum(axis=1)
        apart = np.sqrt(np.max(squares[:, None] + squares - 2 * rows @ rows.T))
        claimed = layout.distance((1,)).l2
        if apart > claimed * (1 + 1e-9):
            raise ConformanceError(f"records of {line} lie {apart / claimed:.6g} times as far apart as is claimed")
        worst = max(worst, apart / claimed if claimed else 0.0)
        sigma = gaussian_scale(1.0, 1e-5, claimed or 1.0)
        noise = rng.normal(0, sigma, layout.dimension)
        for total in (rows.sum(axis=0) + noise, noise, -1e3 * sigma - np.abs(noise)):
            for answer in tables.answers(total, sigma, _SIZES):
                for found in answer.lines:
                    n = found.number
                    if n.estimate is not None and (n.low is None or n.high is None or not n.low <= n.high):
                        raise ConformanceError(f"an estimate has an interval; {line} has {n}")
        lines(expected(tables, _SIZES, sigma))
    return worst
