# Every target works from a fresh clone with Go, make and a C compiler. What is built beside ballast itself (a real
# control plane, the linter) comes from pinned Go modules and is kept in a cache folder outside the checkout.
SHELL := /bin/bash
export CGO_ENABLED ?= 1
export GOTOOLCHAIN ?= local
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
CACHE   ?= $(or $(BALLAST_CACHE),$(shell go env GOCACHE)/../ballast)
LINT    := $(CACHE)/lint/$(shell cat lint/go.mod lint/go.sum 2>/dev/null | sha256sum | cut -c1-12)/golangci-lint
CONTAINER ?= docker
# A soak draws what no run before it has, unless it is told a seed; it says which.
SOAK_SEED := $(if $(filter undefined,$(origin SEED)),$(shell echo $$(($$(od -An -N3 -tu4 /dev/urandom) + 1))),$(SEED))
SEED    ?= 1
# What property tests draw: the same in each run, until somebody asks for others.
export RAPID_SEED ?= $(SEED)
export RAPID_SHRINKTIME ?= 10s
COUNT   ?= 6
PACKAGES ?= ./...
# They begin no goroutine and share nothing between any (planner/cycle's TestWhatIsTestedWithoutTheRaceDetectorHasNoGoroutine),
# and take eight times as long under the race detector, which could find nothing in them.
PURE    := $(addprefix ballast/planner/,apply/workloadpatch calibrate change change/harm change/maintenance config config/changerules config/httpclient config/strict config/validation cycle cycle/adopt cycle/belief cycle/compare cycle/counting cycle/discovery cycle/division cycle/division/bounds cycle/division/clash cycle/election cycle/explain cycle/gate cycle/ground cycle/input cycle/inuse cycle/ledger cycle/loads cycle/member cycle/memory cycle/outcome cycle/preview cycle/problem cycle/proposal cycle/reading cycle/resize cycle/resize/quantity cycle/resize/question cycle/resize/wish cycle/safety cycle/sizing cycle/snapshot cycle/standing cycle/track cycle/waiting decisions diff discover/labeltext evaluate failover failover/health gz index lenient measure measure/lastgood measure/match normalize ownership page page/chart page/view page/wording partition partition/bars partition/constraint partition/exact partition/fresh partition/pack partition/sticky partition/sticky/draft partition/sticky/overload partition/sticky/starved patchable placement plan plan/codec plan/configmap plan/fixture plan/people plan/podspec plan/probing plural poll/pods replay replay/bill replay/instant replay/picture replay/trace rollout rollout/answers rollout/basis rollout/layout rollout/readiness rollout/wave sharding sim/life size size/inputs size/peer size/rational size/weights store/history trend)
# Test files of other packages of which the same is true, or that weigh what the detector would add to: of those packages these tests
# run without it, and all others with it.
ALONE   := certs/next_property_test.go cmd/ballast/replay/pictures_test.go webhook/amount_test.go
# And those that test a process of their own, built as it is shipped: the detector would see nothing but who floods it, and
# makes that eight times as slow.
PROCESS := cmd/ballast/webhook/flood_test.go cmd/ballast/webhook/memory_test.go
# They drive processes: a control plane, Argo CD's controllers, ballast. e2e/suite builds its ballast with the detector. manifests
# sends an API server what is as large as may be, which the detector makes several times as slow. In e2e/crash one goroutine does
# one thing after another, whatever a leader would do at the same time.
DRIVEN  := ballast/manifests $(addprefix ballast/e2e/,canary crash demo gaps locks newcomer poll rollouts sizes suite)
ALONE_TESTS := ^($(shell grep -ohE '^func Test[A-Za-z0-9]+' $(ALONE) $(PROCESS) | cut -c6- | paste -sd'|'))$$
ALONE_IN := $(addprefix ballast/,$(sort $(patsubst %/,%,$(dir $(wildcard $(ALONE) $(PROCESS))))))
# What debuggers need takes half of the time that a test's binary is linked in, and there are some seventy. `make verify` vets.
LIGHT   := -vet=off -ldflags='-s -w'
# The end-to-end packages wait more than they work, so one more of them runs than there are cores.
AT_ONCE ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))

.DEFAULT_GOAL := help
.PHONY: help demo test test-page page-pictures soak race bench e2e lint fmt verify golden pictures sizes manifests image release clean binaries build

help: ## what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/ballast
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X ballast/cmd/ballast/version.version=$(VERSION) -X ballast/cmd/ballast/version.commit=$(COMMIT)" -o bin/ballast ./cmd/ballast

