# The quick loop while you work is `go test ./...`: no services, no tools, under 90 s warm.
# `make test` is what CI runs: it installs what is missing on a Debian machine that has only Go,
# then checks and tests everything. Nothing is skipped in it.
#
# Two build tags part the tests by what they need, so that no test has to skip:
#   services    needs a program besides Go (see tools/setup), a database server or a browser
#   crashpoint  dies by SIGKILL at a named point and is looked at afterwards (internal/crashpoint)

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:

TAGS  := services
TOOL  := go tool -modfile=tools/go.mod
# A hung test must say so long before the CI machine is taken away.
TEST  := go test -shuffle=on -timeout 20m

# SQLite is C translated to Go, and the race detector makes that eleven times slower. So only these run under it,
# and ledger/sqlite does not: its goroutines are those of internal/sqlite.
RACE := ^github\.com/wetink/wetink(/(approval/(oidc|page|passkey)|gateway|ledger/(ledgertest|memory)|internal/(crashpoint|secret|sqlite|strictjson)|mcpserver|notify|policy/rules|target/upstream|wetinktest))?$$

.PHONY: build test setup lint fmt unit race crash mutants model bench

build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

test: setup
	$(MAKE) lint
	$(MAKE) unit
	$(MAKE) race
	$(MAKE) crash
	$(MAKE) mutants
	$(MAKE) model

setup:
	@tools/setup

# vet and staticcheck run twice: code behind a tag is code too, and so is what the tag leaves out.
lint:
	@unformatted=$$(gofmt -l .)
	if [[ -n $$unformatted ]]; then
		printf 'not gofmt-ed, run `make fmt`:\n%s\n' "$$unformatted"
		exit 1
	fi
	set -x
	go vet ./...
	go vet -tags '$(TAGS) crashpoint mutants' ./...
	$(TOOL) staticcheck ./...
	$(TOOL) staticcheck -tags '$(TAGS),crashpoint,mutants' ./...
	# Every switch over one of our own enums lists all its values, or says with `default` that it means the rest.
	GOFLAGS="$${GOFLAGS:-} -tags=$(TAGS),crashpoint" $(TOOL) exhaustive -d -typeonly '^github\.com/wetink/wetink' ./...

fmt:
	gofmt -w .

unit:
	$(TEST) -tags '$(TAGS)' ./...

race:
	$(TEST) -race -tags '$(TAGS)' $$(go list ./... | grep -E '$(RACE)')

# The packages that hold a file with the tag: their tests die and are looked at.
crash:
	$(TEST) -tags '$(TAGS) crashpoint' $$(grep -rlE --include='*_test.go' '^//go:build .*\bcrashpoint\b' . | xargs -n1 dirname | sort -u)

# The code without one check at a time: each must fail the test that is there for that check.
mutants:
	go test -count=1 -timeout 30m -parallel 2 -tags mutants -run TestEveryMutantIsKilled .

model:
	if [[ -x docs/model/check ]]; then docs/model/check; fi

bench:
	go run ./bench
