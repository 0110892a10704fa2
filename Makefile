# `make demo` and `make test` are the two to know; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# A checkout that git does not trust (another owner) builds without its revision.
BUILD := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
TEST  := go test -shuffle=on

.PHONY: help build demo test test-long sweep bench check tools clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

build: ## bin/writ, static, without cgo
	CGO_ENABLED=0 go build $(BUILD) -trimpath -o bin/writ ./cmd/writ

demo: build ## run examples/release-gate live, in a store of its own
	.ci/demo

test: tools build ## vet and every test of the first tier (a few minutes on two cores)
	go vet ./...
	$(TEST) -timeout 20m ./...

test-long: tools build ## the same under the race detector, with the long cases; random modules by the ten thousand
	WRIT_LONG=1 $(TEST) -race -timeout 120m $$(go list ./... | grep -v /conformance/)
	$(TEST) -race -timeout 60m ./conformance/...
	WRIT_LONG=1 $(TEST) -timeout 240m ./conformance/...

sweep: tools ## a kill or a fault at every write point
	WRIT_SWEEP=1 WRIT_LONG=1 $(TEST) -count=1 -v -timeout 240m -run 'Sweep|KillAtEveryStep|FailureAtEveryStep' ./cmd/writ ./engine/...

bench: ## the figures: each beside its baseline, in one run
	@mkdir -p build
	@go test -p 1 -count=1 -run '^$$' -bench Figure -benchtime 1x -timeout 20m ./host/wazero ./engine/evidence ./cmd/writ ./policies ./conformance/kernels >build/bench.txt 2>&1 || { cat build/bench.txt; exit 1; }
	@sed -n 's/^.*figure: //p' build/bench.txt

check: tools ## make everything again that is made, and require that nothing changed
	@test -z "$$(git status --porcelain)" || { echo "check: error: the tree has changes; commit them first" >&2; exit 1; }
	go mod verify
	go run ./modules/build -update
	UPDATE=1 go test -count=1 ./guest-abi/... ./cmd/writ/...
	@git diff --exit-code && test -z "$$(git status --porcelain)" || { echo "check: error: what is generated is not what is committed" >&2; exit 1; }

tools: ## install what tests need beside Go (wabt, binaryen, strace, clang, rustc, qemu)
	@.ci/tools

clean: ## remove what the other targets made
	rm -rf bin build modules/out examples/release-gate/modules
