"""`python -m tests.intake.corpus [TABLES [FIRST]]`: judges all cases, and so many mutations (2,000), by seeds."""

import itertools
import sys
import tempfile
from pathlib import Path

from tests.intake.corpus.cases import cases
from tests.intake.corpus.exports_more import exports_more
from tests.intake.corpus.judge import judged
from tests.intake.corpus.mutations import mutation
from tests.intake.corpus.programs import programs
from tests.intake.corpus.ugly import ugly

tables, first = (int(given) for given in (*sys.argv[1:], *("2000", "0")[len(sys.argv) - 1 :]))
known, odd = (*cases(), *ugly(), *exports_more(), *programs()), 0
with tempfile.TemporaryDirectory() as folder:
    for case in itertools.chain(known, map(mutation, range(first, first + tables))):
        for text in judged(case, Path(folder)):
            odd += 1
            print(f"{case.name}: {text}", flush=True)
print(f"{len(known)} cases, {tables} mutations, {odd} wrong")
sys.exit(bool(odd))
