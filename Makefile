.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/runtime ## Install the program into .venv (.venv/bin/holdfast)

PARTS := client $(wildcard pipelines/*)

.venv/runtime: requirements/base.txt pyproject.toml $(PARTS:=/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Holdfast needs Python 3.11 or later; run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/base.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-deps -e . $(addprefix -e ./,$(PARTS))
	@touch $@

.venv/dev: requirements/dev.txt .venv/runtime
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

.venv/bench: requirements/bench.txt .venv/dev
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	@touch $@

# Two versions of the server behind the sites of `meetings`; they share no packages with us.
.venv/datasette-0 .venv/datasette-1: .venv/%: requirements/%.txt .venv/runtime
	@test -x $@/bin/python || $(PYTHON) -m venv $@
	$@/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

up: install ## Run pages, API and workers with sample data, at 127.0.0.1:8000 (or PORT=8080)
	@$(BIN)/holdfast up --demo --port $(PORT)

TEST_PROGRAMS := .venv/dev .venv/datasette-0 .venv/datasette-1

# The pages have a run of their own: more than two browsers at once are slower than two.
define run_tests
	@tests/servers
	$(BIN)/pytest $(1) -n 4 --dist worksteal --ignore=tests/web
	$(BIN)/pytest $(1) -n 2 tests/web
endef

test: $(TEST_PROGRAMS) ## Run the tests on real servers that they start, without the long enumerations (counted at the end)
	$(call run_tests,--brief)

test-all: $(TEST_PROGRAMS) ## Run every test with every variant, on every database
	$(call run_tests)

test-fast: .venv/dev ## Run the tests that need no server, without the long enumerations
	$(BIN)/pytest --brief -m "not postgres and not rabbit and not s3 and not browser and not tools and not datasette and not slow"

chaos: .venv/dev ## Make workers and every part of a fleet fail for a few minutes, and run test-all with values chosen at random
	@tests/servers
	$(BIN)/python -m tests.chaos.long_run
	HYPOTHESIS_EXAMPLES=100 $(MAKE) test-all

fuzz: .venv/dev ## Send 50,000 random requests to API and pages as every role; none may fail, leak or be slow
	$(BIN)/python -m tests.api.fuzzing --requests 50000

check: .venv/dev ## Format, lint, English of docstrings, types and import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/docstrings.py
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

sizes: .venv/runtime ## Print files, functions and ideas of each folder, to look at
	@$(BIN)/python tools/sizes.py

bench: .venv/bench .venv/datasette-0 ## Measure Holdfast, plain SQL and comparable projects
	@bench/servers
	$(BIN)/python -m bench

dist: .venv/dev ## Build wheels and sdists of all distributions, and a bill of materials, into dist/
	rm -rf dist
	for part in . $(PARTS); do (cd $$part && $(CURDIR)/$(BIN)/hatchling build -d $(CURDIR)/dist) || exit 1; done
	$(BIN)/python tools/sbom.py > dist/sbom.json

docs: .venv/dev ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

pins: ## Compile requirements/*.txt again (needs uv); the largest set decides for all
	$(COMPILE) requirements/bench.in -o requirements/bench.txt
	for name in base core build dev; do $(COMPILE) -c requirements/bench.txt requirements/$$name.in -o requirements/$$name.txt; done
	for name in datasette-0 datasette-1; do $(COMPILE) requirements/$$name.in -o requirements/$$name.txt; done

clean: ## Remove everything that the build created
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.PHONY: help install up test test-all test-fast chaos fuzz check format sizes bench dist docs pins clean
