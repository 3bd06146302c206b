"""What a conformance test raises."""


class ConformanceError(AssertionError):
    """Something does not do what it says."""


def hold(kept: bool, what: str) -> None:
    """Errors: ConformanceError with the rule that is broken."""
    if not kept:
        raise ConformanceError(what)
