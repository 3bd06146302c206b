"""Memory to receive into, which nothing is written to before what arrives."""

from dpmpc.mpc.native import choice


def blank(size: int) -> bytearray:
    """So many bytes, whatever memory holds: to be given to nobody before all of them are written."""
    return bytearray(size) if choice.compiled is None else choice.compiled.blank(size)
