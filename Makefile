# Every target sets up what it needs, once: a virtual environment with the locked packages, and the
# engine, built in release mode. Stamp files in .venv say what is done; a changed lock file or
# source makes it be done again. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

RUN_LOCKED := $(VENV)/.run-locked
DEV_LOCKED := $(VENV)/.dev-locked
DOCS_LOCKED := $(VENV)/.docs-locked
INSTALLED := $(VENV)/.installed
ENGINE_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Where an image of a machine sets it, every start of trueload compiles all of its modules anew: a
# quarter to a third of what a command of the tests takes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-22s%s\n", $$1, $$2}'

# --- set-up ---------------------------------------------------------------------------------------

$(RUN_LOCKED): requirements.lock
	@tools/preflight.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r requirements.lock
	@touch $@

# Most of these modules are never imported; those that are keep their bytecode then.
$(DEV_LOCKED): requirements-dev.lock $(RUN_LOCKED)
	$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@touch $@

# In an environment of its own: what builds the site is no part of the program.
$(DOCS_LOCKED): requirements-docs.lock $(RUN_LOCKED)
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/pip --disable-pip-version-check --quiet install --no-compile --require-hashes -r requirements-docs.lock
	@touch $@

# Without build isolation: the build tools are in the lock file, too.
$(INSTALLED): pyproject.toml setup.py python/trueload/__init__.py $(ENGINE_SOURCES) $(RUN_LOCKED)
	@tools/preflight.sh $(PYTHON)
	@echo "building the engine, which takes some minutes"
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup
setup: $(INSTALLED) $(DEV_LOCKED) ## virtual environment, locked packages, engine, trueload itself

# --- what users run -------------------------------------------------------------------------------

.PHONY: demo
demo: $(INSTALLED) ## compare real HTTP servers on this machine, in a few minutes
	@$(BIN)/trueload suite run quick || { code=$$?; [ $$code = 4 ] || exit $$code; \
		echo "All works, but no row is valid on this machine now: $(BIN)/trueload doctor tells why."; }

# --- what developers run --------------------------------------------------------------------------

# Tests of `make test` share the CPUs, and some judge real traffic. What failed there runs once more
# with the machine to itself; what fails again is a failure. Both results are printed.
ALONE := --last-failed --last-failed-no-failures none --exitfirst -n 0

# What only builds and reads is done side by side, as pip, mypy and the linker use one core each; what
# runs has the machine to itself.
.PHONY: test
test: export SKIPPED_TESTS := $(CURDIR)/build/skipped-tests
test: test-needs ## every check and every test
	$(MAKE) --jobs=2 --output-sync=target setup lint docs built-tests
	cargo test --workspace --exclude trueload-sim --locked --quiet
	cargo test --profile sim --package trueload-sim --locked --quiet
	$(MAKE) simulate SEEDS=5000
	$(BIN)/pytest -m "not hosts and not strict and not k8s" --durations=20 || $(BIN)/pytest -m "not hosts and not strict and not k8s" $(ALONE)
	$(MAKE) test-strict
	@$(PYTHON) tools/needs.py report

# Debian packages that some tests need are installed where that is permitted; a user at a terminal is
# asked once, before the long part.
.PHONY: test-needs
test-needs:
	@tools/preflight.sh $(PYTHON) lint
	@mkdir -p build && rm -f $(SKIPPED_TESTS)
	@$(PYTHON) tools/needs.py install

.PHONY: test-strict
test-strict: setup ## the checks that other tests excuse, on CPUs of their own: wants a quiet machine
	$(BIN)/pytest -m strict -n 0 || $(BIN)/pytest -m strict $(ALONE)

.PHONY: test-hosts
test-hosts: test-needs setup ## runs over several hosts, made of namespaces on this machine (needs root)
	$(BIN)/pytest -m hosts -n 4 || $(BIN)/pytest -m hosts $(ALONE)  # 4: they wait more than they work

.PHONY: test-k8s
test-k8s: setup ## Pods of a real control plane, which is built once in half an hour (needs root, Go, etcd-server)
	$(BIN)/python tests/k8s/build.py
	$(BIN)/pytest -m k8s -n 0

.PHONY: check
check: setup lint ## the fast inner loop: style, types, unit tests
	cargo test --workspace --locked --quiet
	$(BIN)/pytest tests/unit

.PHONY: lint
lint: lint-rust lint-python

.PHONY: lint-rust
lint-rust: $(RUN_LOCKED)
	@tools/preflight.sh $(PYTHON) lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

# Not beside clippy: they share a folder, and one would wait for the other.
.PHONY: built-tests
built-tests: lint-rust
	cargo test --workspace --exclude trueload-sim --locked --quiet --no-run
	cargo test --profile sim --package trueload-sim --locked --quiet --no-run

