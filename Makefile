# Each target does its own set-up; nothing is done twice.
PYTHON ?= python3
BIN := .venv/bin
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
ALGO ?= ppo
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup learning profile test test-rust test-python test-slow test-builds mutants faults anywhere audit sanitize miri interleavings hostile verify lint format docs bench lock peers-lock

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# The environment, exactly as locked. pip installs uv alone, from its own lines of the lock, hash
# and all; uv installs the rest.
.venv/.locked: requirements-dev.lock
	@echo "==> Installing the locked environment into .venv (torch is large: about a minute when cold)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@sed -n '/^uv==/,/# via/p' requirements-dev.lock > .venv/uv.lock.txt
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check -r .venv/uv.lock.txt
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	@touch $@

# The extensions in release mode, and the command rlox-opt, as an editable install.
.venv/.built: .venv/.locked pyproject.toml workbench/pyproject.toml crates/rlox-laboratory/pyproject.toml $(RUST)
	@echo "==> Building the extension rlox._core, and rlox._laboratory, which is for development (release)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation \
		--editable . --editable workbench --editable crates/rlox-laboratory
	@touch $@

setup: .venv/.built ## Make .venv: locked dependencies, release extensions, rlox-opt, asv, pytest

learning: .venv/.built ## Add MuJoCo, Box2D and Atari to .venv, for races and tests/learning
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-learning.lock

profile: .venv/.built ## Profile a training: which layer takes how much time (ALGO=ppo|sac, ARGS="--total-timesteps 20000")
	@$(BIN)/rlox-opt profile $(ALGO) $(ARGS)

test: test-rust test-python ## Run the Rust and Python tests

test-rust:
	@echo "==> Rust tests"
	cargo test --workspace --locked

test-python: .venv/.built
	@echo "==> Python tests, a process for each core"
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile $(ARGS)

test-slow: .venv/.built ## Run the tests that take minutes: learning beside SB3, accuracy of profiles
	$(BIN)/pytest -m slow

test-builds: .venv/.built ## Run the Rust tests in every build: no optimisation, all, each alone, each left out
	@$(BIN)/rlox-opt test --builds

mutants: .venv/.built ## Plant known bugs, one at a time, and check that a test finds each
	@$(BIN)/rlox-opt test --planted
	@$(BIN)/python tests/interleavings --planted

faults: .venv/.built ## Kill rlox-opt, fill its disk and break its files, by the thousand (ARGS="--only kills")
	@$(BIN)/python tests/faults $(ARGS)

anywhere: .venv/.built ## Run the tests with fewer CPU instructions, as another user, elsewhere (ARGS="--numeric")
	@$(BIN)/python tests/anywhere $(ARGS)

audit: .venv/.locked ## Check all licences by deny.toml, and ask for advisories (cargo-deny, pip-audit)
	@$(BIN)/python tests/supply/audit.py $(ARGS)

# AddressSanitizer with the stable compiler, at every level of vector instructions; ThreadSanitizer and
# Miri, which reads each access by the language's own rules, where there is what they need.
sanitize: .venv/.built ## Run the Rust code under AddressSanitizer, ThreadSanitizer and Miri (ARGS=--short)
	@$(BIN)/python tests/sanitizers $(ARGS)

miri: .venv/.locked ## Run the unsafe Rust code under Miri, with the nightly compiler
	@$(BIN)/python tests/sanitizers --only miri

interleavings: .venv/.locked ## Run the core's threads in every order, by loom (ARGS=--long, --planted)
	@$(BIN)/python tests/interleavings $(ARGS)

hostile: .venv/.built ## Call the extension wrongly, ten million times, and record it (ARGS="--calls 200000")
	@$(BIN)/python tests/boundary $(ARGS)

verify: .venv/.built ## Run all checks that take too long for CI, and record them: STEPS="builds miri", ARGS=--resume
	@$(BIN)/python tests/verify $(STEPS) $(ARGS)

lint: .venv/.built ## Format check, lints and types, Rust and Python
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 -p rlox_opt

format: .venv/.built ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .

docs: .venv/.built ## Make the site of the documentation in site/; it opens from files
	@$(BIN)/python docs/site

bench: ## Run the criterion benchmarks
	cargo bench -p rlox-bench

COMPILE := $(BIN)/uv pip compile --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --quiet --custom-compile-command 'make lock'

lock: .venv/.locked ## Resolve the lock files anew: the library's, development's, and that of tasks from elsewhere
	$(COMPILE) pyproject.toml workbench/pyproject.toml --all-extras --upgrade -o requirements.lock
	$(COMPILE) pyproject.toml workbench/pyproject.toml --all-extras --upgrade --group dev \
		-c requirements.lock -o requirements-dev.lock
	$(COMPILE) --group learning --upgrade -c requirements-dev.lock -o requirements-learning.lock

peers-lock: .venv/.locked ## Resolve the peers' environments anew (peers/locks/*.in)
	@for input in peers/locks/*.in; do \
		$(BIN)/uv pip compile $$input --universal --generate-hashes --python-version 3.11 \
			--no-emit-index-url --quiet --upgrade --custom-compile-command 'make peers-lock' \
			-o $${input%.in}.lock || exit 1; \
	done