binaries: ## the control plane the tests and the demo run on, built once into the cache
	@go run ./e2e/assets/cmd/assets > /dev/null

demo: ## the main job on a real control plane; KEEP=1 leaves it up
	@go run ./e2e/demo $(if $(KEEP),--keep)

test: binaries ## everything, in seeded slices, with the race detector where there are goroutines
	@set -o pipefail; mkdir -p bin; go build -o bin/progress ./e2e/progress || exit; all="$$(go list $(PACKAGES))" || exit; pure= alone= driven= raced=; \
	for p in $$all; do case " $(PURE) " in *" $$p "*) pure="$$pure $$p"; continue;; esac; case " $(DRIVEN) " in *" $$p "*) driven="$$driven $$p";; *) raced="$$raced $$p";; esac; done; \
	for p in $$raced; do case " $(ALONE_IN) " in *" $$p "*) alone="$$alone $$p";; esac; done; \
	{ plain=0; [ -z "$$alone" ] || go test $(LIGHT) -timeout 35m -p 1 -run '$(ALONE_TESTS)' $$alone || plain=1; \
	  [ -z "$$pure" ] || GOGC=400 go test $(LIGHT) -timeout 35m -p 1 $$pure || plain=1; exit $$plain; } > bin/pure.txt 2>&1 & \
	failed=0; [ -z "$$driven" ] || go test $(LIGHT) -json -timeout 35m -p $(AT_ONCE) $$driven | bin/progress || failed=1; \
	[ -z "$$raced" ] || go test $(LIGHT) -json -race -timeout 35m -p $(AT_ONCE) -skip '$(ALONE_TESTS)' $$raced | bin/progress || failed=1; \
	wait $$! || failed=1; cat bin/pure.txt; exit $$failed

race: binaries ## every package with the race detector, also those that begin no goroutine
	go test -race -timeout 60m -p $(AT_ONCE) $(PACKAGES)

# The browser is Debian's chromium, or whatever BALLAST_CHROMIUM names; axe-core comes from npm, by the lock file, once. Where
# either is missing it says so and what needs it is not tested; BALLAST_CHROMIUM_NEEDED=1, as .ci/run sets it, makes that a failure, and so does CI.
ifdef CI
export BALLAST_CHROMIUM_NEEDED = 1
endif
test-page: ## the page in a real headless Chromium, and what axe finds in it
	@for b in "$$BALLAST_CHROMIUM" chromium chromium-browser google-chrome; do [ -n "$$b" ] && command -v "$$b" > /dev/null && found=1; done; \
	[ -n "$$found" ] || { echo "make test-page: the page is not tested, there is no Chromium (apt-get install chromium, or BALLAST_CHROMIUM=/path/to/it)"; [ -z "$$BALLAST_CHROMIUM_NEEDED" ]; exit; }; \
	cd e2e/page && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --prefer-offline --no-audit --no-fund --loglevel=error || \
	  { echo "make test-page: npm ci failed, so axe is not asked"; [ -z "$$BALLAST_CHROMIUM_NEEDED" ]; }; } && go test -count=1 -timeout 20m

page-pictures: ## the pictures of docs/page.md, by the same Chromium
	@mkdir -p docs/page
	cd e2e/page && BALLAST_CHROMIUM_NEEDED=1 BALLAST_PAGE_PICTURES=$(CURDIR)/docs/page go test -count=1 -timeout 20m -run TestThePagesPicturesAreMadeAgain .

e2e: binaries ## only the end-to-end suite
	go test -race -timeout 20m ./e2e/...

CHECKS   ?= 2000
FUZZTIME ?= 60s

