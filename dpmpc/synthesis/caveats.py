"""What every synthetic table says of itself, in its first lines and in its metadata."""

from collections.abc import Sequence

CAVEATS = (
    "These rows are synthetic: drawn from a model of noisy tables. None is a record of anybody.",
    "Good for: trying out programs, teaching, first looks at tables of two columns, models of the target column.",
    "Not for: answers. An interval computed from these rows as if they were real covers some 29 % of a nominal 95 %; "
    "ask `dpmpc stats --of` this run, whose intervals know the noise and cost nothing.",
    "Rare groups are worse off than common ones, and effects in them are drawn towards the whole; some 7 % of the rows "
    "hold a pair of values that no real row has.",
)


def first_lines(guarantee: str, notes: Sequence[str], target: str | None) -> list[str]:
    """The lines that stand before any synthetic row."""
    said = CAVEATS if target is not None else [line.replace(", models of the target column", "") for line in CAVEATS]
    return [*said, f"Privacy: {guarantee}", *notes]