.PHONY: lint-python
lint-python: $(DEV_LOCKED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python tools/needs.py run git $(BIN)/python tools/tidy.py

.PHONY: format
format: setup ## rewrite the sources in the one style
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: test-subjects
test-subjects: setup ## build every subject and check it against its contracts
	$(BIN)/trueload subjects check

REPORTS ?= starts peers http2 breakdown floor truth pacing openloop echo hostile wait talks broadcast ordinary stability traps2 many_hosts ray_front faults_hosts

.PHONY: bench
bench: setup ## speed and accuracy against other tools and the truth (REPORTS=truth for one of them)
	@status=0; for report in $(REPORTS); do \
		$(BIN)/python bench/$$report.py || status=1; echo; \
	done; exit $$status

ONLY ?=

.PHONY: published
published: setup ## short runs of the five published benchmarks, 25 minutes at most (ONLY=tcp-echo for one; WHOLE=1 for every subject of it)
	@$(BIN)/python bench/published.py $(foreach name,$(ONLY),--only $(name)) $(if $(WHOLE),--whole)

JOBS ?= 1

.PHONY: proofs
proofs: setup ## searches for known limits, and comparisons of equal servers (TIMES=20 JOBS=4): hours, or one with JOBS
	@status=0; $(BIN)/python bench/searches.py --times $(or $(TIMES),20) --jobs $(JOBS) || status=1; echo; \
	$(BIN)/python bench/same.py --jobs $(JOBS) || status=1; exit $$status

PEERS ?=

.PHONY: redteam
redteam: setup ## attacks on the verdict by programs whose truth is known (ONLY=window for some; PEERS=1 for others, too)
	@$(BIN)/python bench/redteam $(foreach name,$(ONLY),--only $(name)) $(if $(PEERS),--peers)

.PHONY: redteam-bounds
redteam-bounds: setup ## disturb runs in twelve ways: no bound may be on the wrong side (TIMES=84 for a thousand runs, in an hour and a half)
	@$(BIN)/python bench/redteam/bounded.py --times $(or $(TIMES),5)

.PHONY: fuzz
fuzz: ## fuzz the parsers, a minute each target (needs a C++ compiler)
	@for target in $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))); do \
		fuzz/run $$target 60 || exit 1; \
	done

SEEDS ?= 1000000
FROM ?= 0

.PHONY: simulate
simulate: ## the generator against simulated kernels and peers (SEEDS=1000000 FROM=0): prints the first seed that breaks a law
	cargo run --profile sim --locked --quiet --package trueload-sim -- --seeds $(SEEDS) --from $(FROM)

.PHONY: defects
defects: $(RUN_LOCKED) ## put known defects back one by one: the simulation has to find each (40 minutes)
	$(BIN)/python tools/defects.py

MUTATED ?= load meter wire drive engine
SHARD ?= 0/10

.PHONY: mutants
mutants: ## change the code in one place at a time: a test must notice (SHARD=0/10 MUTATED=wire; needs cargo-mutants)
	@status=0; for crate in $(MUTATED); do \
		case $$crate in engine) judges=trueload-engine,trueload-sim;; *) judges=trueload-$$crate;; esac; \
		nice cargo mutants --package trueload-$$crate --test-package $$judges --shard $(SHARD) \
			--sharding round-robin --baseline skip --timeout 40 --output target/mutants/$$crate || status=$$?; \
	done; exit $$status

.PHONY: docs
docs: $(DOCS_LOCKED) ## the site of docs/, into build/site; a link that leads nowhere is an error
	$(VENV)/docs/bin/zensical build --strict --config-file mkdocs.yml

.PHONY: options
options: setup ## write docs/options.md, docs/verdicts.md and the keyword arguments of Python from what is declared
	$(BIN)/python tools/options.py
	$(BIN)/python tools/verdicts.py

.PHONY: conformance
conformance: setup ## Autobahn against WebSocket (needs Python 2.7) and h2spec against HTTP/2 (needs Go); 77 without
	@status=0; for suite in conformance conformance_http2; do \
		$(BIN)/python tools/$$suite.py || { code=$$?; [ $$status = 1 ] || status=$$code; }; \
	done; exit $$status

TAG ?=
TARGETS ?=

.PHONY: release
release: $(RUN_LOCKED) ## wheels, sdist and crates into dist/, tried in a clean place (TAG=v0.1.0 TARGETS=x86_64-unknown-linux-gnu)
	PYTHONPATH=python $(BIN)/python tools/release.py $(if $(TAG),--tag $(TAG)) $(TARGETS)

.PHONY: engines
engines: setup ## the engine for another machine type, for hosts of that type (TARGETS=aarch64-unknown-linux-gnu)
	PYTHONPATH=python $(BIN)/python tools/engine_beside.py $(TARGETS)

.PHONY: lock
lock: $(DEV_LOCKED) ## write the Python lock files anew from pyproject.toml
	$(PIP) install uv
	PATH="$(abspath $(BIN)):$$PATH" tools/lock.sh

.PHONY: clean
clean: ## remove what the targets have made
	rm -rf $(VENV) target build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis python/*.egg-info
	find python tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +
