"""`python -m tests.intake.corpus [TABLES]`: judges all cases, and so many mutations (2,000)."""

import sys
import tempfile
from pathlib import Path

from tests.intake.corpus.cases import cases
from tests.intake.corpus.judge import judged
from tests.intake.corpus.mutations import mutation
from tests.intake.corpus.ugly import ugly

tables = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
odd = 0
with tempfile.TemporaryDirectory() as folder:
    for case in (*cases(), *ugly(), *map(mutation, range(tables))):
        for text in judged(case, Path(folder)):
            odd += 1
            print(f"{case.name}: {text}", flush=True)
print(f"{len(cases()) + len(ugly())} cases, {tables} mutations, {odd} wrong")
sys.exit(bool(odd))
