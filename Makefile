# Everything starts from a plain machine with Python 3.11+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two processes of one thread each; neighbours stay together, as they share what was fitted.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

.PHONY: demo test test-all slow reproduce-slice lint release-check setup clean

demo: $(STAMP)  ## install, then explore Adult: the front as a table, and a report to open
	rm -rf build/demo
	$(BIN)/apfex explore adult --out build/demo

test: lint  ## lint, types and the fast tier of tests
	$(PYTEST)

test-all: test slow  ## and the slow tier

slow: $(STAMP)
	$(PYTEST) -m slow $(if $(SLICE),--slice $(SLICE))

reproduce-slice: $(STAMP)  ## a small part of the paper's experiments, for real
	rm -rf build/reproduction
	$(BIN)/apfex reproduce table2 --datasets heart,german --seeds 1 --out build/reproduction

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(BIN)/pyright

release-check: $(STAMP)  ## build, install into clean environments, try, and look at what is written
	$(BIN)/python scripts/release.py $(RELEASE)

setup: $(STAMP)  ## only make the virtual environment

$(STAMP): pyproject.toml reproduction/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,bench]" --editable reproduction
	@command -v chromium > /dev/null || echo "No chromium here: the browser tests of the report are skipped (apt-get install chromium)."
	touch $(STAMP)

clean:
	rm -rf $(VENV)
