"""A kind of question: how likely two records of a group, drawn at random, differ in a column (Simpson 1949)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpmpc.extend import (
    Answer,
    AskedQuestion,
    Asking,
    Axis,
    Columns,
    Option,
    Part,
    QuestionKind,
    ScoreModel,
    Whole,
    axis_of,
    by_of,
    cells,
    quadratic,
    ratio,
)  # fmt: skip


class Diversity(QuestionKind):
    """`diversity(ward) by sex`: 1 - sum n_k^2 / N^2 over the cells k of a column."""

    least, most = 1, 1
    options: ClassVar[Mapping[str, Option]] = {"bins": Whole(10.0, 2, 100)}

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        axis = axis_of(query.columns[0], columns, self.setting(query, "bins"))
        return (cells((*by_of(query, columns), axis), query.where),)

    def answer(self, asking: Asking) -> Answer:
        """Both sums are quadratic forms of counts, of which `quadratic` takes away what noise alone makes."""
        counts, deviation = asking.counts((*asking.by, self._axis(asking)))
        found = []
        for group, n in zip(asking.groups, counts.reshape(len(asking.groups), -1), strict=True):
            K = len(n)
            pair = quadratic(n, deviation**2 * np.eye(K), np.ones((K, K)) - np.eye(K), np.ones((K, K)))
            found.append((group, "diversity", ratio(pair, asking.level, within=(0.0, 1.0))))
        return asking.made((), asking.lines(found), "two records that are drawn at random differ so often")

    def _axis(self, asking: Asking) -> Axis:
        return axis_of(asking.query.columns[0], asking.columns, self.setting(asking.query, "bins"))


DIVERSITY = Diversity()
