# Everything needs Go and make alone, but for `race`, which needs a C compiler too. Tools are built from the versions that
# tools/go.mod pins; the first build of the linter and of buf takes minutes, later ones nothing.
TOOL  := go tool -modfile=tools/go.mod
PKG   ?= ./...
BENCH ?= .

.DEFAULT_GOAL := help
.PHONY: help build test race vet modules lint bench bench-smoke cross proto proto-check vuln clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  PKG=./actors/...  narrows test, race, vet, lint and bench; BENCH=REGEXP chooses benchmarks'

build: ## build the program into bin/quarterjack
	CGO_ENABLED=0 go build -trimpath -o bin/quarterjack ./cmd/quarterjack

test: ## run every test once, uncached
	go test -count=1 -timeout=10m $(PKG)
	@echo 'test: nothing of $(PKG) was left out. The race detector and the benchmarks run apart: make race, make bench-smoke.'

race: ## run every test under the race detector (needs a C compiler)
	@command -v "$$(go env CC | cut -d' ' -f1)" >/dev/null || { echo 'race: the race detector needs a C compiler: none found as' "$$(go env CC)" >&2; exit 1; }
	CGO_ENABLED=1 go test -race -count=1 -timeout=20m $(PKG)

vet: ## run go vet
	go vet $(PKG)

cross: ## run go vet for macOS and Windows, which compiles everything for them, tests included
	CGO_ENABLED=0 GOOS=darwin go vet ./...
	CGO_ENABLED=0 GOOS=windows go vet ./...

modules: ## check that go.mod is tidy and keeps the bounds of docs/adr
	scripts/modules

lint: ## run the linter, gofmt included, over the Go code, and buf's over the messages
	$(TOOL) golangci-lint run $(PKG)
	$(TOOL) buf lint --config tools/buf.yaml

bench: ## run every benchmark (COUNT=10 for benchstat)
	go test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(or $(COUNT),1) -timeout=2h $(PKG)

bench-smoke: ## run each benchmark once, to prove that it still works
	go test -run='^$$' -bench='$(BENCH)' -benchtime=1x -timeout=10m $(PKG)

proto: ## generate messages/*.pb.go
	scripts/proto generate

proto-check: ## fail when messages/*.pb.go is not what proto generates
	scripts/proto check

vuln: ## look for known vulnerabilities that are reached (needs the Go vulnerability database, or VULNDB=file:///…)
	$(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) $(PKG)

clean: ## remove what build made
	rm -rf bin
