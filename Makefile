# Needs make and Python 3.11 or later; everything else comes from pip.
#   make demo [LIMIT=80]  evaluate small speech models on the embedded mini set
#   make arena [LIMIT=32] spoken answers, battles and a leaderboard on the embedded mini set
#   make test [WORKERS=8] lint, types, tests
#   make coverage         the tests, somewhat slower, and which lines they leave out
#   make bench            how fast and frugal scoring is, about eight minutes on two cores

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip
LIMIT ?=
WORKERS ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=10

.PHONY: env lint types test coverage demo arena bench clean

env: .venv/stamp

.venv/stamp: pyproject.toml setup.py constraints.txt requirements/demo.txt $(wildcard startup/*)
	$(PYTHON) -m venv .venv
	$(PIP) install --quiet --upgrade pip
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/demo.txt
	$(PIP) install --quiet -c constraints.txt -e '.[arena,dev]'
	touch $@

lint: env
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# Type checkers read folders: link the installed layout, adapters/ inside s2s_tasks/.
types: env
	rm -rf build/types && mkdir -p build/types/s2s_tasks
	for part in s2s_tasks/* adapters task_configs; do \
	  ln -s "$(CURDIR)/$$part" build/types/s2s_tasks/; done
	cd build/types && "$(CURDIR)/$(BIN)/mypy" --config-file ../../pyproject.toml \
	  --cache-dir ../../.mypy_cache -p s2s_tasks

test: lint types
	$(PYTEST)

coverage: env
	$(PYTEST) --cov --cov-report=term-missing:skip-covered

demo: env
	$(BIN)/s2s-tasks demo $(if $(LIMIT),--limit $(LIMIT))

arena: env
	$(BIN)/s2s-tasks arena demo $(if $(LIMIT),--limit $(LIMIT))

bench: env
	$(BIN)/python -m benchmarks.scoring

clean:
	rm -rf .venv build dist *.egg-info .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
