# Two commands do everything on a machine with Python 3.11 or later and make:
#   make demo   set up .venv, then plan and verify an experiment in two plants, and solve the paper's instance
#   make test   set up .venv, then lint, type-check and test (`make slow` runs the slow tests)

SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# One BLAS thread: the matrices are small, and tests run side by side.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

# What is measured: a commit, and whether anything that runs differs from it.
COMMIT = $$(git describe --always)$$(git diff --quiet HEAD -- optdesign bandits benchmarks tests || echo -dirty)

# Every table of docs/measured that a benchmark prints, whole, in one run of one commit.
TABLES := first_use design suite before classical wide large machines exact search_ablation rounding evaluation fedpe regret baselines movielens ablation

# Tests of texts, which are a part of lint, and files with tests that also run as plain Python.
LINT := tests/test_docstrings.py tests/test_language.py
KERNELS = $$(grep -rl --include='test_*.py' 'mark\.kernels' tests)

# Pictures of the page on the paper's experiments.
EXPERIMENTS := fig1a fig1b fig1c fig2a fig2b fig2c fig3a fig3b fig3c fig4a fig4b fig4c fig5 table1 table2 \
	shared protocols clients lowerbound

.PHONY: demo test slow lint kernels hooks hunt mutants bench experiments times docs look package clean

demo: $(STAMP)
	@echo "== demo: an experiment in two plants, then the paper's synthetic instance (output in demo/)"
	@$(BIN)/optdesign demo --out demo

# Lint uses one core, and kernels are compiled once: two processes of pytest would compile many of them twice.
test: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint kernels
	@echo "== tests, with compiled kernels"
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(LINT:%=--ignore %) --cov --cov-report=
	@echo "== kernel tests again as plain Python, for branch coverage of the kernels"
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "kernels and not slow" $(KERNELS) --cov --cov-append --cov-report=term --cov-fail-under=95

slow: $(STAMP)
	@echo "== slow tests"
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

hunt: $(STAMP)
	@echo "== hunt for false claims of every public function, about 15 minutes: goes to docs/measured/hunt.txt"
	@set -o pipefail; commit=$(COMMIT); { echo "measured at commit $$commit"; echo; \
		PYTHONPATH=tests/optdesign $(BIN)/python -m hunt; } | tee docs/measured/hunt.txt

mutants: $(STAMP)
	@echo "== mutants: whether tests notice small changes, about half an hour: goes to docs/measured/mutants.txt"
	@$(BIN)/python -m pip install --quiet --editable '.[mutants]'
	@set -o pipefail; commit=$(COMMIT); { echo "measured at commit $$commit"; echo; \
		$(BIN)/python tests/mutants/run.py; } | tee docs/measured/mutants.txt

lint: $(STAMP)
	@echo "== lint and type check"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file tests/mypy.ini
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/python -m pytest -q $(LINT)

kernels: $(STAMP)
	@echo "== machine code of every kernel"
	@$(BIN)/optdesign warm-up

hooks: $(STAMP)
	@echo "== the checks of make lint before every commit"
	@$(BIN)/pre-commit install

bench: $(STAMP)
	@echo "== benchmarks, two hours: what they print goes to docs/measured/"
	@for name in $(TABLES); do $(MAKE) --no-print-directory measured/$$name || exit 1; done
	@$(BIN)/python benchmarks/figures.py
	@$(BIN)/python benchmarks/pictures.py
	@$(BIN)/python benchmarks/readme_figure.py
	@$(BIN)/python benchmarks/charts.py

experiments: $(STAMP)
	@test -n "$(RATINGS)" || { echo "RATINGS must be the path of u.data of MovieLens-100K: make experiments RATINGS=..."; exit 2; }
	@echo "== the paper's experiments, about half an hour: claims.csv goes to docs/measured/, pictures to docs/figures/"
	@$(BIN)/bandits reproduce all --out .venv/experiments --ratings "$(RATINGS)"
	@cp .venv/experiments/claims.csv docs/measured/
	@for name in $(EXPERIMENTS); do cp .venv/experiments/$$name.png docs/figures/; done

measured/%: $(STAMP)
	@echo "== $*: what it prints goes to docs/measured/$*.txt, with the commit that was measured"
	@set -o pipefail; commit=$(COMMIT); { echo "measured at commit $$commit"; echo; \
		$(BIN)/python benchmarks/$*.py; } | tee docs/measured/$*.txt

times: $(STAMP)
	@echo "== wall time of make demo and make test: goes to docs/measured/times.txt"
	@set -o pipefail; commit=$(COMMIT); { echo "measured at commit $$commit"; echo; \
		echo "$$(getconf _NPROCESSORS_ONLN) cores, load average $$(cut -d' ' -f1 /proc/loadavg) at the start, .venv set up before"; \
		for target in demo test; do \
			start=$$SECONDS; $(MAKE) --no-print-directory $$target >&2 || exit 1; \
			echo "make $$target: $$((SECONDS - start)) s"; \
		done; } | tee .venv/times.txt
	@mv .venv/times.txt docs/measured/times.txt
	@$(BIN)/python benchmarks/quote_times.py

docs: $(STAMP)
	@echo "== documentation: docs/_build/index.html"
	@$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@$(BIN)/python -m sphinx -q -E -W -n --keep-going -b html docs docs/_build

look: $(STAMP)
	@echo "== every page of docs/_build in headless Chromium, at 1280 and 390 pixels, light and dark"
	@$(BIN)/python docs/look.py

# The wheel is tested alone: in a virtual environment of its own, outside the checkout, without optional dependencies.
package: $(STAMP)
	@echo "== wheel: dist/, installed into an empty environment and tested there"
	@rm -rf build dist
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@rm -rf build
	@set -e; smoke=$$PWD/.ci/smoke.py; wheel=$$(ls $$PWD/dist/*.whl); folder=$$(mktemp -d); \
		trap 'rm -rf "$$folder"' EXIT; cd "$$folder"; \
		$(PYTHON) -m venv venv; venv/bin/python -m pip install --quiet "$$wheel"; \
		venv/bin/python -I "$$smoke"

$(STAMP): pyproject.toml
	@echo "== setting up .venv (only when pyproject.toml changes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis demo
