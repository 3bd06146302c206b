"""Why records are refused that are not as many as a plan says."""

from collections.abc import Sequence

OTHER_SIZES = "owners hold as many training records as the plan says; an owner has another number; plan again"


def other_sizes(planned: Sequence[int], sizes: Sequence[int]) -> str:
    """Why a run of so many records stops, in a line."""
    return (
        f"owners hold as many training records as the plan says, {_some(planned)}; these are {_some(sizes)}; check "
        "the file and <<test_fraction>>, or plan again"
    )


def _some(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:8])) + (f" and {len(sizes) - 8} more" if len(sizes) > 8 else "")
