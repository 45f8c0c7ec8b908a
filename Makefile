# Everything starts from a plain machine with Python 3.11+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all slow lint setup clean

demo: $(STAMP)  ## install, then train on a table and print the front
	$(BIN)/python examples/demo.py

test: lint  ## lint, types and the fast tier of tests
	$(BIN)/python -m pytest -q

test-all: test slow  ## and the slow tier

slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow $(if $(SLICE),--slice $(SLICE))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

setup: $(STAMP)  ## only make the virtual environment

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,bench,boosting]"
	touch $(STAMP)

clean:
	rm -rf $(VENV)