soak: SEED := $(SOAK_SEED)
soak: export BALLAST_SEED := $(SOAK_SEED)
soak: binaries ## the full counts, several hours; figures with commit and seed go to docs/soak.md
	@echo "make soak: seed $(SEED); make soak SEED=$(SEED) draws the same once more"
	@mkdir -p docs bin
	@{ echo "# Soak"; echo; echo "Commit $(COMMIT), seed $(SEED), $$(date -u +%F), $$(go version | cut -d' ' -f3-4), $$(nproc) cores."; echo; echo '```'; } > docs/soak.md
	@set -o pipefail; for p in $$(grep -rl pgregory.net/rapid --include='*_test.go' planner webhook certs | xargs -n1 dirname | sort -u); do \
	  go test -count=1 -timeout 60m ./$$p -rapid.checks=$(CHECKS) | tee -a docs/soak.md || exit 1; done
	@set -o pipefail; BALLAST_SOAK_RESTARTS=50 BALLAST_SOAK_ROTATIONS=20 BALLAST_SOAK_CALLS=100000 \
	  go test -count=1 -v -timeout 60m -run 'TestEveryWritePath/(rolling|pins_in_force|a_plan_at)' ./webhook/matrix | grep -E 'writes|in force|have a plan|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_CRASH_RUNS=200 go test -count=1 -v -timeout 60m -run 'TestCrash' ./e2e/crash | grep -E 'runs|faults|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_LIVES=1000 go test -count=1 -v -timeout 5h -run "^TestLives\$\$" ./planner/sim/life | grep -E 'lives of|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_SIZED_LIVES=200 go test -count=1 -v -timeout 60m -run 'TestSizedLives' ./planner/sim/life | grep -E 'lives of|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_RICH_LIVES=200 go test -count=1 -v -timeout 60m -run 'TestRichLives' ./planner/sim/life | grep -E 'rich lives|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_STRANGE_LIVES=200 go test -count=1 -v -timeout 90m -run 'TestStrangeLives' ./planner/sim/life | grep -E 'strange lives|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_WEEKS=10 go test -count=1 -v -timeout 60m -run 'TestAWeek(OfTheShippedConfiguration|ByTheShippedMetrics)Rests|TestASteadyFleetWritesNoPlan' ./planner/cycle | grep -E 'rollouts,|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_BARS=all go test -count=1 -v -timeout 60m -run 'TestBars' ./planner/partition/bars | grep -E ' met$$|NOT MET$$|^ok|^FAIL' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_WEEKS=1 go test -count=1 -timeout 60m -run 'TestThePicturesAreMadeAgain' ./cmd/ballast/replay | tee -a docs/soak.md
	@set -o pipefail; BALLAST_TRANSITIONS=10000 go test -count=1 -v -timeout 60m ./e2e/transitions | grep -E 'transitions|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_FLOOD_CONNECTIONS=20000 go test -count=1 -v -timeout 30m -run TestNoFloodEnds ./cmd/ballast/webhook | grep -E 'connections were opened|at most|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_RELEASE_TWICE=1 go test -count=1 -v -timeout 60m -run TestTwoBuilds ./manifests/release | grep -E 'twice|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_SOAK_RECOVERY=1 go test -count=1 -v -timeout 60m ./e2e/locks | grep -E ': [0-9.]+ s$$|^(ok|FAIL|---)' | tee -a docs/soak.md
	@set -o pipefail; BALLAST_CANARY_SECRETS=1000 go test -count=1 -timeout 30m ./e2e/canary | tee -a docs/soak.md
	@# A fuzzer whose time ends while it works may fail with "context deadline exceeded" alone: it has found nothing then.
	@grep -rlE '^func Fuzz' --include='*_test.go' planner webhook certs | sort | while read -r f; do \
	  for t in $$(grep -oE '^func Fuzz[A-Za-z0-9]+' $$f | cut -c6-); do \
	    go test -run '^$$' -fuzz "^$$t$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$(dirname $$f) > bin/fuzz.txt 2>&1 || \
	      { grep -q 'context deadline exceeded' bin/fuzz.txt && ! grep -q 'Failing input' bin/fuzz.txt; } || { cat bin/fuzz.txt; exit 1; }; \
	    echo "$$t $$(grep -oE 'execs: [0-9]+' bin/fuzz.txt | tail -1), nothing found" | tee -a docs/soak.md; done; done
	@set -o pipefail; BALLAST_SOAK_MOVES=30 BALLAST_SOAK_ROLLOUTS=1 BALLAST_PICTURES=$(CURDIR)/docs/rollouts go test -count=1 -v -timeout 90m -p 1 ./e2e/gaps ./e2e/rollouts | grep -E 'moves|live|x0y|default|deployment|^(ok|FAIL|---)' | tee -a docs/soak.md
	@echo '```' >> docs/soak.md

bench: binaries ## time, bytes and allocations of each phase and of a whole cycle, COUNT times each, through benchstat
	@mkdir -p bin
	@set -o pipefail; BALLAST_BARS=all go test -count=1 -v -run TestBars -timeout 60m ./planner/partition/bars | tee bin/bars.txt
	@set -o pipefail; go test -run '^$$' -bench . -skip 'ThroughAPIServer|BenchmarkReplay' -benchmem -count $(COUNT) -timeout 60m ./planner/... ./webhook/... | tee bin/bench.txt
	@set -o pipefail; go test -run '^$$' -bench BenchmarkReplay -benchtime 1x -timeout 20m ./planner/replay | tee -a bin/bench.txt
	@set -o pipefail; BALLAST_BENCH_ROUNDS=10 go test -run '^$$' -bench ThroughAPIServer -timeout 60m ./webhook/matrix | tee -a bin/bench.txt
	@cd lint && go run golang.org/x/perf/cmd/benchstat ../bin/bench.txt

