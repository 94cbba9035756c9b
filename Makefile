# Every target sets up what it needs in .venv; nothing else has to be installed.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
WARM    := $(VENV)/.warm
SPARK   := $(VENV)/.spark
KERNELS := $(wildcard src/evermat/engines/embedded/*.py src/evermat/engines/embedded/kernels/*.py)
WORKERS ?= 2
SEED    ?= 1
SECONDS ?= 60
UPDATES ?= 1000
PROGRAMS ?= 2000
FILES   ?= 500
BENCH   ?= materialise
ARGS    ?=

SPARK_TESTS := tests/spark tests/algebra tests/equality tests/modules tests/maintenance/test_agreement.py \
	tests/lake tests/pipeline tests/streaming

JAVA := command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || \
	{ echo "Spark needs Java 17 or newer: apt install openjdk-17-jre-headless (or what your system calls it), or set JAVA_HOME"; exit 1; }

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: $(WARM) $(SPARK) ## the main examples: materialise and update; a pipeline on Spark and embedded
	@$(BIN)/evermat run examples/access/rules.dl --facts examples/access/facts \
		--then examples/access/monday.toml $(ARGS)
	@$(JAVA)
	@$(BIN)/python examples/pipeline/both_engines.py

.PHONY: test
test: $(WARM) $(SPARK) ## every claim and every planted bug, with few random cases (ARGS=… is handed to pytest)
	@$(JAVA)
	@PYTHONHASHSEED=$(SEED) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q -m "not slow" --randomly-seed=$(SEED) $(ARGS)

.PHONY: test-all
test-all: $(WARM) $(SPARK) ## all random cases, what is slow, and all shared tests on Spark
	@$(JAVA)
	@EVERMAT_TEST_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q -m "not slow" $(ARGS)
	@EVERMAT_TEST_PROFILE=thorough $(BIN)/python -m pytest -q -m slow $(ARGS)
	@$(MAKE) --no-print-directory test-spark

.PHONY: test-spark
test-spark: $(SPARK) ## the shared tests on the Spark engine: contract, algorithms, programs
	@$(JAVA)
	@$(BIN)/python -m pytest -q -m "spark and not slow" --engines=spark --spark-share=1 $(SPARK_TESTS) $(ARGS)
	@EVERMAT_SPARK_SMALL=2 EVERMAT_SPARK_HASHED=0 $(BIN)/python -m pytest -q -m "spark and not slow" --engines=spark tests/spark $(ARGS)

.PHONY: test-slow
test-slow: $(WARM) $(SPARK) ## clusters of two workers, killed executors and drivers, restarted streams, the built wheel
	@$(JAVA)
	@$(BIN)/python -m pytest -q -m slow --engines=spark,embedded tests/spark tests/lake tests/pipeline tests/streaming tests/embedded/test_wheel.py $(ARGS)

.PHONY: wheel
wheel: $(READY) ## build a wheel with machine code for this platform into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: check
check: $(SPARK) ## format, lint, types, import layers, spelling
	$(BIN)/ruff format --check src tests examples
	$(BIN)/ruff check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs examples README.md CHANGELOG.md CONTRIBUTING.md

.PHONY: format
format: $(READY) ## put the code into form
	$(BIN)/ruff format src tests examples
	$(BIN)/ruff check --fix src tests examples

.PHONY: bench
bench: $(WARM) ## measure (BENCH=materialise|maintain, ARGS=…)
	@$(BIN)/evermat bench $(BENCH) $(ARGS)

.PHONY: site
site: $(READY) ## build the documentation into out/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo out/site/index.html

.PHONY: pictures
pictures: $(READY) ## make the pictures of the console anew (needs Chromium)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group browser
	@EVERMAT_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/server/test_console.py $(ARGS)

.PHONY: fuzz
fuzz: $(WARM) ## random programs and updates for SECONDS=60; failing cases are saved
	@$(BIN)/python tests/fuzz.py --seconds $(SECONDS) $(ARGS)

.PHONY: fuzz-input
fuzz-input: $(WARM) ## mutated programs and files (PROGRAMS=2000 FILES=500); harmful ones are saved
	@PYTHONPATH=tests $(BIN)/python tests/fuzz_input.py --programs $(PROGRAMS) --files $(FILES) --save out/fuzz-input $(ARGS)

.PHONY: fuzz-states
fuzz-states: $(WARM) ## states with damaged files for SECONDS=60
	@PYTHONPATH=tests $(BIN)/python tests/damage_state.py --seconds $(SECONDS) $(ARGS)

.PHONY: fuzz-interrupts
fuzz-interrupts: $(WARM) ## updates broken off at every line, and without memory (UPDATES=1000)
	@PYTHONPATH=tests $(BIN)/python tests/broken_off_updates.py --updates $(UPDATES) $(ARGS)
	@PYTHONPATH=tests $(BIN)/python tests/short_of_memory.py --updates $$(($(UPDATES) / 20))

.PHONY: setup
setup: $(WARM) ## only set up

.PHONY: clean
clean: ## remove the environment, caches and results
	rm -rf $(VENV) build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Dependency groups need a pip newer than the one some Pythons bring along.
$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e ".[bench,lake,pandas,polars,server]" --group dev
	@touch $@

$(SPARK): $(READY)
	@echo "installing Spark (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[spark]"
	@touch $@

# Machine code is found by the content of the sources: nothing is compiled twice.
$(WARM): $(READY) $(KERNELS)
	@$(BIN)/evermat warm-up
	@touch $@
