# make demo         the report on the bundled data
# make test         lint, then the tests; those of optional parts skip where these are not installed
# make extras       install the optional parts, so that `make test` tests them too
# make test-extras  only the tests of optional parts (plots, report, command line, browser, deep networks)
# make test-core    examples and entrances, as they are where only the core is installed
# make test-oldest  the tests on the oldest supported versions, without optional parts
# make test-slow    the tests that take long
# make bench        the benchmarks
# make bench-quick  the main claims in a few minutes, as one table
# make bench-scale  a fit to 58 million rows on disk (12.5 GB), FOLDER says where
# make docs         the site, into build/docs; EXAMPLES=plot_name runs no other examples
# make results      the paper's experiments, into docs/results
# make lint         ruff and mypy
# make clean        remove everything that make or the tools made

PYTHON ?= python3
# The oldest supported versions have no wheels for the newest Pythons.
OLDEST_PYTHON ?= $(firstword $(foreach python,python3.11 python3.12,\
	$(shell $(python) -c "print('$(python)')" 2>/dev/null)) $(PYTHON))
WORKERS ?= 2

VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin

# Tests that want real data skip, with a reason, where the folder is not there.
DATA := $(wildcard $(CURDIR)/../shared/data)
ifneq ($(DATA),)
export EQUIPOISE_DATA ?= $(abspath $(DATA))
endif

# Two workers with two threads each would compete for the same cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Without it scikit-learn's estimator checks silently skip those of the array API.
ARRAY_API := SCIPY_ARRAY_API=1
# SciPy as users have it. Empty and not 0, which SciPy takes for yes.
NO_ARRAY_API := SCIPY_ARRAY_API=

# Neighbours stay together, with the fits that they share, until one worker has nothing left.
PYTEST := -m pytest -n $(WORKERS) --dist worksteal

# "numpy>=1.26" in pyproject.toml becomes "numpy==1.26.*".
FLOORS = $(shell $(PYTHON) -c 'import tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*(floor.replace(">=", "==") + ".*" for floor in project["dependencies"]))')

# .ci/run runs test-core, extras, docs, test and test-oldest: every test on the newest versions with all
# optional parts, and every test that needs none of them on the oldest versions without any. What is
# left, the newest versions without optional parts, is where an import or a skip goes wrong: test-core
# collects everything and runs these. It must come before extras.
CORE_TESTS := src $(addprefix tests/,test_public_api.py test_layers.py test_extending.py test_datasets.py)

# Tests that need optional parts skip, with a reason, where these are not installed.
EXTRAS_TESTS := $(addprefix tests/,test_display.py test_report*.py test_cli*.py test_tables.py \
	test_boosters.py test_weights_elsewhere.py test_paper.py test_sets_arrays.py test_torch*.py test_tensors.py \
	test_blocks.py test_dask.py test_scale.py test_streamed_tables.py test_repository.py test_onnx.py test_docs.py) \
	$(addprefix src/equipoise/,display onnx paper torch)

.PHONY: demo test extras test-extras test-core test-oldest test-slow docs bench bench-scale results lint clean

demo: $(VENV)/.report
	$(BIN)/equipoise report src/equipoise/datasets/data/thyroid.csv.gz --target target --out equipoise-demo.html

test: lint
	$(ONE_THREAD) $(ARRAY_API) $(BIN)/python $(PYTEST)

extras: $(VENV)/.extras

test-extras: $(VENV)/.extras
	EQUIPOISE_SCALE=1 $(ONE_THREAD) $(ARRAY_API) $(BIN)/python $(PYTEST) $(wildcard $(EXTRAS_TESTS))

test-core: lint
	$(BIN)/python -m pytest -qqq --collect-only
	$(ONE_THREAD) $(NO_ARRAY_API) $(BIN)/python $(PYTEST) $(CORE_TESTS)

test-oldest: $(OLDEST)/.installed
	EQUIPOISE_SCALE= $(ONE_THREAD) $(NO_ARRAY_API) $(OLDEST)/bin/python $(PYTEST)

test-slow: $(VENV)/.dev
	$(ONE_THREAD) $(ARRAY_API) $(BIN)/python $(PYTEST) -m slow --timeout 1800

# Warnings are errors; `make docs EXAMPLES=plot_name` runs only the examples whose name matches. SITE is
# the address that the site will have, for its version switcher.
EXAMPLES ?= plot_

docs: $(VENV)/.docs
	EXAMPLES=$(EXAMPLES) SITE=$(SITE) $(ONE_THREAD) $(BIN)/python -m sphinx --builder html --jobs $(WORKERS) \
		--fail-on-warning --keep-going --doctree-dir build/doctrees docs build/docs

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.report
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/quick.py

FOLDER ?= build/scale
ROWS ?= 58_000_000

bench-scale: $(VENV)/.dev
	$(BIN)/python benchmarks/scale.py $(FOLDER) --rows $(ROWS)
	$(BIN)/python -m pip install --quiet --editable '.[dask]' dask-ml
	$(BIN)/python benchmarks/scale_dask.py

results: $(VENV)/.extras
	$(BIN)/equipoise reproduce --out docs/results

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.report: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[report]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[test,lint]'
	touch $@

# An open range would take the newest build with all of CUDA.
TORCH ?= torch==2.13.0

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[all,docs,onnx,torch]'
	touch $@

$(VENV)/.extras: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[all,boosters,browser,dask,onnx,recipes,torch,wheel]'
	command -v chromium >/dev/null || apt-get install -y --no-install-recommends chromium || \
		echo "No chromium: the tests of the page in a browser will be skipped."
	touch $@

$(OLDEST)/.installed: pyproject.toml
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --editable '.[test]' $(patsubst %,'%',$(FLOORS))
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf src/*.egg-info benchmarks/results
	rm -rf docs/api/examples docs/api/generated docs/auto_examples docs/generated
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
