# make run     the site, the marketplace and the background workers on this machine
# make test    every test, on JOBS cores (2); TESTS=tests/stats runs a part, and
#              MARKS="not walk and not once" leaves out what asks nothing of the database
# make machines  two web servers, two workers, PostgreSQL and Redis, each killed in turn while
#              people work, for SECONDS (90) at least
# make image   what deploy/Dockerfile makes, on a root file system of Debian's packages, and the
#              tutorial done at it; make bare: make run in a bare Debian 12. As root, with debootstrap
# make long    random kills of all processes, and of the whole loop with a failing line, and
#              make machines for an hour (docs/faults.md); 10,000 arrivals for 5,000 places;
#              trained recommenders with alternatives that a crowd gave; walks through whole studies, and the tutorial, in browsers; many
#              requests that the API's schema allows, and many that it does not; the notebooks
# make docs    the documentation as a site: output/site/index.html (docs-serve: while one writes)
# make pictures  what every page looks like in each state that a test looks at, at 1280, 390 and
#              320 px: output/pictures/index.html
# make notebooks  executes the notebooks of docs/notebooks against a temporary site
# make tutorial  does what docs/tutorial.md says in a browser, and takes its pictures
# make check   style, types, layers, migrations, deployment settings
# make messages  collects the texts of pages into locale/ (docs/translation.md)
# make demo    the whole loop without a browser, ending in a summary and files

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py
JOBS ?= 2
MARKS ?= not walk
ROOTFS ?= output/rootfs
# Without its compiled modules, each process compiles anew: tests, which rewrite their assertions, above all.
unexport PYTHONDONTWRITEBYTECODE
# The index that images take torch for the CPU from; another, where that one is out of reach.
TORCH_INDEX ?= $(shell sed -n 's/^ARG TORCH_INDEX=//p' deploy/Dockerfile)
SECONDS ?= 90

.PHONY: run test docs docs-serve pictures tutorial notebooks machines image bare long check messages demo format clean

run: $(VENV)/.installed
	$(PYTHON) -m console.environment
	$(MANAGE) migrate --verbosity 0
	$(MANAGE) load_samples
	$(PYTHON) -m console.environment remember
	$(MANAGE) serve

# Each of the JOBS has a core: libraries that would use all cores would wait for each other.
test: export OPENBLAS_NUM_THREADS = 1
test: export OMP_NUM_THREADS = 1
test: $(VENV)/.installed-dev
	SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "$(MARKS)" $(TESTS)

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.installed-dev output/demo/sample-rating-report.html
	$(BIN)/python -m mkdocs build --strict --quiet

# The report that the site shows: `make demo` writes it, which is not done again for each build.
output/demo/sample-rating-report.html:
	$(MAKE) demo

docs-serve: $(VENV)/.installed-dev output/demo/sample-rating-report.html
	$(BIN)/python -m mkdocs serve

pictures: $(VENV)/.installed-dev
	mkdir -p output/pictures
	PICTURES=$(CURDIR)/output/pictures SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "browser and not walk" $(TESTS)

tutorial: $(VENV)/.installed-dev
	TUTORIAL=1 SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q tests/console/test_tutorial_in_a_browser.py

notebooks: $(VENV)/.installed-dev
	$(BIN)/python -m tests.notebooks

machines: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.machines --seconds $(SECONDS) --between 5

image: $(VENV)/.installed-dev
	$(BIN)/python deploy/rootfs.py --set TORCH_INDEX=$(TORCH_INDEX) image $(ROOTFS)
	ROOTFS=$(abspath $(ROOTFS))/image SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -m walk tests/console/test_tutorial_of_the_image.py

bare: $(VENV)/.installed-dev
	$(BIN)/python deploy/rootfs.py bare $(ROOTFS)
	$(BIN)/python deploy/rootfs.py run $(ROOTFS)/bare -- bash .ci/run-site

long: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.faults
	$(BIN)/python -m benchmarks.faults.loop
	$(BIN)/python -m benchmarks.machines --seconds 3600 --write
	test -z "$$(command -v debootstrap)" || $(MAKE) image bare
	$(BIN)/python -m benchmarks.recruited_arrivals
	$(BIN)/python -m benchmarks.collected_alternatives
	SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q -m walk tests/console tests/upgrade
	test -z "$(POSTGRES_URL)" || DATABASE_URL="$(POSTGRES_URL)" $(BIN)/python -m pytest -q -m walk tests/upgrade
	$(MAKE) notebooks
	test -z "$(POSTGRES_URL)" || DATABASE_URL="$(POSTGRES_URL)" $(MAKE) test MARKS="browser and not walk"
	$(MAKE) test MARKS="not walk and not browser and not once"
	API_EXAMPLES=200 SITE_URL=http://127.0.0.1:8000 $(BIN)/python -m pytest -q --timeout 3600 tests/console/api/test_schemathesis.py

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MANAGE) makemigrations --check --dry-run
	SITE_URL=https://assay.example.org SECRET_KEY=$$($(BIN)/python -c "import secrets; print(secrets.token_urlsafe(50))") \
		ENCRYPTION_KEYS=$$($(BIN)/python -c "from cryptography.fernet import Fernet as F; print(F.generate_key().decode())") TRUSTED_PROXY_COUNT=1 \
		$(MANAGE) check --deploy --fail-level WARNING

messages: $(VENV)/.installed-dev
	$(BIN)/python -m config.catalogues

demo: $(VENV)/.installed
	mkdir -p output/demo
	DATABASE_URL=sqlite:///output/demo/demo.sqlite3 $(MANAGE) demo --output output/demo

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements-dev.txt requirements-foreign.txt $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target $(VENV)/foreign -r requirements-foreign.txt
	touch $@

clean:
	rm -rf output staticfiles .pytest_cache .mypy_cache .ruff_cache .hypothesis
