SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Further flags for `run` and the benchmarks, such as ARGS='--listen [::1]:8080'.
ARGS ?=
# Seconds that each fuzz target runs.
FUZZ_SECONDS ?= 60

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Serve the demo application at http://127.0.0.1:5000 (ARGS: further flags)
	$(CARGO) run --release --locked --package greenroom-cli --bin greenroom -- serve $(ARGS)

.PHONY: social
social: ## Open the social network at http://127.0.0.1:5001 (ARGS: further flags)
	$(CARGO) run --release --locked --package social -- $(ARGS)

.PHONY: tools
tools: ## Install the foreign programs that the tests use
	$(CARGO) xtask tools

.PHONY: test
test: tools ## Run all tests, the outside suites included
	$(CARGO) xtask test $(ARGS)

# FIRST: the first seed; JOBS: seeds that run at a time; FAULT: only seeds with such a fault, as
# 'disk full'.
SEEDS ?= 20
FIRST ?= 1
JOBS ?= 2
FAULT ?=

.PHONY: cluster-faults
cluster-faults: tools ## Let parts of a cluster fail under load, for SEEDS seeds from FIRST on; needs root
	SEEDS=$(SEEDS) FIRST=$(FIRST) JOBS=$(JOBS) FAULT='$(FAULT)' $(CARGO) test --package greenroom-cluster --locked \
		--test faults -- --exact --ignored --nocapture many_seeds

.PHONY: simulation
simulation: ## Run all 10,000 seeds of the stages' simulation; a minute
	$(CARGO) test --release --package greenroom-stage --locked --lib -- --exact --ignored \
		stage::simulation::who_asks_for_less_than_its_share_hardly_waits_with_all_seeds

.PHONY: pages
pages: ## Write what is made of code: pages of docs/, flags of plackup's handler
	GREENROOM_WRITE_PAGE=1 $(CARGO) test --package greenroom-compat --locked the_page_tells_the_differences
	GREENROOM_WRITE_PAGE=1 $(CARGO) test --package greenroom-cli --locked the_page_tells
	GREENROOM_WRITE_PAGE=1 $(CARGO) test --package greenroom-cli --locked the_handler_knows_all_flags
	GREENROOM_WRITE_PAGE=1 $(CARGO) test --package greenroom-sites --locked --test page

.PHONY: tls-judges
tls-judges: tools ## Have testssl.sh judge the server's TLS; minutes
	$(CARGO) xtask peers
	$(CARGO) test --package greenroom-cli --locked --test tls -- --ignored

.PHONY: firefox-flood
firefox-flood: tools ## Have Firefox, too, show the operators' page of a flooded server; minutes
	$(CARGO) test --package greenroom-cli --locked --test operators -- --ignored

.PHONY: compat-large
compat-large: ## Upload 250 MB to axum and to Greenroom, and compare
	$(CARGO) test --package greenroom-compat --locked -- --ignored

.PHONY: lint
lint: ## Check format, clippy, tidiness and, where cargo-deny is installed, dependencies
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --all --check --manifest-path lab/Cargo.toml
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) check --package greenroom --locked # as users have it, without features
	$(CARGO) xtask tidy
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		$(CARGO) deny --locked check bans licenses sources; \
	else \
		echo 'lint: cargo-deny is NOT INSTALLED, so licences and sources of dependencies are not checked (cargo install --locked cargo-deny)'; \
	fi

# The oldest Rust that builds what users depend on; the social network needs a newer one.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: lab-check
lab-check: ## Check the lab, a workspace of its own, with clippy, and run its tests; minutes
	$(CARGO) clippy --workspace --all-targets --locked --manifest-path lab/Cargo.toml -- -D warnings
	$(CARGO) test --workspace --locked --manifest-path lab/Cargo.toml

.PHONY: msrv
msrv: ## Check that the crates and the program build with the oldest Rust that they promise
	$(CARGO) +$(MSRV).0 check --package greenroom --package greenroom-cli --all-features \
		--locked --target-dir target/msrv

.PHONY: package
package: ## Package the crates as for publishing, and build them from that (ARGS: --no-verify)
	$(CARGO) publish --workspace --dry-run --locked $(ARGS)

# What the programs of packages are built with; `make deb PROFILE=release` takes half the time.
PROFILE ?= dist
export PROFILE

.PHONY: deb
deb: ## Make the Debian package, below target/package (PROFILE=release for trials)
	packaging/deb/build

.PHONY: deb-test
deb-test: ## Install, use, upgrade and purge the package in a clean Debian with systemd (needs root)
	packaging/deb/test

.PHONY: image
image: ## Make the OCI image localhost/greenroom (needs root)
	packaging/image/build

.PHONY: image-test
image-test: ## Run the image: as nobody, read-only, with a drain at its stop (needs root)
	packaging/image/test

.PHONY: compose-test
compose-test: ## Bring compose.yaml up with podman-compose: page, health, limits, stop (needs root)
	packaging/image/test-compose

.PHONY: manifests
manifests: ## Check Kubernetes' manifests, and the files of sites of packages
	packaging/kubernetes/check

.PHONY: release-check
release-check: ## Check what has to be so before a version is published
	packaging/release-check

.PHONY: advisories
advisories: ## Check the dependencies for known vulnerabilities (needs cargo-deny and GitHub)
	$(CARGO) deny --locked check advisories

.PHONY: docs
docs: ## Build the documentation; a warning is an error
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

.PHONY: book
book: ## Make the book of docs/, in target/book/html, and check its links (installs mdBook)
	$(CARGO) xtask book

.PHONY: fuzz
fuzz: ## Fuzz the HTTP engine, FUZZ_SECONDS for each target (needs a nightly toolchain)
	fuzz/run.sh $(FUZZ_SECONDS)

# Stacked Borrows where only our own code and tokio run; crossbeam, which the threads of a pool
# share, keeps to Tree Borrows only. What ends with the process is no leak.
MIRI_TEST := test --package greenroom-actor --test memory --target-dir target/miri
MIRI_FLAGS := -Zmiri-disable-isolation -Zmiri-ignore-leaks

.PHONY: miri
miri: ## Run unsafe code under Miri (needs a nightly toolchain; installs Miri)
	rustup component add --toolchain nightly miri rust-src
	MIRIFLAGS='$(MIRI_FLAGS)' $(CARGO) +nightly miri test --package greenroom-http --lib \
		--target-dir target/miri -- raw::
	MIRIFLAGS='$(MIRI_FLAGS)' $(CARGO) +nightly miri $(MIRI_TEST) -- --skip senders_on_other_threads
	MIRIFLAGS='$(MIRI_FLAGS) -Zmiri-tree-borrows' $(CARGO) +nightly miri $(MIRI_TEST) -- senders_on_other_threads

# RUN: an experiment of lab/experiments, or all; QUICK=1: one short round; ARGS: further flags.
.PHONY: lab
lab: ## List the experiments, or run one: RUN=tutorial, RUN=all QUICK=1 (ARGS: further flags)
	$(CARGO) run --release --quiet --locked --manifest-path lab/Cargo.toml --package greenroom-lab --bin lab -- \
		$(RUN) $(if $(QUICK),--quick) $(ARGS)

# What a clock on a shared machine cannot show.
.PHONY: bench-instructions
bench-instructions: lab-http ## Count instructions of a request, beside hyper, axum and the baseline (ARGS=--update)
	$(CARGO) xtask tools apt
	lab/target/release/http-instructions $(ARGS)

.PHONY: lab-http
lab-http: ## Build what bench-instructions counts
	$(CARGO) build --release --locked --manifest-path lab/Cargo.toml --package lab-http --bins
