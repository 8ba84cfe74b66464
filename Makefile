# `make demo` closes the loop on a built-in robot, `make quick` shows gap and fit in a minute; `make test` installs and passes
# the tests. All set everything up.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo quick test check bench examples docs engines setup clean

demo: setup
	$(BIN)/gapless close --out out/close

quick: setup
	$(BIN)/python examples/demo.py

test: setup
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadgroup

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/pip install --quiet -c constraints.txt -e '.[bench]'
	for name in $$($(BIN)/python -m bench); do $(BIN)/python -m bench.$$name --json || exit 1; done

# the short scripts of docs/examples.md, each in seconds
examples: setup
	for name in measure_gap fit_model design_motion draw_worlds train_and_check; do $(BIN)/python examples/$$name.py || exit 1; done

# the docs as a site that works from a disk: out/site/index.html
docs: setup
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# other engines, 700 MB, without which their tests are skipped
engines: setup
	$(BIN)/pip install --quiet -c constraints.txt -e '.[engines]'

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev,logs,learn,view,deploy,posterior,scale]'
	@sh .ci/system-packages
	touch $(READY)

clean:
	rm -rf .venv build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
