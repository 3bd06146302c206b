"""How a discrete sampler is drawn over F_p: its arithmetic circuit, the groups its samples share deep bits in, and what
that adds to its certificate."""

from dataclasses import dataclass

from .arithmetic import Arithmetic, Values
from .deep import Deep
from .field_gaussian import sample_gaussian
from .field_laplace import sample_laplace
from .gaussian import GaussianPlan
from .sampler import Certificate, DiscreteSampler

FEW = 1 << 11  # up to so many samples, rounds cost more than products


@dataclass(frozen=True)
class FieldSampler:
    """The law and the tables of `sampler`, drawn by arithmetic circuits; `deep` None shares no bits."""

    sampler: DiscreteSampler
    deep: Deep | None = Deep()  # noqa: RUF009  (it is frozen)

    @property
    def comparisons(self) -> int:
        """Of a sample: one for each table, and one for zero in the Laplace law."""
        plan = self.sampler.plan
        return 1 if isinstance(plan, GaussianPlan) else len(plan.digits) + 1

    @property
    def group(self) -> float:
        """What shared deep bits add to the distance of a sample: N times this pays for all groups of N samples, whole,
        see `deep`. Outside the event that it pays for, everything that is proved of `sampler` holds: its largest value,
        and what its certificate says of single samples."""
        return self.deep.charge(self.comparisons) if self.deep else 0.0

    @property
    def certificate(self) -> Certificate:
        """What is proved. N times `total_variation` bounds the distance of the joint law of N samples from that of N
        independent exact ones."""
        own = self.sampler.certificate
        return own | {"total_variation": float(own["total_variation"]) + self.group, "group": self.group}

    def lanes(self, samples: int) -> int:
        """Lanes that make so many samples: one a group, or one a sample."""
        return self.deep.groups(samples) if self.deep else samples

    async def circuit(self, engine: Arithmetic, samples: int) -> Values:
        """(size, *tail): at least so many samples, as field elements, on an engine of `lanes(samples)` lanes."""
        size, fast = self.deep.size(samples) if self.deep else 1, samples <= FEW
        plan = self.sampler.plan
        if isinstance(plan, GaussianPlan):
            return await sample_gaussian(engine, plan, self.deep, size, fast=fast)
        return await sample_laplace(engine, plan, self.deep, size, fast=fast)
