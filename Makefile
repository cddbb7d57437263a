# make run       the site, the marketplace and a background worker on this machine
# make test      what to run before each commit: the quick tests on SQLite and one browser flow per
#                role; TESTS=tests/stats runs a part, JOBS=4 uses more cores
# make test-all  all tests that CI runs: make test, test-slow, test-postgres and test-browser
# make check     style, types, layers, migrations, deployment settings
# make format    lets ruff fix what it can
# make docs      the documentation as a site: output/site/index.html (docs-serve: while one writes)
# make demo      the whole loop without a browser, ending in a summary and files
# make messages  collects the texts of pages for translators (docs/translation.md)
# make pictures  pictures of every page that a test looks at: output/pictures/index.html
# make tutorial  does what docs/tutorial.md says in a browser, and takes its pictures
# make notebooks executes the notebooks of docs/notebooks against a temporary site
# make machines  two web servers, two workers, PostgreSQL and Redis, each killed in turn while
#                people work, for SECONDS (90) at least
# make image     makes the image of deploy/Dockerfile on a root file system of Debian's packages, and
#                follows the tutorial in it; make bare: make run in a bare Debian 12 (as root, with
#                debootstrap)
# make long      everything that takes hours: random kills of all processes, machines for an hour,
#                image and bare, the tutorial in a browser, the notebooks, all tests
#                on both databases, many requests that the API's schema allows and forbids
#
# docs/testing.md says which of these to choose. MODELS=0 installs no torch and no encoder.

PYTHON ?= python3.11
VENV := .venv
# One stamp per set of libraries, so that MODELS=0 and its absence do not mistake each other's.
INSTALLED = $(VENV)/.installed$(if $(filter 0,$(MODELS)),-without-models)
BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py
JOBS ?= 2
MARKS ?= (not browser and not slow and not long) or flow
POSTGRES_MARKS ?= not long
MODELS ?= 1
POSTGRES_URL ?= postgres://postgres@127.0.0.1:5432/postgres
ROOTFS ?= output/rootfs
# Modules are compiled when they are first imported: most of the 30,000 in libraries never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Without its compiled modules, each process compiles anew: tests, which rewrite their assertions, above all.
unexport PYTHONDONTWRITEBYTECODE
# The index that images take torch for the CPU from; another, where that one is out of reach.
TORCH_INDEX ?= $(shell sed -n 's/^ARG TORCH_INDEX=//p' deploy/Dockerfile)
SECONDS ?= 90

.PHONY: run test test-all test-slow test-postgres test-browser docs docs-serve pictures tutorial notebooks machines image bare long check check-style check-types check-imports check-site messages demo format clean

run: $(INSTALLED)
	$(PYTHON) -m config.environment
	$(MANAGE) migrate --verbosity 0
	$(MANAGE) load_samples
	$(PYTHON) -m config.environment remember
	$(MANAGE) serve

# Each of the JOBS has a core: libraries that would use all cores would wait for each other.
test test-slow test-postgres test-browser pictures: export OPENBLAS_NUM_THREADS = 1
test test-slow test-postgres test-browser pictures: export OMP_NUM_THREADS = 1
PYTEST = SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

test: $(INSTALLED)-dev
	$(PYTEST) -m "$(MARKS)" $(TESTS)

test-all: test test-slow test-postgres test-browser

# Slow tests that do not use the database; test-postgres runs the others.
test-slow: $(INSTALLED)-dev
	$(PYTEST) -m "slow and once and not browser and not long" $(TESTS)

# Tests of pages run under the pseudo-locale here: they must not depend on wording.
test-postgres: $(INSTALLED)-dev
	DATABASE_URL="$(POSTGRES_URL)" $(PYTEST) --pseudo-locale -m "$(POSTGRES_MARKS) and not once and not browser and not long" $(TESTS)

test-browser: $(INSTALLED)-dev
	$(PYTEST) -m "browser and not flow and not long" $(TESTS)

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(INSTALLED)-dev output/demo/sample-rating-report.html
	$(BIN)/python -m mkdocs build --strict --quiet

