# make demo: set-up, then the main job on the embedded data.   make test: set-up, then every test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORE := $(wildcard metarank/_core/*.cpp metarank/_core/*.h metarank/_core/bindings/* metarank/_core/CMakeLists.txt)
MODULES := $(shell find metarank -name '*.py' | LC_ALL=C sort | cksum)

# Idle OpenMP threads must sleep, not spin: spinning costs a factor of ten on a busy machine.
export OMP_WAIT_POLICY := passive
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint levels crash isolation fuzz sanitize stubs bench clean

demo: $(STAMP)
	$(BIN)/metarank demo

test: $(STAMP)
	$(BIN)/python -m pytest

# Killed, failed or interrupted at every system call of a write; says how many were tried.
crash: $(STAMP)
	$(BIN)/python -m pytest tests/test_crash_safety.py tests/test_interrupts.py

# Beside other libraries, after a fork, within threads and control groups.
isolation: $(STAMP)
	$(BIN)/python -m pytest tests/test_isolation.py

# Saved models under every level of the processor that can be forced, with a core of their own for the least.
levels: $(STAMP)
	$(BIN)/cmake -S metarank/_core -B build/levels -DCMAKE_BUILD_TYPE=Release -DMETARANK_BASELINE=ON \
	    -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/cmake --build build/levels --parallel
	METARANK_BASELINE_CORE=$(abspath build/levels) $(BIN)/python -m pytest tests/test_cpu_levels.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

# The types of the compiled core, for mypy; run after a change of its bindings.
stubs: $(STAMP)
	$(BIN)/python -m nanobind.stubgen -m metarank._core -o metarank/_core.pyi

bench: $(STAMP)
	$(BIN)/python experiments/small_mlc/run.py

# Mutants of saved models, of every file that is read, and of what the core parses; FUZZ="--seconds 60" and others, with
# a sanitized core FUZZ="--sanitize address".
fuzz: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m fuzz.run $(FUZZ)

# The core's tests under address, undefined-behaviour and thread sanitizers; SANITIZE=thread for one kind.
sanitize: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m sanitize.run $(SANITIZE)

# The constraints hold for the build's own environment too, so that every machine builds with the versions tested.
$(STAMP): pyproject.toml constraints.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(abspath constraints.txt) $(BIN)/python -m pip install -q -e ".[dev]"
	echo "$(MODULES)" > $(VENV)/.modules
	touch $(STAMP)

# What is installed finds modules by a list of their names: where one came, went or moved, it is made anew.
ifneq ($(MODULES),$(shell cat $(VENV)/.modules 2>/dev/null))
$(STAMP): moved
endif
.PHONY: moved
moved:

clean:
	rm -rf build $(VENV) .pytest_cache .mypy_cache .ruff_cache
