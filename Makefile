# make demo: the least set-up, then the main job on pydocs.   make test: what tests need, then the tests.
# make check: everything, then all other tests.   make setup: everything, and no more.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What has been installed: to use metarank, to test it, and all extras and tools.
DEMO := $(VENV)/.demo
TEST := $(VENV)/.test
ALL := $(VENV)/.all
CORE := $(wildcard metarank/_core/*.cpp metarank/_core/*.h metarank/_core/bindings/* metarank/_core/CMakeLists.txt)
MODULES := $(shell find metarank -name '*.py' | LC_ALL=C sort | cksum)

# Idle OpenMP threads must sleep, not spin: spinning costs a factor of ten on a busy machine.
export OMP_WAIT_POLICY := passive
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The constraints hold for the build's own environment too, so that every machine builds with the versions tested.
export PIP_CONSTRAINT := $(abspath constraints.txt)

# As many processes as cores; a file is tested by one of them, so that it prepares what its tests share once. A test that
# hangs ends its process: another would hang in it again.
PYTEST := $(BIN)/python -m pytest -n $(or $(WORKERS),logical) --dist loadfile --max-worker-restart 0 --durations 10
COVER := --cov --cov-append --cov-report=

.PHONY: setup demo test test-quick check lint docs pictures screenshots wheel levels oldest annif arm64 clang crash isolation fuzz sanitize bench bench-large bench-setup clean

setup: $(ALL)

demo: $(DEMO)
	$(BIN)/metarank demo

test: $(TEST)
	$(PYTEST) -m "not check" $(if $(COVERAGE),$(COVER))

test-quick: $(TEST)
	$(PYTEST) -m "not check and not slow" tests

# What takes long, a browser, another build or much of the machine; then the share of metarank that this and
# `make test COVERAGE=yes` before it went through.
check: $(ALL)
	$(PYTEST) -m check $(COVER) tests
	$(BIN)/coverage report --skip-covered --sort=-miss

# Killed, failed or interrupted at every system call of a write; says how many were tried.
crash: $(TEST)
	$(BIN)/python -m pytest tests/check/test_crash_safety.py tests/check/test_interrupts.py

# Beside other libraries, after a fork, within threads and control groups.
isolation: $(TEST)
	$(BIN)/python -m pytest tests/check/test_isolation.py

# Saved models, and fits, under every level of the processor that can be forced.
levels: $(TEST)
	$(BIN)/python -m pytest tests/check/test_cpu_levels.py

# metarank beside Annif in an environment of their own, at the versions that Annif pins, and Annif's commands in it.
annif: $(TEST)
	$(PYTHON) -m venv build/annif
	PIP_CONSTRAINT= build/annif/bin/pip install -q ".[annif]"
	METARANK_ANNIF=build/annif/bin/python $(BIN)/python -m pytest -rs tests/test_apps/test_annif.py tests/test_apps/test_serve_annif.py

# Saved models, and fits, on an arm64 that is emulated, against those of this x86-64; writes the table of docs/platforms.md.
# Debian's debootstrap, qemu-user-static and g++-aarch64-linux-gnu must be there, and root runs it.
arm64: $(ALL)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tests/emulated/arm64.py

# The oldest versions of what is required, in an environment of their own.
oldest: $(TEST)
	$(PYTHON) -m venv build/oldest
	$(PYTHON) tests/wheels/versions.py oldest data plot serve skos dask completion test > build/oldest/versions.txt
	PIP_CONSTRAINT= build/oldest/bin/pip install -q --prefer-binary -r build/oldest/versions.txt -e ".[dask]"
	build/oldest/bin/python -m pytest -n logical --dist loadfile -m "not check and not slow" tests

# The core by Clang, warnings as errors, and what tests ask of kernels and saved models.
clang: $(ALL)
	$(BIN)/cmake -S metarank/_core -B build/clang -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++ \
	    -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/cmake --build build/clang --parallel
	METARANK_SANITIZED_CORE=$$(ls build/clang/_core*.so) PYTHONPATH=tests $(BIN)/python -c \
	    "import sys, pytest; from sanitize.core import import_core; import_core(); sys.exit(pytest.main(sys.argv[1:]))" \
	    tests/test_core tests/test_scorers tests/test_metrics tests/test_persist/test_golden.py

# In dist/: an sdist and, built from it, a wheel for 3.11 and one for all later versions; each is audited, installed into an
# empty environment of every Python that is found, and tested there.
wheel: $(ALL)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tests/wheels/run.py

lint: $(ALL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

# The documentation site, in build/site. Its Python has run, its figures are those of the experiments, its links and
# anchors lead somewhere, it fetches nothing from elsewhere; a warning is an error.
docs: $(ALL)
	$(BIN)/python -m pytest -m "not check" tests/test_project/test_docs.py tests/test_project/test_readme_figures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The pictures of docs/pictures: drawn, of models that this trains, and of the tables of experiments.
pictures: $(ALL)
	$(BIN)/python docs/_site/pictures.py

# Screenshots of the report and of the service's page, in docs/pictures: a browser must be on the path.
screenshots: $(ALL)
	PYTHONPATH=$(abspath tests):$(abspath tests/check) $(BIN)/python docs/_site/screenshots.py

# The peers' environments; then all studies, and their pages from that one run. STUDY=thousands for one of them;
# SETS=pydocs for a part, whose pages go to build/bench/part. bench-large: the long studies instead.
bench-setup: $(ALL)
	$(BIN)/python experiments/bench --setup

bench: $(ALL)
	$(BIN)/python experiments/bench $(if $(STUDY),--study $(STUDY)) $(if $(SETS),--sets $(SETS))

# The long studies: several seeds, and the largest sets.
bench-large: $(ALL)
	$(BIN)/python experiments/bench --large $(if $(STUDY),--study $(STUDY)) $(if $(SETS),--sets $(SETS))

# Mutants of saved models, of every file that is read, and of what the core parses; FUZZ="--seconds 60" and others, with
# a sanitized core FUZZ="--sanitize address".
fuzz: $(ALL)
	PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH=$(abspath tests) $(BIN)/python -m fuzz.run $(FUZZ)

# The core's tests under address, undefined-behaviour and thread sanitizers; SANITIZE=thread for one kind.
sanitize: $(ALL)
	PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH=$(abspath tests) $(BIN)/python -m sanitize.run $(SANITIZE)

$(DEMO): pyproject.toml constraints.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e .
	echo "$(MODULES)" > $(VENV)/.modules
	touch $@

# The core is built once, above: what is installed by now is asked what else it needs.
$(TEST): pyproject.toml constraints.txt | $(DEMO)
	$(BIN)/python -m pip install -q "metarank-ltr[test]"
	touch $@

$(ALL): pyproject.toml constraints.txt | $(TEST)
	$(BIN)/python -m pip install -q "metarank-ltr[dev]"
	touch $@

# What is installed finds modules by a list of their names: where one came, went or moved, it is made anew.
ifneq ($(MODULES),$(shell cat $(VENV)/.modules 2>/dev/null))
$(DEMO): moved
endif
.PHONY: moved
moved:

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .coverage
