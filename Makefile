# `make demo` and `make test` are all the set-up there is: Python 3.11 or newer, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STATETRACK := $(CURDIR)/$(BIN)/statetrack
MODELS := tests/test_every_model.py tests/test_checking.py tests/test_initialisation.py tests/test_ops.py tests/test_training.py
QUICK := tests/test_architecture.py tests/test_every_model.py tests/test_cli_commands.py

# Modules are compiled when they are first imported: most of what is installed never is.
INSTALL := install -q --disable-pip-version-check --no-compile -c constraints.txt

# New processes of tests find their modules compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick models lint docs generated benchmarks fuzz claims evidence recorded record reproductions cluster clean

demo: $(VENV)/installed
	rm -rf demo && mkdir demo
	cd demo && $(STATETRACK) gen
	cd demo && $(STATETRACK) train --model bilinear-cp --rank 64
	cd demo && $(STATETRACK) eval --length 500
	cd demo && $(STATETRACK) reproduce hierarchy

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

quick: $(VENV)/installed-dev
	$(BIN)/ruff check -q .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -m quick $(QUICK)

# The tests of models where no compiler can be found, with numba and without.
models: $(VENV)/installed-dev
	CC=false CXX=false PATH=$(CURDIR)/$(BIN) $(BIN)/python -m pytest -q $(MODELS)
	CC=false CXX=false PATH=$(CURDIR)/$(BIN) $(BIN)/python -m pytest -q --without numba $(MODELS)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed-dev
	$(BIN)/sphinx-build -q -W docs docs/_build

generated: $(VENV)/installed-dev
	$(BIN)/python docs/generated.py
	$(BIN)/python docs/gallery.py
	$(BIN)/python docs/drawings.py

benchmarks: $(VENV)/installed-dev
	$(BIN)/python -m tests.benchmarks.ratios

fuzz: $(VENV)/installed-dev
	$(BIN)/python -m tests.fuzz --cases 10000

claims: $(VENV)/installed-dev
	$(BIN)/python -m tests.claims

kills: $(VENV)/installed-dev
	$(BIN)/python -m tests.faults.sweeps --points 200 --kills 10

evidence: $(VENV)/installed-dev
	$(BIN)/python -m tests.evidence

# Which recorded tables still hold, and why others do not.
recorded: $(VENV)/installed-dev
	$(BIN)/python docs/recorded.py

# `make record SUITES="one another"`: measures and records them anew, and writes all pages.
record: $(VENV)/installed-dev
	$(BIN)/python docs/recorded.py record $(SUITES)

# The pages of reproductions, their sums and the ledger, from what is recorded.
reproductions: $(VENV)/installed-dev
	$(BIN)/python docs/recorded.py pages
	$(BIN)/python docs/learned.py

cluster: $(VENV)/installed-dev
	$(BIN)/python -m tests.faults.cluster

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip $(INSTALL) -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/pip $(INSTALL) -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo docs/_build build dist
