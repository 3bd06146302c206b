from typing import Any

# Arrays are what the buffer protocol gives: values and ends of doubles, counts of int64, bits and registers of bytes.
def look(
    values: Any, there: Any, first: int, codes: Any, counts: Any, ends: Any, of_code: Any, registers: Any, /
) -> None: ...
