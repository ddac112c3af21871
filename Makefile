# Two commands do everything: `make run` and `make test`. Each first sets up what it lacks, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
AZ := .venv-az
DOCS := .venv-docs
# Tests wait for servers a third of their time, so there is one process more than processors. Each has connections open
# to the one PostgreSQL of a run, so their number stays bounded.
PROCESSES := $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() + 1))')
PYTEST := $(BIN)/pytest --numprocesses=$(PROCESSES) --dist=worksteal
# Decisions, verbs, the stores on SQLite, access and the wire protocols.
QUICK_TESTS := $(addprefix tests/,model engine access contracts/stores aws/wire test_tidy.py test_layers.py test_settings.py)
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo -n)

.DEFAULT_GOAL := help
.PHONY: help run docs demo test affected browser pictures quick check format test-deep simulate bench postgresql azurite rabbitmq bubblewrap java chromium axe compiler az lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## Start the server; options go in args="--port 5000"
	$(BIN)/redrive serve $(if $(wildcard .site/html/index.html),--docs .site/html) $(args)

docs: .site/html/index.html ## Build the documentation as a site with search, which `make run` then shows, in .site/html

# 18 s of a processor, so only if a page has changed or is gone, which its folder tells.
.site/html/index.html: $(DOCS)/docs.stamp $(wildcard *.md) tests/attack/README.md $(shell find docs/ examples)
	$(DOCS)/bin/python docs/_site/build.py $(args)

$(DOCS)/docs.stamp: docs/_site/requirements.txt | $(DOCS)/bin/pip
	$(DOCS)/bin/python -m pip --disable-pip-version-check --no-input --quiet install --no-compile --requirement $<
	@touch $@

demo: $(VENV)/run.stamp ## Watch orders published, failed, retried, dead-lettered and redriven
	$(BIN)/redrive demo $(args)

test: check postgresql azurite rabbitmq bubblewrap java az chromium axe docs ## Run every check and every test
	$(PYTEST) $(args)

browser: $(VENV)/test.stamp chromium axe docs ## Try the console in Chromium
	$(BIN)/pytest --numprocesses=0 tests/browser $(args)

pictures: $(VENV)/test.stamp chromium axe ## Take the documentation's pictures of the console anew
	$(BIN)/python -m tests.browser.pictures

quick: $(VENV)/test.stamp ## Run the tests that need nothing but Python, in under a minute
	$(PYTEST) --quick --hypothesis-profile=quick $(QUICK_TESTS) $(args)

affected: $(VENV)/test.stamp ## Run the tests that your changes can reach: make affected base=main
	$(BIN)/python -m tests.affected $(or $(base),HEAD) | xargs $(PYTEST) $(args)

check: $(VENV)/test.stamp ## Run the linters and the type checker only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy src tests/services benchmarks
	$(BIN)/lint-imports --no-logo

format: $(VENV)/test.stamp ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test-deep: $(VENV)/test.stamp postgresql azurite rabbitmq bubblewrap java az chromium axe ## Let Hypothesis look for new examples, for as long as it takes
	$(PYTEST) --hypothesis-profile=deep $(args)

simulate: $(VENV)/test.stamp ## Run one simulated cluster: make simulate seed=7
	$(BIN)/python -m tests.simulation $(if $(seed),--seed=$(seed)) $(args)

bench: $(VENV)/test.stamp ## Measure; needs wrk, and Chromium for the stories
	$(BIN)/python -m benchmarks $(args)

lock: $(VENV)/test.stamp ## Move every dependency to its newest version and write them to constraints.txt
	$(PIP) install --upgrade --upgrade-strategy=eager --editable '.[dev]'
	$(PIP) freeze --exclude-editable > constraints.txt

clean: ## Remove what was installed and cached here
	rm -rf $(VENV) $(AZ) $(DOCS) .site .azurite .axe .java .hypothesis .mypy_cache .ruff_cache .import_linter_cache

# A stamp is newer than the lists it was installed from, so a second run installs nothing.
$(VENV)/run.stamp: pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP) install --constraint constraints.txt --editable '.[functions,sam]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(BIN)/pip compiler
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/run.stamp

# The Azure CLI pins 150 packages, some of them older than ours, so it has an environment of its own: a minute, 400 MB.
az: $(AZ)/az.stamp ## Install the Azure CLI, for the tests

$(AZ)/az.stamp: tests/services/az_constraints.txt | $(AZ)/bin/pip
	$(AZ)/bin/python -m pip --disable-pip-version-check --no-input --quiet install --no-compile --constraint $< azure-cli
	@touch $@

