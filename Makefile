# One way to run things. `make help` lists them.

PYTHON ?= python3
VENV ?= .venv
# Passed to pip, for those who want another build of torch: make demo PIP_ARGS="--find-links DIR"
PIP_ARGS ?=
JOBS ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)")

BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_SHARDS ?= shards/demo
DEMO_RUN ?= runs/demo
DEMO_OUT ?= results/demo

# Modules stay compiled, whatever the environment says: pip leaves that to their first import
# (--no-compile), and each of the tests' hundreds of processes would compile PyTorch's anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow lint format bench clean
.DEFAULT_GOAL := help

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY) ## shards, training and WDBC end to end, minutes on two cores
	$(BIN)/prior-gen --config demo --stages 1-12 --tail --out $(DEMO_SHARDS) --jobs $(JOBS)
	$(BIN)/torchrun --nproc-per-node $(if $(filter 1,$(JOBS)),1,2) trainer/main.py \
	    --config demo --shards $(DEMO_SHARDS) --out $(DEMO_RUN)
	$(BIN)/python -m pu_bench.demo --model $(DEMO_RUN)/model.safetensors --out $(DEMO_OUT)

test: $(READY) ## the tests, but for those marked slow
	$(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal

test-slow: $(READY) ## the tests marked slow
	$(BIN)/pytest -m slow

lint: $(READY) ## ruff and mypy: lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## let ruff format and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## speed of generator and trainer on this machine
	$(BIN)/python benchmarks/generator_speed.py
	$(BIN)/python benchmarks/generator_memory.py
	$(BIN)/python benchmarks/shard_codecs.py
	$(BIN)/python benchmarks/trainer_speed.py
	$(BIN)/python benchmarks/inference_speed.py
	$(BIN)/python benchmarks/fused_attention.py

clean: ## remove the demo's files; the virtual environment stays
	rm -rf $(DEMO_SHARDS) $(DEMO_RUN) $(DEMO_OUT)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile $(PIP_ARGS) -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile $(PIP_ARGS) -c constraints.txt -e ".[dev]"
	touch $(READY)
