.PHONY: demo test test-fast check wheel bench examples clean
PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS ?=  # a file of versions to install; without it pip chooses
# Three workers for two cores, as some tests wait; worksteal keeps a module's tests, and what they set up, together.
WORKERS = $(shell $(PYTHON) -c 'import os; print(3 * (os.cpu_count() or 2) // 2)')
PARALLEL = -n $(WORKERS) --dist worksteal
# Bytecode is kept even where the environment says otherwise: compiling costs each process that starts as much as the
# rest of its imports. The workers share the cores; a linear algebra library that takes all of them for each spins.
unexport PYTHONDONTWRITEBYTECODE
test test-fast: export OPENBLAS_NUM_THREADS = 1
FAST := tests/circuits tests/data tests/learning tests/noise tests/privacy

demo: .venv/.ready
	$(BIN)/dpmpc train --data breast-cancer --owners 5 --method gradient --epsilon 1 --delta 1e-4 --iterations 50 -M 3 --out runs/demo --overwrite
	$(BIN)/dpmpc verify runs/demo --structure

test: .venv/.ready
	$(BIN)/python -m pytest $(PARALLEL)

# The inner loop: no test that starts processes for long.
test-fast: .venv/.ready
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(FAST)

check: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# dist/: the sources, and the wheel that is built from them.
wheel: .venv/.ready
	rm -rf dist
	$(BIN)/python -c 'import setuptools.build_meta as b; b.build_sdist("dist")' >/dev/null
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist dist/dpmpc-*.tar.gz

bench: .venv/.ready
	$(BIN)/dpmpc bench all --quick

# Every example; those that need a package or a server that is not here are left out and named. `make examples
# EXTRAS=torch` installs a heavy extra first.
EXTRAS ?=
examples: .venv/.ready
	$(if $(EXTRAS),$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]')
	$(BIN)/python examples/run_all.py

.venv/.ready: pyproject.toml setup.py $(wildcard dpmpc/mpc/native/*.[ch])
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpmpc needs CPython 3.11 or later; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info dpmpc/mpc/native/*.so
