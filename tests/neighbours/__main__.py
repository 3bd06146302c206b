"""python -m tests.neighbours [N]: all pairs of all sources, kinds of columns and odd values, of N records (3,000)."""

import sys
import tempfile
from pathlib import Path

from tests.neighbours.test_neighbours_of_sources import held_against, pairs


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    found, tried = list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for k, (source, kind, name) in enumerate(pairs(0, 1)):
            tried += 1
            if text := held_against(source, kind, name, n, (0, n // 10, n // 2 + 1, n - 1)[k % 4], Path(folder)):
                found.append(f"{source}: {name} among {kind}: {text}")
                print(found[-1], flush=True)
    print(f"{tried} pairs of {n} records; {len(found)} in which one record changed more than itself")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
