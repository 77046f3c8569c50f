# The one entry for everything a developer runs. `make` alone lists it.

# Tests that need a real server, which is built with Go; all others need only Rust.
REAL_TESTS := kcp dev_kcp differential hard
# The simulator is a program of its own, built with the profile `sim`.
SIMULATION := cargo test --profile sim --test simulation --
ALL_TESTS  := $(patsubst tests/%.rs,%,$(wildcard tests/*.rs)) $(patsubst tests/%/main.rs,%,$(wildcard tests/*/main.rs))
FAST_TESTS := $(filter-out $(REAL_TESTS) simulation,$(ALL_TESTS))

.PHONY: help dev servers kcp test test-fast behaviour conformance differential hard simulation sweep mutants soak leaks bench lint fmt clippy doc deny

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: ## run the whole of it on this machine
	cargo run -q -- dev

servers: ## build all pinned real servers into the cache: kcp, etcd, kube-apiserver (Go; 12 minutes on 2 cores, once)
	cargo run -q -- servers

kcp: ## build kcp alone (Go; 5 minutes on 2 cores, once)
	cargo run -q -- servers kcp

test: test-fast simulation behaviour differential hard ## every test there is

test-fast: ## the tests that need only Rust
	cargo test --lib --bins --examples $(addprefix --test ,$(FAST_TESTS))
	cargo test --doc

behaviour: servers ## what users see, asked of a real kcp (10 minutes on 2 cores)
	tests/kcp/run.sh
	cargo test $(addprefix --test ,$(filter-out kcp differential hard,$(REAL_TESTS)))

conformance: behaviour differential hard ## all that is asked of real servers (25 minutes on 2 cores)

differential: kcp ## the same 10 000 random operations on a real kcp and beside it, compared (6 minutes on 2 cores; DIFFERENTIAL_OPERATIONS, DIFFERENTIAL_SEED)
	cargo test --test differential

hard: kcp ## hard days on a real kcp: kills, outages, bad networks, each request checked (7 minutes on 2 cores; HARD_SEED)
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-3} cargo test --test hard

simulation: ## what each change has to pass in the simulator: singles, pairs, swarms, mutants (13 minutes on 2 cores)
	$(SIMULATION) singles
	$(SIMULATION) pairs
	$(SIMULATION) digests --seeds 1000
	$(SIMULATION) swarm --seeds 6000 --minutes 6
	$(MAKE) -s mutants

sweep: ## every single fault, pairs of faults, 20 000 swarms
	$(SIMULATION) singles
	$(SIMULATION) pairs
	$(SIMULATION) swarm

mutants: ## whether the simulator finds each named defect of our own protocol
	MUTANTS=1 $(SIMULATION) mutants

soak: ## swarms for SOAK_MINUTES (60), from SOAK_SEED or one that is drawn
	$(SIMULATION) swarm --seeds 1000000000 --minutes $${SOAK_MINUTES:-60} --from $${SOAK_SEED:-$$(date +%s)000}

leaks: ## ten thousand workspaces bound and unbound: what stays of them, and what each takes (LEAKS_WORKSPACES)
	cargo test --profile sim --test leaks -- --workspaces $${LEAKS_WORKSPACES:-10000}

bench: ## the benchmarks, and what they measured as JSON with the machine's load
	cargo bench --bench decision --bench embedded
	@cargo bench -q --bench figures

lint: fmt clippy doc deny ## formatting, clippy, documentation, dependencies

fmt: ## formatting, checked only
	cargo fmt --check

clippy: ## clippy on all targets, warnings refused
	cargo clippy --all-targets -- -D warnings

doc: ## documentation, broken links refused
	RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps

deny: ## licences, bans and sources of the dependencies (needs cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing: cargo install cargo-deny --locked (known to take 3 to 6 minutes)" >&2; exit 1; }
	cargo deny check --hide-inclusion-graph licenses bans sources
