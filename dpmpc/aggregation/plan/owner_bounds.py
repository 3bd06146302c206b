"""Runs whose owners are checked (`--check-owners`): what is checked, against which bound, and what that comes to."""

import math
from fractions import Fraction
from itertools import accumulate

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.aggregation.plan.grid import Grid
from dpmpc.errors import UsageError, number_of
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.owner_checks import MOST_WIDTH, NORMS, ChecksOwners, NormTest, OwnerTest, width_of
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.transport.channels import OWNERS, OWNERS_EACH
from dpmpc.privacy.unit import NARROWEST

_COARSER = 3  # bits
TRIES = 1 << 10  # attempts of a release
REJECTED = "rejected"  # the transcript's event of a release's check, with the owners that failed


def check_owners_possible(plan: Asked) -> None:
    """Errors: UsageError for a plan whose owners are to be checked and cannot be."""
    if not plan.checks_owners:
        return
    if not plan.parties:
        raise UsageError(
            "<<check_owners>> is done by parties; <<engine=clear>> has none, and sees all vectors; leave one of "
            "them out"
        )
    if plan.dropouts:
        raise UsageError(
            f"<<check_owners>> needs all owners' shares in every release; got <<min_owners={plan.min_owners}>> of "
            f"{plan.owners}; leave one of them out"
        )
    what_is_checked(plan)


def what_is_checked(plan: Asked) -> tuple[str, ...]:
    """Of shares and norms, what the plan's backend can check. Errors: UsageError where it is nothing."""
    backend = BACKENDS[plan.backend]
    if not isinstance(backend, ChecksOwners):
        raise UsageError(
            "<<check_owners>> is for the backends sharing, shamir and checked; got "
            f"{number_of(plan.parties, 'party', 'parties')} that compute by {plan.backend}, which cannot check owners; "
            "use <<parties=3>> or more with <<backend=sharing>>, or leave <<check_owners>> out"
        )
    return backend.owner_checks(plan.parties, plan.threshold)


def owner_test(plan: Asked, grid: Grid) -> OwnerTest | None:
    """What the parties check in each release; None where they check nothing.

    Guarantees: no owner that must not pass does so in any release of the run but with probability 2^-security_bits, be
    they all such (they share a coin, so their chances add up), `TRIES` attempts of each release together: an owner that
    hears a coin from a party could break its connection and come again. Errors: UsageError for a bound too large for
    norms to be checked.
    """
    if not plan.checks_owners:
        return None
    norms = None
    bits = plan.security_bits + math.log2(plan.releases * TRIES * plan.owners) + 1  # half of it for either kind
    if NORMS in what_is_checked(plan):
        norms = NormTest.of(squares_of(plan, grid), plan.dimension, bits, blocks_of(plan, grid), reach_of(plan, grid))
    return OwnerTest(plan.owners, plan.dimension, norms, math.ceil(bits / math.log2(P)))


def passing(plan: Asked, test: OwnerTest) -> float:
    """How likely any owner passes in any release of the run that must not, at most, all attempts together."""
    return test.error * plan.releases * TRIES * plan.owners


def grid_for_checks(plan: Asked, grid: Grid, noise_steps: float) -> Grid:
    """The finest grid, at most `_COARSER` bits coarser than this one, on which norms can be checked; this one, where
    they are not checked, or there is none. On a coarser one rounding takes more of the sensitivity, 4 % in place of
    0.5 % at most, and noise, here `noise_steps` wide, must still be wide."""
    if not plan.checks_owners or NORMS not in what_is_checked(plan):
        return grid
    for fewer in range(_COARSER + 1):
        coarser = Grid(grid.bits - fewer)
        width = width_of(max(squares_of(plan, coarser)), plan.dimension, reach_of(plan, coarser))
        fits = width <= MOST_WIDTH
        if fits and math.ldexp(noise_steps, -fewer) >= NARROWEST / 2:
            return coarser
    return grid


def squares_of(plan: Asked, grid: Grid) -> tuple[int, ...]:
    """The largest sum of squares, in grid steps, that each owner's encoded vector has.

    It is clipped to norm C, times its factor F, and each of d coordinates is moved by half a step at most when it is
    rounded: (F C 2^f + sqrt(d) / 2)^2. Clipping and scaling in double precision may leave a norm that is larger by
    a relative (d + 16) 2^-52: the norm itself is a sum of d rounded squares, and a few more operations follow. Rounded
    up to whole numbers, so that an honest vector is never beyond it.
    """
    return _squares(plan, grid, plan.clip, plan.dimension)


def blocks_of(plan: Asked, grid: Grid) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The end of each block of coordinates whose norm the source bounds, and the same of it alone; () for none."""
    pieces = plan.source.pieces
    ends = accumulate(piece.length for piece in pieces)
    each = zip(ends, pieces, strict=True)
    return tuple((end, _squares(plan, grid, piece.l2, piece.length)) for end, piece in each) if len(pieces) > 1 else ()


def reach_of(plan: Asked, grid: Grid) -> int | None:
    """What the magnitudes of each owner's encoded vector add up to at most, where the source says it: as `squares_of`,
    half a step of rounding a coordinate with it."""
    pieces = plan.source.pieces
    if not pieces:
        return None
    slack = 1 + Fraction(plan.dimension + 16, 1 << 52)
    whole = sum(Fraction(piece.l1) for piece in pieces) * max(plan.factors) * Fraction(2) ** grid.bits * slack
    return math.ceil(whole + Fraction(plan.dimension, 2))


def _squares(plan: Asked, grid: Grid, norm: float, d: int) -> tuple[int, ...]:
    """As `squares_of`, of d coordinates of norm at most `norm`."""
    slack = 1 + Fraction(plan.dimension + 16, 1 << 52)
    found = {}
    for factor in set(plan.factors):
        a = Fraction(norm) * factor * Fraction(2) ** grid.bits * slack
        cross = math.isqrt(math.ceil(a * a * d)) + 1  # at least a sqrt(d)
        found[factor] = math.ceil(a * a + cross + Fraction(d, 4))
    return tuple(found[factor] for factor in plan.factors)


def channel_of(release: int) -> int:
    """The first channel of a release's check."""
    return OWNERS + OWNERS_EACH * release
