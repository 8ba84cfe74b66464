# `make demo` closes the loop on a built-in robot, `make quick` shows gap and fit in a minute; `make test` installs and passes
# the tests. All set everything up.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo quick test check bench engines setup clean

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

# other engines, 700 MB, without which their tests are skipped
engines: setup
	$(BIN)/pip install --quiet -c constraints.txt -e '.[engines]'

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev,logs,learn,view,posterior]'
	@sh .ci/system-packages
	touch $(READY)

clean:
	rm -rf .venv build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
