# `make demo` and `make test` need nothing but Python 3.11 or newer; they install the rest into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NOX := $(BIN)/nox --non-interactive
PKG ?=
TOOLS := adk calibration deepeval holodeck mutation pixie

# The tests start many short processes, which start faster if modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Empty if PYTHON is new enough, otherwise what is wrong with it. pip would print a page about packages instead.
OLD_PYTHON = $(shell $(PYTHON) -c 'import sys; print("" if sys.version_info >= (3, 11) else "is " + sys.version.split()[0])' 2>/dev/null || echo "cannot be started")
CHECK_PYTHON = $(if $(OLD_PYTHON),$(error Proctor needs Python 3.11 or newer, and $(PYTHON) $(OLD_PYTHON); name another one: make $(MAKECMDGOALS) PYTHON=python3.12))

.PHONY: demo test check lint types docs docs-check unit without-tools without-each-tool $(TOOLS:%=without-%) browser newest frameworks test-all index schema pictures benchmarks peers-equal clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py demo-reports

# Everything that proves the product. What takes one core runs beside something else; the tests take both.
test: $(VENV)/.ready
	$(MAKE) --no-print-directory --output-sync=target --jobs=2 types browser docs-check lint
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory without-tools
	$(MAKE) --no-print-directory --output-sync=target --jobs=2 newest frameworks

# The quick loop: linters, types, and the tests of what you touched; `make check PKG=results` names a package.
check: $(VENV)/.ready
	$(NOX) --session check -- $(PKG)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m proctor.evaluators.index --check
	$(BIN)/python scripts/user_strings.py --check

types: $(VENV)/.ready
	$(BIN)/mypy
	$(BIN)/python scripts/check_typing.py

unit: $(VENV)/.ready
	$(BIN)/python -m pytest -n 4

# To remove a tool is to delete its folder and its line in proctor.plugins.SHIPPED. What can miss it are the tests that name
# a tool, and the lists of everything there is; `lint` checks that nothing imports one, and `make test-all` runs all tests
# without each.
LISTS := tests/test_public_names.py tests/cli/test_cli_completion.py tests/cli/test_cli_commands.py
without-tools: $(VENV)/.ready
	$(BIN)/python scripts/without_tool.py all --naming -- -m unit -n 2 $(LISTS)

$(TOOLS:%=without-%): $(VENV)/.ready
	$(BIN)/python scripts/without_tool.py $(@:without-%=%) -- -m unit -x tests/cases tests/plugin

# All unit tests without each.
without-each-tool: $(VENV)/.ready
	for tool in $(TOOLS); do $(BIN)/python scripts/without_tool.py $$tool -- -m unit -n 4 || exit 1; done

browser newest: $(VENV)/.ready
	$(NOX) --session $@

frameworks: $(VENV)/.ready
	$(NOX) --tags usual

# What takes too long for every change: every Python with all tests, every framework.
test-all: test without-each-tool
	$(NOX) --session tests
	$(NOX) --tags large

# The documentation as a site, offline; a broken link or reference is an error.
docs: $(VENV)/.ready
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs site
	@echo "the site is in site/index.html"

docs-check: $(VENV)/.ready
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --builder dummy docs site/.check

# What is derived from the declarations of evaluators: the index of names, the schema of suites.
index schema: $(VENV)/.ready
	$(BIN)/python -m proctor.evaluators.index

# The pictures in the README and in docs/, from real runs.
pictures: $(VENV)/.ready browser
	$(BIN)/python docs/terminal_picture.py docs/terminal.svg
	$(BIN)/python docs/viewer_pictures.py docs/viewer

# The tools that Proctor is compatible with, installed from PyPI, next to Proctor on the same inputs.
peers-equal: $(VENV)/.ready
	PYTHONPATH=scripts $(BIN)/python -m peers_equal

benchmarks: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .nox site docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache demo-reports .browser benchmarks/.venvs .venv-peers

$(VENV)/.installed: pyproject.toml
	$(CHECK_PYTHON)$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .
	touch $@

# uv takes a tenth of pip's time. It does not read pip's settings, so pip is asked if uv fails.
$(VENV)/.ready: pyproject.toml
	$(CHECK_PYTHON)$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]' || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	touch $(VENV)/.installed $@
