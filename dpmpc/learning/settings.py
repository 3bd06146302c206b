"""The settings of learning a model: what is said of them, and those that a plan holds as they were said."""

from typing import ClassVar, Literal

from dpmpc.lazy import dataclass
from dpmpc.learning.losses import RESIDUAL_CLIP
from dpmpc.privacy.checks import check_nonnegative, check_positive
from dpmpc.settings import Settings, setting, within

Average = Literal["none", "tail", "all"]
Spread = Literal["theta", "fixed"]
MOST_MOMENTUM = 0.999


@dataclass(frozen=True, kw_only=True)
class Descent(Settings):
    """How vectors and iterates come about."""

    SECTION: ClassVar[str] = "learning"

    step: float | None = setting(
        None,
        "Step length of the gradient method.",
        check=check_positive,
        rule="as advised, for the iterations there are; where nothing is advised, 1/(L + lam)",
        example="1.0",
        brief="without it, as advised",
    )
    momentum: float | None = setting(
        None,
        "The part of its last move that an iterate repeats, beside its step: longer descents in fewer releases.",
        check=within(0, MOST_MOMENTUM, "0.9 is usual"),
        rule="as advised; where nothing is advised, none",
        example="0.9",
        brief="the part of the last move that the next one repeats",
    )
    radius: float | None = setting(
        None,
        "Project iterates, or local models, onto the ball of this radius.",
        check=check_positive,
        example="10.0",
        brief="project onto the ball of this radius",
    )
    residual_clip: float = setting(
        RESIDUAL_CLIP,
        "Regression: residuals count up to this part of half the target's range (beyond it the loss is linear), so "
        "that G is finite.",
        check=check_positive,
        brief="regression",
    )
    solver_tolerance: float = setting(
        1e-8,
        "Output perturbation: the gradient norm that every local optimum must reach; enters the sensitivity.",
        check=check_nonnegative,
        brief="output perturbation",
    )
    spread: Spread = setting(
        "theta",
        "theta: gradients of classes are scaled by how far two records' can lie apart at the public iterate, which is "
        "less noise for the same promise. fixed: by 2G, as printed.",
        brief='or "fixed": gradients of two records are taken to lie 2G apart at every iterate',
    )
