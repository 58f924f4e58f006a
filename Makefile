# The README's two commands are `make up` and `make test`; the rest is for developers.
PYTHON ?= python3
BIN := .venv/bin
PY_FILES := src tests benchmarks reference hatch_build.py
WEB_FILES := hatch_build.py $(shell find web -name node_modules -prune -o -name out -prune -o -type f -print)

.PHONY: help up setup test steady test-real check format docs docs-serve bench bench-peers fuzz torture soak dist smoke lock clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

up: .venv/.web  ## Set up, then start a demo team in ./demo
	@$(BIN)/mas up demo

setup: .venv/.web .venv/.dev  ## Make .venv and install what is missing

test: setup  ## Run every test on real tmux, and the page in a real browser (TESTS=, ARGS=)
	$(BIN)/python hatch_build.py test
	$(BIN)/python -m tests.runner $(TESTS) $(ARGS)

steady: setup  ## Run the tests five times and name those that did not always pass (N=, TESTS=, LOAD=processors kept busy)
	$(BIN)/python -m tests.runner.steady --runs $(or $(N),5) --load $(or $(LOAD),0) $(TESTS)

test-real: setup  ## Run real agent programs, installed into .real, against a model on loopback
	scripts/real-clis || test $$? -eq 75
	$(BIN)/python -m pytest tests/real

check: setup  ## Format, lint, types, room plan, shell scripts
	$(BIN)/python hatch_build.py check
	$(BIN)/ruff format --check $(PY_FILES)
	$(BIN)/ruff check $(PY_FILES)
	$(BIN)/mypy $(PY_FILES)
	$(BIN)/lint-imports --no-cache
	shellcheck -x mas_refactored.sh lib/*.sh scripts/* .ci/run

format: setup  ## Rewrite the sources in house style
	$(BIN)/ruff format $(PY_FILES)
	$(BIN)/ruff check --fix $(PY_FILES)

docs: .docs/.ready  ## Build the documentation into site/, with every link checked
	@echo "docs: building the site and checking every link (about 10 s)"
	@NO_MKDOCS_2_WARNING=1 .docs/bin/python -m mkdocs build --strict
	@echo "docs: open site/index.html in a browser"

docs-serve: .docs/.ready  ## Show the documentation on loopback, rebuilt as you write
	NO_MKDOCS_2_WARNING=1 .docs/bin/python -m mkdocs serve --dev-addr 127.0.0.1:7718

bench: setup  ## Measure against the floor and the witnesses; write RESULTS.md and all figures in the docs
	$(BIN)/python -m benchmarks

bench-peers: setup .peers/.ready  ## Measure beside tmux, libtmux, tmuxp and another orchestrator (ARGS=--quick)
	$(BIN)/python -m benchmarks.peers $(ARGS)

fuzz: setup .fuzz/.ready  ## Ten thousand requests to the API, and every parser at length (ARGS='--only parsers')
	$(BIN)/python -m tests.fuzz $(ARGS)

torture: setup  ## Random work while things go wrong, then a look at everything (TORTURE="--seed …")
	$(BIN)/python -m tests.torture $(TORTURE)

soak: setup  ## 300 teams of 13 alive at once, memory and latency over time (SOAK="--sessions …")
	$(BIN)/python -m benchmarks.soak $(SOAK)

dist: setup  ## Build the source archive and the wheel into dist/, and try them
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(MAKE) smoke

smoke: setup .dist/.ready  ## Install what is in dist/ with pipx and uv, without Node, and run a team with it
	$(BIN)/python -m tests.dist

lock: .dist/.ready  ## Pin the newest versions
	PATH="$(CURDIR)/.dist/bin:$$PATH" scripts/lock

clean:  ## Remove .venv, .real, what was built and caches
	rm -rf .venv .docs .dist .fuzz site .real .peers dist artefacts web/node_modules web/out src/mas/http/built .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.run: requirements/run.txt requirements/build.txt pyproject.toml scripts/setup
	@PYTHON=$(PYTHON) scripts/setup run

.venv/.web: $(WEB_FILES) .venv/.run
	@$(BIN)/python hatch_build.py build
	@test -n "$$MAS_SKIP_WEB" || touch $@

.venv/.dev: requirements/dev.txt .venv/.run
	@PYTHON=$(PYTHON) scripts/setup dev

.docs/.ready: requirements/docs.txt | .venv/.run
	@echo "docs: installing what the site is built with into .docs (up to two minutes, the first time only)"
	@$(PYTHON) -m venv --clear .docs
	@.docs/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

.dist/.ready: requirements/dist.txt | .venv/.run
	@echo "dist: installing pipx and uv into .dist (about 20 s, the first time only)"
	$(PYTHON) -m venv --clear .dist
	.dist/bin/python -m pip install -q --require-hashes -r requirements/dist.txt
	touch $@

.fuzz/.ready: requirements/fuzz.txt .venv/.run
	rm -rf .fuzz
	$(BIN)/python -m pip install -q --require-hashes --no-deps --only-binary :all: --target .fuzz -r $< || \
		echo "There is no atheris for this machine: parsers are fuzzed without guidance" >&2
	mkdir -p .fuzz
	touch $@

# Not in .venv: it pins other versions of what we need too.
.peers/.ready: requirements/peers.txt | .venv/.run
	$(PYTHON) -m venv --clear .peers
	.peers/bin/python -m pip install -q --require-hashes -r requirements/peers.txt
	touch $@
