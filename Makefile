# Everything runs in a virtual environment that these targets make; only Python >= 3.10 and make are needed.

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?=
TORCH_SPEC ?= torch==2.13.0
WORKERS ?= 2
PYTEST_ARGS ?=
FILES ?=
TESTS ?=
JOBS ?= 1
EXAMPLE := examples/ddp_gloo_4rank_slow_loader

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
comma := ,
empty :=
WANTED := $(subst $(comma),$(empty) $(empty),$(EXTRAS))
NATIVE := src/stepscope/sources/native
# Modules that some tests need, and the extra that installs each.
OPTIONAL := torch:torch mindspore:mindspore ray:ray asyncssh:cluster grpc_tools:live prometheus_client:live \
	kubernetes:kubernetes opentelemetry:otlp viztracer:view nicegui:web schemathesis:web-tests selenium:browser-tests
# What `make fuzz` tries: this many texts of each kind, the same ones for the same seed.
SEED ?= 1
COUNT ?= 20000
SANITIZED := -g -O1 -std=gnu11 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# Allocations that the harness counts and lets fail.
WATCHED := -Dmalloc=fuzz_malloc -Dcalloc=fuzz_calloc -Drealloc=fuzz_realloc -Dfree=fuzz_free
# A pinned release where the newest one would bring gigabytes of accelerator libraries along.
SPEC_torch := $(TORCH_SPEC)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint format types mutants bench native fuzz wheels clean left-out

help: ## show this list
	@echo "Targets (the virtual environment in $(VENV) is made and kept up to date by all of them):"
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; done
	@echo "Variables: PYTHON=$(PYTHON)  VENV=$(VENV)  EXTRAS=torch,mindspore,cluster,live (test)  PYTEST_ARGS='-k word' (test)"
	@echo "           SEED=$(SEED)  COUNT=$(COUNT) (fuzz)"

demo: $(VENV)/.stamp-base ## analyse the example recording: four ranks, one of them slow
	$(BIN)/stepscope analyze $(EXAMPLE)
	@echo
	@echo "That was: stepscope analyze $(EXAMPLE)"
	@echo "Try next:"
	@echo "  $(BIN)/stepscope info $(EXAMPLE)                        what was found, per rank"
	@echo "  $(BIN)/stepscope analyze $(EXAMPLE) --ranks 0,2 --json      the same figures as JSON"
	@echo "  $(BIN)/stepscope sql $(EXAMPLE) 'SELECT * FROM steps'   any question, in SQL"
	@echo "  $(BIN)/stepscope analyze DIR                            your own recording"

# Containers often forbid to keep compiled Python; here, hundreds of processes would then compile the package anew.
test: $(VENV)/.stamp-dev $(WANTED:%=$(VENV)/.stamp-extra-%) left-out ## run the tests; EXTRAS=torch,mindspore,cluster,live adds those that need them
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -rs $(PYTEST_ARGS)

left-out: $(VENV)/.stamp-dev $(WANTED:%=$(VENV)/.stamp-extra-%)
	@for each in $(OPTIONAL); do \
		module=$${each%%:*} extra=$${each##*:}; \
		$(BIN)/python -c "import importlib.util as u, sys; sys.exit(u.find_spec('$$module') is None)" || \
		echo "Left out: tests that need $$module. To run them: make test EXTRAS=$$extra"; done
	@test -x $(BIN)/py-spy || command -v py-spy >/dev/null || \
		echo "Left out: tests of stacks of running processes; they need py-spy. To run them: make test EXTRAS=stacks"
	@command -v gdb >/dev/null || command -v lldb >/dev/null || \
		echo "Left out: tests of attaching to a running process; there is no debugger (Debian: apt-get install gdb)."
	@command -v openssl >/dev/null || echo "Left out: tests of TLS; there is no openssl to make certificates."
	@PATH="$$PATH:/usr/sbin" command -v sshd >/dev/null || \
		echo "Left out: tests against a real SSH server; there is no sshd (Debian: apt-get install openssh-server)."
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null && \
		command -v chromedriver >/dev/null || echo "Left out: tests of the viewer in a browser; there is no chromium \
	with chromedriver (Debian: apt-get install chromium chromium-driver)."
	@test -d ../shared/data || echo "Left out: tests on real recordings; they are read from ../shared/data, which is not there."

lint: $(VENV)/.stamp-dev ## check style, formatting and that imports only go down the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(VENV)/.stamp-dev ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Web pages are checked against the types that FastAPI and NiceGUI declare, so both are installed.
types: $(VENV)/.stamp-dev $(VENV)/.stamp-extra-web ## check types
	$(BIN)/mypy

mutants: $(VENV)/.stamp-dev ## change modules in one place at a time and show what their tests do not notice; FILES, TESTS, JOBS
	$(BIN)/python tests/mutation $(FILES) $(if $(TESTS),--tests $(TESTS)) --jobs $(JOBS)

bench: $(VENV)/.stamp-base ## measure start-up and reading (10 and 100 MB); see benchmarks/README.md
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/ingest.py --sizes 10,100

native: $(VENV)/.stamp-base ## check that the trace decoder was compiled and loads
	@$(BIN)/python -c "from stepscope.sources.native.library import load; load()"

fuzz: $(VENV)/.stamp-dev native ## look for input that harms the compiled decoder or that it reads otherwise than Python
	@mkdir -p out/fuzz
	$(CC) $(SANITIZED) $(WATCHED) -I$(NATIVE) -o out/fuzz/harness tests/fuzz/*.c $(NATIVE)/*.c -lm
	out/fuzz/harness --seed $(SEED) --count $(COUNT) tests/fuzz/corpus/*
	$(BIN)/python tests/fuzz/differential.py --seed $(SEED) --count $(COUNT)

wheels: $(VENV)/.stamp-venv ## build the sdist, the wheel for this platform and the pure one, and try each
	$(PIP) build
	rm -rf dist out/wheels
	$(BIN)/python -m build --sdist
	STEPSCOPE_NATIVE=1 $(BIN)/python -m pip wheel --quiet --no-deps --no-cache-dir --wheel-dir dist dist/*.tar.gz
	STEPSCOPE_NATIVE=0 $(BIN)/python -m pip wheel --quiet --no-deps --no-cache-dir --wheel-dir dist dist/*.tar.gz
	@for file in dist/*; do \
		rm -rf out/wheels && $(PYTHON) -m venv out/wheels && \
		out/wheels/bin/python -m pip install --quiet --disable-pip-version-check "$$file" && \
		case $$file in *-any.whl) wanted=0 ;; *) wanted=1 ;; esac && \
		out/wheels/bin/python -c "from stepscope.sources.native import library as l; assert l.is_available() == $$wanted" && \
		out/wheels/bin/stepscope info $(EXAMPLE) >/dev/null && echo "works: $$file" || exit 1; done

clean: ## remove the virtual environment and all that tools cached here
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build out

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or newer is needed; $(PYTHON) is not. Try: make PYTHON=/path/to/python3 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "No virtual environment could be made. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.stamp-base: $(VENV)/.stamp-venv pyproject.toml hatch_build.py $(wildcard $(NATIVE)/*.[ch])
	$(PIP) -e .
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-base
	$(PIP) -e ".[dev]"
	@touch $@

$(VENV)/.stamp-extra-%: $(VENV)/.stamp-dev
	$(PIP) $(SPEC_$*) -e ".[$*]"
	@touch $@
