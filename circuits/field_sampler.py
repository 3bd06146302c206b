"""How a sampler with an arithmetic circuit is drawn over F_p: the groups its samples share deep bits in, and what that
adds to its certificate."""


from dpmpc.lazy import dataclass

from .arithmetic import Arithmetic, Values
from .deep import Deep
from .sampler import Certificate, OverField

FEW = 1 << 11  # up to so many samples, rounds cost more than products


@dataclass(frozen=True)
class FieldSampler:
    """The law and the tables of `sampler`, drawn by its arithmetic circuit; `deep` None shares no bits."""

    sampler: OverField
    deep: Deep | None = Deep()

    @property
    def group(self) -> float:
        """What shared deep bits add to the distance of a sample: N times this pays for all groups of N samples, whole,
        see `deep`. Outside the event that it pays for, everything that is proved of `sampler` holds: its largest value,
        and what its certificate says of single samples."""
        return self.deep.charge(self.sampler.comparisons) if self.deep else 0.0

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
        return await self.sampler.arithmetic(engine, self.deep, size, fast=fast)
