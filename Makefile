.PHONY: demo test test-again test-fast check docs tutorials evidence wheel release audit bench examples clean
PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS ?=  # a file of versions to install; without it pip chooses
# Three workers for two cores, as some tests wait; worksteal keeps a module's tests, and what they set up, together.
CORES = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 2)')
WORKERS = $(shell expr 3 '*' $(CORES) / 2)
PARALLEL = -n $(WORKERS) --dist worksteal
# Bytecode is kept even where the environment says otherwise: compiling costs each process that starts as much as the
# rest of its imports. The workers share the cores; a linear algebra library that takes all of them for each spins.
unexport PYTHONDONTWRITEBYTECODE
test test-again test-fast: export OPENBLAS_NUM_THREADS = 1
test test-again test-fast: export OMP_NUM_THREADS = 1
FAST := tests/circuits tests/intake tests/records tests/learning tests/noise tests/privacy

# What a user needs, and no more: dpmpc with its dependencies, and scikit-learn. A line a package. The shell's `time` says
# what each step took: what is not the processor's is the network's, or another process's.
demo .venv/.user: SHELL = bash
demo .venv/.user: export TIMEFORMAT = ... %U + %S s of the processor in %R s by the clock
demo: .venv/.user
	time $(BIN)/dpmpc train --data breast-cancer --owners 5 --method gradient --epsilon 1 --delta 1e-4 -M 3 --out runs/demo --overwrite
	$(BIN)/dpmpc verify runs/demo --structure

test: .venv/.ready
	$(BIN)/python -m pytest $(PARALLEL)

# What failed, each alone: fails where one does again. On a machine that does much else a process may get no time for
# as long as a test waits; which tests were too tight for it stands in the lines of the first run.
test-again: .venv/.ready
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

# The inner loop: what shows a wrong circuit, sampler, accountant or reader first. No test waits: a worker a core.
test-fast: .venv/.ready
	$(BIN)/python -m pytest -n $(CORES) --dist worksteal -m "not slow" $(FAST)

check: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=experiments $(BIN)/lint-imports

# build/site/: the documentation, which opens from the file system. A warning is an error: a link that leads nowhere, a
# page that no menu has.
docs: .venv/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m website.check build/site

# Every page under docs/ that runs, with what it prints written into it.
tutorials: .venv/.ready
	$(BIN)/python -m website.tutorials --write

# Every command that README and docs name, at the size that they name: hours. Goes on where it was stopped; fails where
# one fails, or a stated figure is out of its range. `make evidence PART=verify` runs those that hold this text.
PART ?=
evidence: .venv/.ready
	$(BIN)/python -m website.evidence --run "$(PART)"

# dist/: the sources, and the wheel that is built from them.
wheel: .venv/.ready
	rm -rf dist
	$(BIN)/python -c 'import setuptools.build_meta as b; b.build_sdist("dist")' >/dev/null
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist dist/dpmpc-*.tar.gz

# Version, date, build, checks, commit and tag, on a clean main; pushes nothing.
release: .venv/.ready
	$(BIN)/python .ci/release.py $(VERSION)

# Known weaknesses of the tested versions; asks the registry's database.
audit: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --requirement .ci/constraints.txt --no-deps --disable-pip

bench: .venv/.ready
	$(BIN)/dpmpc bench all --quick

# Every example; those that need a package or a server that is not here are left out and named. `make examples
# EXTRAS=torch` installs a heavy extra first.
EXTRAS ?=
examples: .venv/.ready
	$(if $(EXTRAS),$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]')
	$(BIN)/python examples/run_all.py

# Without bytecode: most of what comes is never imported, and what is compiles itself where it is.
.venv/.user: pyproject.toml setup.py $(wildcard dpmpc/mpc/native/*.[ch] dpmpc/records/*.c)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpmpc needs CPython 3.11 or later; set PYTHON=python3.11")'
	@echo "1 of 3: an environment in .venv"
	time $(PYTHON) -m venv .venv
	@echo "2 of 3: dpmpc, what it needs, scikit-learn: some 400 MB, a line a package"
	time $(BIN)/python -m pip install --no-compile --progress-bar off --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[sklearn]'
	@echo "3 of 3: a first model"
	touch $@

.venv/.ready: pyproject.toml experiments/pyproject.toml setup.py $(wildcard dpmpc/mpc/native/*.[ch] dpmpc/records/*.c)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpmpc needs CPython 3.11 or later; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[dev]' -e ./experiments
	touch $@ .venv/.user

clean:
	rm -rf .venv build dist *.egg-info dpmpc/mpc/native/*.so dpmpc/records/*.so