# Debian's python3 cannot put pip into a virtual environment until python3-venv is installed, which takes root;
# its pip can, from outside.
$(BIN)/pip $(AZ)/bin/pip $(DOCS)/bin/pip: ENVIRONMENT = $(patsubst %/bin/pip,%,$@)
$(BIN)/pip $(AZ)/bin/pip $(DOCS)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'Redrive needs Python 3.11 or newer: make PYTHON=/path/to/python3'; exit 1; }
	@if $(PYTHON) -m ensurepip --version >/dev/null 2>&1; then \
	  $(PYTHON) -m venv $(ENVIRONMENT); \
	else \
	  $(PYTHON) -m venv --without-pip $(ENVIRONMENT) && \
	  $(PYTHON) -m pip --quiet --python $(ENVIRONMENT)/bin/python install pip; \
	fi

# The tests run servers of their own from these binaries; RUNLEVEL=1 tells the packages to start none.
postgresql: ## Install PostgreSQL's and PgBouncer's binaries, for the tests
	@{ ls /usr/lib/postgresql/*/bin/initdb || command -v initdb; } >/dev/null 2>&1 && \
	  { command -v pgbouncer || ls /usr/sbin/pgbouncer; } >/dev/null 2>&1 || { \
	  echo 'PostgreSQL or PgBouncer is missing: installing them from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends postgresql pgbouncer </dev/null; \
	} || { echo 'Could not install PostgreSQL; the tests need it: apt-get install postgresql pgbouncer'; exit 1; }

# The tests' storage emulator: the versions of its lock file, beside the virtual environment.
azurite: .azurite/stamp ## Install Azurite, for the tests
.azurite/stamp: tests/services/azurite_package/package.json tests/services/azurite_package/package-lock.json
	@command -v npm >/dev/null || { \
	  echo 'npm is missing: installing it from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends nodejs npm </dev/null; \
	} || { echo 'Could not install npm; the tests need it: apt-get install nodejs npm'; exit 1; }
	@mkdir -p .azurite && cp $^ .azurite/
	cd .azurite && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

# RUNLEVEL=1 tells the package to start no broker of its own.
rabbitmq: ## Install RabbitMQ, for the tests
	@ls /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server >/dev/null 2>&1 || { \
	  echo 'RabbitMQ is missing: installing it from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends rabbitmq-server </dev/null; \
	} || { echo 'Could not install RabbitMQ; the tests need it: apt-get install rabbitmq-server'; exit 1; }

# The browser that the console is tried in, and the driver of the same package.
chromium: ## Install Chromium and its driver, for the tests
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { \
	  echo 'Chromium is missing: installing it from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends chromium chromium-driver fonts-dejavu-core </dev/null; \
	} || { echo 'Could not install Chromium; the tests need it: apt-get install chromium chromium-driver'; exit 1; }

# What says of a page whether everybody can use it; npm comes with `make azurite`.
axe: .axe/stamp ## Install axe-core, for the tests
.axe/stamp: tests/services/axe_package/package.json tests/services/axe_package/package-lock.json | azurite
	@mkdir -p .axe && cp $^ .axe/
	cd .axe && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

# What isolates functions, and what a function in a shell asks its runtime with.
bubblewrap: ## Install bubblewrap and curl, for the tests
	@{ command -v bwrap && command -v curl; } >/dev/null || { \
	  echo 'bubblewrap or curl is missing: installing them from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends bubblewrap curl </dev/null; \
	} || { echo 'Could not install bubblewrap; the tests need it: apt-get install bubblewrap curl'; exit 1; }

# Functions in Java, and Amazon's SDK for Java as a client: 15 MB of jars from Maven Central, once, and what is compiled with them.
java: .java/stamp ## Install a JDK and Maven, and fetch jars, for the tests
.java/stamp: tests/services/java_package/pom.xml $(wildcard tests/services/java_package/*.java)
	@{ command -v javac && command -v mvn; } >/dev/null || { \
	  echo 'A JDK or Maven is missing: installing them from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends openjdk-17-jdk-headless maven </dev/null; \
	} || { echo 'Could not install Java; the tests need it: apt-get install openjdk-17-jdk-headless maven'; exit 1; }
	@mkdir -p .java && cp $^ .java/
	cd .java && mvn --quiet --batch-mode generate-resources && javac -d classes -cp 'client/*:sdk/*:sdk1/*' *.java
	@touch $@

# Proton, which speaks AMQP, comes as C.
compiler: ## Install a C compiler and Python's headers, for the tests' dependencies
	@{ command -v cc && echo '#include <Python.h>' | cc -E -I"$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')" - ; } >/dev/null 2>&1 || { \
	  echo 'A C compiler is missing: installing it from the system packages'; \
	  $(SUDO) apt-get update -qq </dev/null && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends gcc libc6-dev python3-dev </dev/null; \
	} || { echo 'Could not install a C compiler; the tests need it: apt-get install gcc libc6-dev python3-dev'; exit 1; }
