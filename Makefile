# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
CLUSTER ?= memory://

.PHONY: demo test nightly nightly-kube lint format bench browser widgets widgets-check notebooks kube-assets clean help

help:
	@echo "make demo     install into $(VENV), run the quickstart notebook on the embedded cluster, report"
	@echo "make test     install what the tests need and run them"
	@echo "make nightly  10,000 random histories of jobs, 100 kills in a cache cluster"
	@echo "make nightly-kube  all recorded traces on a real API server"
	@echo "make lint     ruff and mypy"
	@echo "make format   format the code"
	@echo "make browser  only the tests in a real JupyterLab and Chromium"
	@echo "make widgets  check, test and build the front end of live views (needs node 20 or later)"
	@echo "make bench    run the benchmarks"
	@echo "make notebooks  run the tutorials and save them with their outputs"
	@echo "make kube-assets  build the kube-apiserver that tests/integration/kube runs against (Go 1.26, etcd)"

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[demo,test,lint]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/python notebooks/run_quickstart.py

test: $(VENV)/.test
	@sh tests/what_is_missing.sh
	-$(PYTHON) tests/kube/build.py
	$(BIN)/python -m pytest --numprocesses=auto tests/unit tests/scenario tests/golden tests/property
	$(BIN)/python -m pytest tests/integration tests/notebooks
	$(BIN)/python -m pytest tests/browser

nightly: $(VENV)/.test
	VCNB_HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest tests/property --timeout=0
	VCNB_CACHE_KILLS=100 $(BIN)/python -m pytest tests/integration/cache_cluster/test_cluster_kills.py --timeout=0

nightly-kube: $(VENV)/.test kube-assets
	VCNB_KUBE_TRACES=all $(BIN)/python -m pytest tests/integration/kube/test_kube_controllers_golden.py --timeout=0

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

browser: $(VENV)/.test
	$(BIN)/python -m pytest tests/browser

widgets/node_modules/.package-lock.json: widgets/package.json widgets/package-lock.json
	cd widgets && npm ci --no-audit --no-fund

widgets: widgets/node_modules/.package-lock.json
	cd widgets && npm run -s check && npm test && npm run -s build

widgets-check: widgets/node_modules/.package-lock.json
	cd widgets && npm run -s check && npm test && npm run -s check:build

bench: $(VENV)/.test
	$(BIN)/python benchmarks/reconcile.py
	$(BIN)/python benchmarks/latency.py
	$(BIN)/python benchmarks/views.py

notebooks: $(VENV)/.test
	$(BIN)/python notebooks/save.py

kube-assets:
	$(PYTHON) tests/kube/build.py

clean:
	rm -rf $(VENV) out
