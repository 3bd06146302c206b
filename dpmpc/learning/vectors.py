"""Vectors that the caller brings, as a source: clipped whole, or means of records' clipped vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.adaptive_clipping import NORM, ClippingBound
from dpmpc.learning.source import Opening, Source, known_of, of_means, owner_factors
from dpmpc.outcome import Outcome
from dpmpc.privacy.checks import check_positive
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.sensitivity import Sensitivity, Weights, owner_sensitivity

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.records.check import Findings
    from dpmpc.records.schema import Schema


@dataclass(frozen=True)
class Vectors(Source):
    """Each vector is clipped to L2 norm `norm`.

    With neighbours by owner the unit is the owner's whole vector. By record, or by presence, an owner sends the mean of
    its records' vectors, each clipped to `norm` by the owner, so that two of them lie at most 2 `norm` apart, and one
    lies at most `norm` from the zero vector. `sensitivity`: by how
    much the change of one unit (a person, say) moves its owner's vector at most, as the caller states. `bound`: how the
    clipping norm follows the vectors, which are scaled by it (`learning.adaptive_clipping`), if it does.
    """

    KIND: ClassVar[str] = "vectors"
    UNITS: ClassVar[tuple[str, ...]] = ("owner", "record", "presence", "person", "stated")
    OF_RECORDS: ClassVar[bool] = False
    PURPOSE: ClassVar[str] = "means or sums of the owners' vectors"

    norm: float
    sensitivity: float | None = None
    bound: ClippingBound | None = None

    def __post_init__(self) -> None:
        check_positive("the clipping norm", self.norm)
        if self.bound is not None:
            if isinstance(self.bound, dict):  # out of a file
                object.__setattr__(self, "bound", ClippingBound(**self.bound))
            if not isinstance(self.bound, ClippingBound):
                raise UsageError(f"a clipping bound that adapts is an object; got {self.bound!r}; plan again")
            if self.norm != NORM or self.sensitivity is not None:
                raise UsageError(
                    f"with a clipping bound that adapts rows have norm {NORM:g} and the unit is an owner's vector; the "
                    "plan has other ones; plan again",
                    code="plan",
                )
        if self.sensitivity is not None:
            check_positive("the stated sensitivity", self.sensitivity)

    @property
    def clip(self) -> float:
        return self.norm

    @property
    def adaptive(self) -> ClippingBound | None:
        return self.bound

    def unit_said(self, neighbours: str, said: str | None) -> str:
        if neighbours == "owner":
            return "one owner's whole vector replaced; the number of owners is public"
        if said is None:
            return (
                f"one unit whose change moves its owner's vector by at most {self.sensitivity:g} in L2 norm, as the "
                "caller states"
            )
        unit, rest = said.split("; ", 1)
        return f"{unit}, in means of records' vectors clipped to norm {self.clip:g}, as the caller states; {rest}"

    def held_against(self, table: "Table", schema: "Schema | None", sizes: Sequence[int] = ()) -> "Findings":
        raise UsageError(
            "a program of each owner's makes the vectors of this plan, of what it likes; so no records can be held "
            "against it; leave this out, or name a plan of records"
        )

    def outcome(self, opened: Opening) -> Outcome:
        """Nothing: the sums go to the program of the run's caller, release by release."""
        return Outcome()

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        spread = Sensitivity(l2=2 * self.norm, parts={"loss": 2 * self.norm})
        return of_means(spread, self.norm, sizes, weights, dimension)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        spread = Sensitivity(l2=self.norm, parts={"loss": self.norm})
        return of_means(spread, self.norm, sizes, weights, dimension)

    def levels(
        self,
        neighbours: str,
        sizes: Sequence[int],
        weights: Weights,
        dimension: int,
        persons: Persons | None = None,
        places: bool = False,
    ) -> dict[str, Sensitivity]:
        """Records are known of only where the promise is of records, for only then owners send means of them."""
        of_records = neighbours in ("record", "presence", "person")
        anybody = self.by_person(persons if of_records else None, sizes, weights, dimension)
        found = {"owner": self.by_owner(sizes, weights, dimension), "person": anybody}
        if self.sensitivity is not None:
            factors = owner_factors(sizes, weights)
            moved = owner_sensitivity(min(self.norm, self.sensitivity / 2), factors, sum(factors))
            found["stated"] = moved.within(dimension)
        if of_records:
            found["record"] = self.by_record(sizes, weights, dimension)
            found["presence"] = self.by_presence(sizes, weights, dimension)
        return known_of(found, places)

    def check(self, neighbours: str, dimension: int) -> None:
        super().check(neighbours, dimension)
        if (neighbours == "stated") != (self.sensitivity is not None):
            raise UsageError("a stated sensitivity and neighbours as stated go together; the plan has one; plan again")
        if self.bound is not None and neighbours != "owner":
            raise UsageError(
                "a clipping bound that adapts is of owners' whole vectors; this plan's neighbours are by "
                f"{neighbours}; plan again"
            )