lint: $(LINT) ## golangci-lint, pinned in lint/go.mod
	$(LINT) run ./...

$(LINT): lint/go.mod lint/go.sum
	@echo "building golangci-lint once (some minutes on two cores)"
	@mkdir -p $(dir $@)
	cd lint && CGO_ENABLED=0 go build -trimpath -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

fmt: ## gofmt
	gofmt -w $$(git ls-files '*.go')

golden: ## write the golden files anew
	@for p in $$(grep -rlE 'flag.Bool\("update"|fixture\.Golden' --include='*_test.go' cmd docs manifests planner certs webhook | xargs -n1 dirname | sort -u); do go test -count=1 ./$$p -update || exit 1; done

# cmd/ballast/replay's TestThePicturesAreMadeAgain reads these lines, and runs them.
PICTURE := replay --config shipped --config lpt --config legacy --config round-robin --config consistent-hashing -o svg
SIZED   := replay --config in-place=docs/sizing/fleet.yaml --generate clusters=40,days=1,spikes=1,joins=3,leaves=3
pictures: ## the pictures of docs/planning.md, by ballast replay: the same bytes each time, until decisions change
	@mkdir -p docs/planning
	go run ./cmd/ballast $(PICTURE) --generate clusters=40,days=1,spikes=1,joins=3,leaves=3 > docs/planning/day.svg
	go run ./cmd/ballast $(PICTURE) --generate clusters=60,days=7,spikes=0.5,joins=3,leaves=2 > docs/planning/week.svg

sizes: ## the figures and the picture of docs/sizing.md, by ballast replay: the same bytes each time, until decisions change
	go run ./cmd/ballast $(SIZED) > docs/sizing/day.txt
	go run ./cmd/ballast $(SIZED) -o svg > docs/sizing/day.svg

manifests: ## print what the quick start applies
	@$$(go run ./e2e/assets/cmd/assets)/kubectl kustomize manifests/overlays/cert-manager

# What a client of the API server is made of. depguard sees only what a package imports itself; verify looks at all that it links.
CLIENT := (k8s\.io/client-go|sigs\.k8s\.io/controller-runtime)
verify: ## tidy modules, formatted code, nothing large, a core that links no client, clean tree
	@for m in . lint e2e/kube e2e/tools e2e/prometheus e2e/argocd e2e/helm e2e/page; do (cd $$m && go mod tidy -diff) || { echo "$$m/go.mod is not tidy: run go mod tidy there"; exit 1; }; done
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run make fmt"; exit 1; }
	@large=$$(git ls-files -z | xargs -0 -r find 2>/dev/null -size +1024k); test -z "$$large" || { echo "$$large: over 1 MiB; every clone would have it: git rm --cached"; exit 1; }
	@imports=$$(go list -deps -f '{{$$p := .ImportPath}}{{range .Imports}}{{$$p}} imports {{.}}{{"\n"}}{{end}}' ./planner/cycle/...) || exit 1; \
	  found=$$(grep -E ' imports $(CLIENT)(/|$$)' <<< "$$imports" | grep -vE '^$(CLIENT)[/ ]'); \
	  test -z "$$found" || { echo "$$found"; echo "planner/cycle/... links a client by that: keep the value in a package of its own, and copy it in planner/controller"; exit 1; }
	go vet ./...
	cd e2e/page && go vet ./...
	@if [ -n "$$CI" ]; then test -z "$$(git status --porcelain)" || { git status --short; echo "the tree is not clean"; exit 1; }; fi

image: ## a static image, with docker, or with podman: make image CONTAINER=podman
	$(CONTAINER) build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t ballast:$(VERSION) .

# The image is pulled from IMAGE:VERSION, and the archives of the krew manifest from URL, once you have put them there.
IMAGE ?= ballast
URL   ?= https://releases.invalid/ballast/$(VERSION)
release: ## bin/release: binaries, image, chart, YAML, krew manifest, SBOM and checksums, without a container engine
	@rm -rf bin/release
	go run ./manifests/release/cmd/release -out bin/release -version $(VERSION) -commit $(COMMIT) -time $$(git log -1 --format=%ct) -image $(IMAGE) -url $(URL)
	@cd bin/release && sha256sum --quiet -c SHA256SUMS && ls

clean: ## remove what was built in the checkout; the cache stays
	rm -rf bin
