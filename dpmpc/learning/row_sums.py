"""Sums of rows, each with its coefficient: what a gradient of a linear model is."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEW = 12  # sums; from about here on one sparse product is faster


def row_sums(coefficients: Floats, X: Floats, cuts: Ints) -> Floats:
    """(K, d): row k is the sum of coefficients[i] X[i] over the rows cuts[k] : cuts[k + 1], added in their order.

    Few sums are made one by one, with the same bits as the sparse product: the import of scipy.sparse takes longer than
    a short run. A column alone would be added in pairs.
    """
    if len(cuts) - 1 > FEW or X.shape[1] == 1:
        from scipy.sparse import csr_array  # a process without records does without the import

        sums = csr_array((coefficients, np.arange(len(X)), cuts), shape=(len(cuts) - 1, len(X)))
        return np.asarray(sums @ X, dtype=np.float64)
    result = np.empty((len(cuts) - 1, X.shape[1]))
    for k, row in enumerate(result):
        rows = slice(int(cuts[k]), int(cuts[k + 1]))
        np.einsum("i,ij->j", coefficients[rows], X[rows], out=row)
    return result