# The report that the site shows: `make demo` writes it, which is not done again for each build.
output/demo/sample-rating-report.html:
	$(MAKE) demo

docs-serve: $(INSTALLED)-dev output/demo/sample-rating-report.html
	$(BIN)/python -m mkdocs serve

pictures: $(INSTALLED)-dev
	mkdir -p output/pictures
	PICTURES=$(CURDIR)/output/pictures SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "browser and not long" $(TESTS)

tutorial: $(INSTALLED)-dev
	TUTORIAL=1 SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q tests/console/test_tutorial_in_a_browser.py

notebooks: $(INSTALLED)-dev
	$(BIN)/python -m tests.notebooks

machines: $(INSTALLED)-dev
	$(BIN)/python -m benchmarks.machines --seconds $(SECONDS) --between 5

image: $(INSTALLED)-dev
	$(BIN)/python deploy/rootfs.py --set TORCH_INDEX=$(TORCH_INDEX) image $(ROOTFS)
	ROOTFS=$(abspath $(ROOTFS))/image SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -m long tests/console/test_tutorial_of_the_image.py

bare: $(INSTALLED)-dev
	$(BIN)/python deploy/rootfs.py bare $(ROOTFS)
	$(BIN)/python deploy/rootfs.py run $(ROOTFS)/bare -- bash .ci/run-site

long: $(INSTALLED)-dev
	$(BIN)/python -m benchmarks.faults
	$(BIN)/python -m benchmarks.machines --seconds 3600 --write
	test -z "$$(command -v debootstrap)" || $(MAKE) image bare
	$(BIN)/python -m benchmarks.recruited_arrivals
	SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -m long tests/console tests/upgrade tests/replications
	DATABASE_URL="$(POSTGRES_URL)" $(BIN)/python -m pytest -q -m long tests/upgrade
	$(MAKE) notebooks
	DATABASE_URL="$(POSTGRES_URL)" $(MAKE) test MARKS="browser and not long"
	$(MAKE) test MARKS="not browser and not once and not long"
	API_EXAMPLES=200 SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q --timeout 3600 tests/console/api/test_schemathesis.py

# `make -j2 check` runs two of them at a time.
check: check-style check-types check-imports check-site

check-style: $(INSTALLED)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-types: $(INSTALLED)-dev
	$(BIN)/mypy

check-imports: $(INSTALLED)-dev
	$(BIN)/lint-imports

check-site: $(INSTALLED)-dev
	$(MANAGE) makemigrations --check --dry-run
	SITE_URL=https://assay.example.org SECRET_KEY=$$($(BIN)/python -c "import secrets; print(secrets.token_urlsafe(50))") \
		ENCRYPTION_KEYS=$$($(BIN)/python -c "from cryptography.fernet import Fernet as F; print(F.generate_key().decode())") TRUSTED_PROXY_COUNT=1 \
		$(MANAGE) check --deploy --fail-level WARNING

messages: $(INSTALLED)-dev
	$(BIN)/python -m config.catalogues

demo: $(INSTALLED)
	mkdir -p output/demo
	DATABASE_URL=sqlite:///output/demo/demo.sqlite3 $(MANAGE) demo --output output/demo

format: $(INSTALLED)-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

REQUIREMENTS = requirements$(if $(filter 0,$(MODELS)),,-models)
$(INSTALLED): requirements.txt requirements-models.txt | $(VENV)/bin/python
	$(PIP) -r $(REQUIREMENTS).txt
	touch $@

$(INSTALLED)-dev: requirements-dev.txt requirements-models-dev.txt requirements-foreign.txt $(INSTALLED)
	$(PIP) -r requirements-dev.txt \
		$(if $(filter 0,$(MODELS)),,-r requirements-models-dev.txt)
	$(PIP) --no-deps --upgrade \
		--target $(VENV)/foreign -r requirements-foreign.txt
	touch $@

clean:
	rm -rf output staticfiles .pytest_cache .mypy_cache .ruff_cache .hypothesis
