SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
CODE := operator proxy tests hack benchmarks

.PHONY: help demo venv pins lint types format test rollout-cases golden crds chart docs pod-schema conformance-sweep rule-mutations bench-verdict release cluster cluster-build cluster-up cluster-down images demo-cluster e2e faults clean bench-validate soak dawdle fuzz-proxy bench-proxy bench-forwarding bench-operator

help: ## what can be made
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

venv: $(VENV)/.installed ## the project and its tools in .venv, from hashed pins

$(VENV)/.installed: pyproject.toml requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/bootstrap.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

pins: ## resolve requirements/*.txt again from pyproject.toml
	$(BIN)/python hack/pins.py

lint: venv ## ruff and the import linter
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports

types: venv ## mypy, strict, on source and tests
	$(BIN)/mypy $(CODE)

format: venv ## format the code
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

demo: venv ## one EPDDeployment answers an image question with real vLLM on this machine
	$(BIN)/python -m hack.demo

test: venv ## everything that can run here
	$(BIN)/pytest

rollout-cases: venv ## put the rollout planner through 100,000 generated cases (half an hour)
	EPD_ROLLOUT_CASES=20000 $(BIN)/pytest tests/unit/plan/test_rollout_properties.py

golden: venv ## write the renderings of examples/ that tests compare with
	$(BIN)/python -m hack.golden

crds: venv ## write crds/ from the types, also into the chart
	$(BIN)/epd crd --output-dir crds
	$(BIN)/python -m hack.chart

chart: venv ## bring the chart's CRDs, README and schema up to date
	$(BIN)/python -m hack.chart

docs: venv ## write the generated pages of docs/
	$(BIN)/python hack/api_reference.py
	$(BIN)/python -m hack.rule_pages

conformance-sweep: venv ## random objects before the operator and every real vLLM: SEED=1 N=3000 (minutes a release)
	$(BIN)/python -m tests.conformance.sweep --seed $(or $(SEED),1) --count $(or $(N),3000)

rule-mutations: venv ## take each rule out and move its releases: the rules' cases must notice
	$(BIN)/python -m tests.unit.rules.mutations

bench-verdict: venv ## CPU time of the verdict on one object in a warm process
	$(BIN)/python -m benchmarks.verdict

release: venv ## introspect a vLLM release and write its table: RELEASE=0.34.0
	$(BIN)/python -m hack.vllm.table $(RELEASE)

cluster: venv ## a cluster with nodes: CONTEXT=... of your own, else by kind with Docker, else the local one
	$(BIN)/python -m hack.cluster provide --context "$(CONTEXT)"

cluster-build: venv ## build the local Kubernetes cluster (the first time 10 minutes; Go)
	$(BIN)/python -m hack.cluster build

cluster-up: venv ## start the local cluster with this machine as its node (root, containerd)
	$(BIN)/python -m hack.cluster up

images: venv ## the container images, by Docker or by buildah; engine-cpu is 6 GB
	$(BIN)/python -m hack.images build

pod-schema: venv ## write the fields of a pod that templates are checked with, from an API server
	$(BIN)/python -m hack.pod_schema

demo-cluster: venv ## cluster, images, helm install, EPDDeployment, question, answer: with real vLLM pods
	$(BIN)/python -m hack.demo_cluster $(CONTEXT)

cluster-down: venv ## stop the cluster and leave the machine as it was
	$(BIN)/python -m hack.cluster down

e2e: cluster ## the tests that need a cluster with nodes
	$(BIN)/pytest tests/e2e

faults: cluster ## kill, restart and change parts of a deployment under load; writes docs/development/faults.md
	$(BIN)/python -m tests.e2e.faults

bench-validate: venv ## CPU time of epd validate
	$(BIN)/python benchmarks/validate_cpu.py

soak: venv ## 20 minutes of random failures before the proxy
	$(BIN)/python -m tests.proxy.soaking --seconds 1200

dawdle: venv ## 2,000 slow clients before the proxy
	$(BIN)/python -m tests.proxy.dawdling --clients 2000

fuzz-proxy: venv ## put generated bodies through the proxy's scanner: N=100000
	EPD_FUZZ_BODIES=$(or $(N),100000) $(BIN)/pytest -q tests/unit/proxy/test_scanner.py -k generated_bodies

bench-proxy: venv ## what the proxy costs, beside nginx where it is installed
	$(BIN)/python benchmarks/proxy/bench.py

bench-operator: venv ## what the operator costs for N objects on a real API server: N="20 100" [LWS=checkout of kubernetes-sigs/lws]
	$(BIN)/python -m benchmarks.operator --n $(or $(N),20 100) $(if $(LWS),--lws $(LWS))

bench-forwarding: venv ## what decode is spared by metadata in place of media, with real vLLM
	$(BIN)/python -m benchmarks.proxy.forwarding

clean: ## remove what was built here (caches outside the project stay)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
