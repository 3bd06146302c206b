"""Tails and quantiles of the laws that tests and bounds hold figures against.

They are the functions of `scipy.special` that `scipy.stats` ends in; its objects take a second to import, and check
their arguments for longer than they compute.
"""


def chi_square_tail(x: float, degrees: float) -> float:
    """P(X > x) of chi^2 with these degrees of freedom."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, x))


def chi_square_above(probability: float, degrees: float) -> float:
    """The x with P(X > x) = probability."""
    from scipy.special import chdtri

    return float(chdtri(degrees, probability))


def chi_square_below(probability: float, degrees: float) -> float:
    """The x with P(X <= x) = probability."""
    from scipy.special import gammaincinv

    return 2 * float(gammaincinv(degrees / 2, probability))


def student_tail(x: float, degrees: float) -> float:
    """P(T > x) of Student's law."""
    from scipy.special import stdtr

    return float(stdtr(degrees, -x))


def at_least(hits: int, trials: int, alpha: float) -> float:
    """A bound below the probability of which `hits` of `trials` were seen; wrong with probability at most alpha.

    The quantile alpha of Beta(hits, trials - hits + 1). Source: Clopper and Pearson 1934.
    """
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, alpha)) if hits else 0.0


def at_most(hits: int, trials: int, alpha: float) -> float:
    """The bound above it: the quantile 1 - alpha of Beta(hits + 1, trials - hits)."""
    from scipy.special import betainccinv

    return float(betainccinv(hits + 1, trials - hits, alpha)) if hits < trials else 1.0
