.PHONY: demo test check bench examples clean
PYTHON ?= python3
BIN := .venv/bin

demo: .venv/.ready
	$(BIN)/dpmpc train --data breast-cancer --owners 5 --method gradient --epsilon 1 --delta 1e-4 --iterations 50 -M 3 --out runs/demo --overwrite
	$(BIN)/dpmpc verify runs/demo --structure

test: .venv/.ready
	$(BIN)/python -m pytest

check: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.ready
	$(BIN)/dpmpc bench all --quick

# Every example; those that need a package or a server that is not here are left out and named. `make examples
# EXTRAS=torch` installs a heavy extra first.
EXTRAS ?=
examples: .venv/.ready
	$(if $(EXTRAS),$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]')
	$(BIN)/python examples/run_all.py

.venv/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpmpc needs CPython 3.11 or later; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build *.egg-info
