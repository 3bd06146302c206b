"""python -m tests.neighbours [N [OF [PART]]]: tables of N records (400), all of them or every OF-th from PART on.

First all sources, kinds of columns and odd values as they are read, a pair each, files of texts in which a record is
another line, and odd values of declared types, a pair each, and texts as words have votes of them; then by every
public entry, up to twelve odd values in one table: a table that differs by more than its odd records is split until
one value is left.
"""

import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.neighbours import test_neighbours_at_entries as entries
from tests.neighbours import test_neighbours_of_lines as lines
from tests.neighbours import test_neighbours_of_sources as sources
from tests.neighbours import test_neighbours_of_types as types
from tests.neighbours import test_neighbours_of_words as words


def main() -> int:
    n, part, of = int(sys.argv[1]) if len(sys.argv) > 1 else 400, 0, 1
    if len(sys.argv) > 2:
        of, part = int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    begin, wrong, values = time.process_time(), 0, defaultdict[str, int](int)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPMPC_ACCOUNT"] = folder
        places = (0, n // 10, n // 2 + 1, n - 1)
        for k, (source, kind, name) in enumerate(sources.pairs(part, of)):
            values["as read"] += 1
            if text := sources.held_against(source, kind, name, n, places[k % 4], Path(folder)):
                wrong += 1
                print(f"{source}: {name} among {kind}: {text}", flush=True)
        print(f"| as read | {values['as read']:,} | {values['as read']:,} | | {wrong} |", flush=True)
        voted, declined, far = words.all_held(part, of, n, Path(folder))
        print(*far, f"| words | {voted:,} | {voted:,} | {declined:,} | {len(far)} |", sep="\n", flush=True)
        wrong += len(far)
        tried, odd = lines.all_held(part, of)
        print(*odd, f"| other lines | {tried:,} | {tried:,} | | {len(odd)} |", sep="\n", flush=True)
        typed, beside = types.all_held(part, of, n)
        many = typed.total()
        text = f"| declared types | {many:,} | {many:,} | {typed['refused']:,} | {len(beside)} |"
        print(*beside, text, sep="\n", flush=True)
        wrong += len(odd) + len(beside)
        found = defaultdict[str, entries.Found](entries.Found)
        for k, case in enumerate(entries.cases(part, of)):
            values[case.entry] += len(case.names)
            there, before = found[case.entry], len(found[case.entry].wrong)
            entries.held_against(case, n, places[k % 4], there)
            for text in there.wrong[before:]:
                print(text, flush=True)
    for entry, each in found.items():
        wrong += len(each.wrong)
        print(f"| {entry} | {values[entry]:,} | {each.tables:,} | {each.refused:,} | {len(each.wrong)} |")
    print(f"{wrong} in which one record changed more than itself; {time.process_time() - begin:.0f} s of processor")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
