# Two commands do everything on a machine with Python 3.11 or later and make:
#   make demo   set up .venv, then solve, certify, verify and draw the paper's synthetic instance
#   make test   set up .venv, then lint, type-check and test

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# One BLAS thread: the matrices are small, and tests run side by side.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: demo test lint bench clean

demo: $(STAMP)
	@echo "== demo: the paper's synthetic instance, solved, certified, verified (output in demo/)"
	@$(BIN)/optdesign demo --out demo

test: lint
	@echo "== tests, with compiled kernels"
	@$(BIN)/python -m pytest -n 2 --cov --cov-report=
	@echo "== kernel tests again as plain Python, for branch coverage of the kernels"
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m kernels --cov --cov-append --cov-report=term --cov-fail-under=95

lint: $(STAMP)
	@echo "== lint and type check"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(STAMP)
	@echo "== benchmarks (minutes)"
	@$(BIN)/python benchmarks/design.py

$(STAMP): pyproject.toml
	@echo "== setting up .venv (only when pyproject.toml changes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis demo
