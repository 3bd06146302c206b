"""The noise of two servers against its law, over many samples: chi-square, residues, independence.

    python -m dpmpc.benchmarks.studies.two_laws

For `ot` and `garbled`, Gaussian and Laplace noise: 2^19 samples are opened, for study, and held against the exact law.
Every test raises a false alarm with probability 1e-10 at most, all twelve together below 1e-8; and every one must
refuse the same samples made slightly wrong, so one that sees nothing fails. AssertionError where something does not
hold.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmpc.mpc.contract.backend import FOR_TWO, GARBLED
from dpmpc.noise.goodness import TestOutcome, chi_square, independence, residues
from dpmpc.noise.sampling import sample
from dpmpc.privacy.exact import ExactLaw, Integers
from dpmpc.privacy.law import DEFAULT_LAW, LAWS, PURE_LAW

COUNT = 1 << 19
SCALE = float(1 << 16)  # grid steps
FALSE_ALARM = 1e-10
MODULUS = 16
BACKENDS = (FOR_TWO, GARBLED)
FAMILIES = (DEFAULT_LAW, PURE_LAW)


@dataclass(frozen=True)
class Wrong:
    """Samples made slightly wrong, and the test that must see it."""

    what: str
    test: str
    made: Callable[[Integers], Integers]


def _even(values: Integers) -> Integers:
    """Every fiftieth sample with a lowest bit of 0."""
    found = values.copy()
    found[::50] &= ~1
    return found


def _repeated(values: Integers) -> Integers:
    """A fiftieth of the samples come a second time, a third of the way on."""
    found = values.copy()
    part, later = len(values) // 50, len(values) // 3
    found[later : later + part] = values[:part]
    return found


WRONG = (
    Wrong("moved by a 30th of the scale", "chi-square", lambda x: x + int(SCALE / 30)),
    Wrong("3 % wider", "chi-square", lambda x: np.rint(x * 1.03).astype(np.int64)),
    Wrong(f"2 % of the lowest bits 0, mod {MODULUS}", f"residues mod {MODULUS}", _even),
    Wrong("2 % of the samples come again", "autocorrelation", _repeated),
)


def outcomes(values: Integers, law: ExactLaw) -> dict[str, TestOutcome]:
    """What the tests say, by name."""
    found = [chi_square(values, law), residues(values, law, MODULUS), independence(values, law)]
    return {each.name: each for each in found}


def check(values: Integers, law: ExactLaw) -> list[str]:
    """Lines of what was found. Errors: AssertionError where samples are refused, or slightly wrong ones are not."""
    lines = []
    for name, found in outcomes(values, law).items():
        assert found.p_value > FALSE_ALARM, f"{name}: {found.statistic:.1f}, p = {found.p_value:.3g}"
        degrees = "" if found.degrees is None else f" on {found.degrees} degrees of freedom"
        lines.append(f"{name} {found.statistic:.1f}{degrees}, p = {found.p_value:.3g}")
    for wrong in WRONG:
        found = outcomes(wrong.made(values), law)[wrong.test]
        assert found.p_value < FALSE_ALARM, f"{wrong.what} passes {wrong.test}: p = {found.p_value:.3g}"
        lines.append(f"refused: {wrong.what}, p = {found.p_value:.2g}")
    return lines


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="samples of each law and backend")
    count = parser.parse_args().count
    for backend in BACKENDS:
        for family in FAMILIES:
            begin = time.perf_counter()
            report, values = sample(family, SCALE, count, parties=2, backend=backend, opened=True)
            assert values is not None and len(values) == count
            print(f"{backend}, {family}: {count:,} samples, {time.perf_counter() - begin:.0f} s")
            for line in check(values, LAWS[family].exact(report["scale"], True)):
                print(f"  {line}")


if __name__ == "__main__":
    main()
