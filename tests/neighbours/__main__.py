"""python -m tests.neighbours [N [OF [PART]]]: all pairs of N records (400), or every OF-th from PART on.

First all sources, kinds of columns and odd values as they are read, then the same by every public entry.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.neighbours import test_neighbours_at_entries as entries
from tests.neighbours import test_neighbours_of_sources as sources


def main() -> int:
    n, part, of = int(sys.argv[1]) if len(sys.argv) > 1 else 400, 0, 1
    if len(sys.argv) > 2:
        of, part = int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    begin = time.process_time()
    found, refused = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPMPC_ACCOUNT"] = folder
        tried, bad = 0, list[str]()
        places = (0, n // 10, n // 2 + 1, n - 1)
        for k, (source, kind, name) in enumerate(sources.pairs(part, of)):
            tried += 1
            if text := sources.held_against(source, kind, name, n, places[k % 4], Path(folder)):
                bad.append(f"{source}: {name} among {kind}: {text}")
                print(bad[-1], flush=True)
        print(f"| as read | {tried:,} | | {len(bad)} |", flush=True)
        by_entry = Counter[str]()
        for k, (entry, source, kind, name) in enumerate(entries.pairs(part, of)):
            text, why = entries.held_against(entry, source, kind, name, n, places[k % 4])
            by_entry[entry] += 1
            found[entry] += bool(text)
            refused[entry] += bool(why)
            if text:
                bad.append(f"{entry} of {source}: {name} among {kind}: {text}")
                print(bad[-1], flush=True)
    for entry, count in by_entry.items():
        print(f"| {entry} | {count:,} | {refused[entry]:,} | {found[entry]} |")
    print(f"{len(bad)} in which one record changed more than itself; {time.process_time() - begin:.0f} s of processor")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
