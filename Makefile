# make demo, make test: the two commands of the README. make check, bench, docs: for contributors.
PYTHON ?= python3
BIN := .venv/bin
# The matrices of this field are small: BLAS threads would spin more than they work.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
SOURCES := $(wildcard kernel/*) CMakeLists.txt pyproject.toml

.PHONY: demo test long quick coverage bench docs check lint setup lock clean fuzz sanitize dist wheel-check wheel-check-all docs-check open-bench

setup: .venv/.installed

# uv is only the fast installer; the lock (names, versions, hashes) decides what is installed.
.venv/.tools: requirements/test.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/uv.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --compile-bytecode --require-hashes -r requirements/test.txt
	touch $@

.venv/.installed: .venv/.tools $(SOURCES)
	$(BIN)/uv pip install -q --python $(BIN)/python --no-build-isolation --no-deps --reinstall-package taufit -e .
	$(BIN)/python -m compileall -q src/taufit
	$(BIN)/taufit --version
	touch $@

demo: setup
	$(BIN)/taufit demo

# Tests keep compiled modules, also those with the check of annotations, which take seconds to make.
test quick long coverage: export PYTHONDONTWRITEBYTECODE :=

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Every case of the families in tests/long.txt, of which `make test` runs one in two or three.
long: setup
	TAUFIT_LONG=1 $(BIN)/python -m pytest -n 3 --dist loadfile

# The inner loop: all tests but those listed in tests/slow.txt.
quick: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

# Lines and branches that the tests reach, those of commands run in processes of their own included.
coverage: setup
	mkdir -p build/coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile
	$(BIN)/coverage combine -q
	$(BIN)/coverage report -i --skip-covered --sort=miss | tail -40

bench: setup
	$(BIN)/python -m benchmarks

# Arms x tools x tasks on the recordings of ../shared/data, as docs/open_benchmark.md describes it.
open-bench: setup
	$(BIN)/python -m benchmarks.open

# Bounded: 20,000 cases or an hour, whichever comes first; `--family NAME --seed K` repeats one.
fuzz: setup
	$(BIN)/python -m tests.fuzz --cases 20000 --minutes 60
	$(BIN)/python -m tests.fuzz.binding --cases 20000
	$(BIN)/python -m tests.fuzz.names --cases 2000
	TAUFIT_FUZZ=1 $(BIN)/python -m pytest tests/wire/test_wire_fuzz.py tests/live/test_server.py

sanitize: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.fuzz.sanitized

# The same bytes from the same commit: times are the commit's, paths are not in it.
# Wheels: one for the Python of .venv and, where there is one, one by ABI3_PYTHON for it and all later.
ABI3_PYTHON ?= python3.12
PYTHONS ?= $(PYTHON)

dist: setup
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/uv build -q --no-build-isolation --python $(BIN)/python --out-dir dist
	if $(ABI3_PYTHON) -c "" 2>/dev/null; then SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/uv build -q --wheel \
	  --python $$($(ABI3_PYTHON) -c "import sys; print(sys.executable)") --build-constraints requirements/test.txt --out-dir dist; \
	  else echo "$(ABI3_PYTHON) does not run: no wheel for it and later versions"; fi
	sha256sum dist/*

docs: setup
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/docs.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q
	@echo 'site/index.html opens as a file; with search: $(BIN)/python -m http.server -d site --bind 127.0.0.1 8000'

docs-check: setup
	TAUFIT_ALL_BLOCKS=1 $(BIN)/python -m pytest tests/docs

# What `check` mends or says, as a law: nothing is written.
lint: setup
	$(BIN)/ruff format --check -q src tests benchmarks examples
	$(BIN)/ruff check -q src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.words.shares

check: setup
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.words.shares

lock:
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url requirements/uv.in -o requirements/uv.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --extra test --extra dev pyproject.toml requirements/build.in -o requirements/test.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --extra docs pyproject.toml -o requirements/docs.txt

# The wheel in an empty environment outside the checkout, as somebody else has it.
wheel-check: dist
	$(BIN)/python tests/packaging/wheel_check.py dist

# The same with other interpreters: make wheel-check-all PYTHONS="python3.11 python3.12 python3.13"
wheel-check-all: dist
	for python in $(PYTHONS); do $$python tests/packaging/wheel_check.py dist || exit 1; done

clean:
	rm -rf .venv build site
