package cycle

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/belief"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/poll"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenCycles are the cycles of testdata/cycles, as -update makes them; without it only the files count.
func goldenCycles() map[string]func() input.Inputs {
	return map[string]func() input.Inputs{
		"first-plan-of-legacy": func() input.Inputs {
			w := newWorld(lognormal(20, 24)...)
			w.in.Config.Mode = plan.Hold
			w.secret("c007").Shard = discover.ShardValue{State: discover.ShardValid, N: 2}
			w.secret("c008").Shard = discover.ShardValue{State: discover.ShardValid, N: 9}
			w.secret("c009").Shard = discover.ShardValue{State: discover.ShardInvalid}
			w.secret("c010").Unmanaged = true
			w.secret("c011").SkipReconcile = true
			w.in.Discovered.InClusterEnabled = true
			w.in.Owners = poll.Fetched{Metric: "owner", Samples: []poll.Sample{{Key: "argocd-application-controller-1|" + server("c012"), Value: 1}}}
			return w.in
		},
		"elected-move": func() input.Inputs {
			w := newWorld(lognormal(21, 24)...)
			w.run(9)
			return w.next()
		},
		"pin-beyond-replicas": func() input.Inputs {
			w := newWorld(lognormal(22, 24)...)
			w.run(3)
			w.in.Pins = plan.Pins{"c003": 4, "c005": 99, "c9": 1}
			return w.next()
		},
		"prometheus-away": func() input.Inputs {
			w := newWorld(lognormal(23, 24)...)
			w.run(14)
			w.in.Fetched = []poll.Fetched{{Metric: "apps", Err: `asking "http://prometheus-operated.monitoring:9090": connection refused`}}
			return w.next()
		},
		"shrunken-discovery": func() input.Inputs {
			w := newWorld(lognormal(24, 24)...)
			w.run(30)
			w.in.Discovered.Secrets = w.in.Discovered.Secrets[:8]
			return w.next()
		},
		// CPVPS's example, 200m and 10m for each core in its segments, with clusters in the place of cores.
		"sizes-of-fifty-by-cpvps": func() input.Inputs {
			w := sizedFifty(config.InPlace, config.SizeRule{List: config.Requests, Resource: "cpu", Base: "200m", Slope: "10m", Input: "clusters",
				Segments: []config.SizeSegment{{At: "4", Every: "4"}, {At: "32", Every: "8"}, {At: "256", Every: "64"}}})
			w.run(9)
			return w.next()
		},
		"sizes-of-fifty-each-its-own": func() input.Inputs {
			w := sizedFifty(config.InPlace, config.SizeRule{List: config.Requests, Resource: "memory", Base: "512Mi", Slope: "10Mi", Input: "apps",
				Quantize: &config.Quantize{Step: "256Mi"}})
			w.run(9)
			return w.next()
		},
		"sizes-of-fifty-by-the-template": func() input.Inputs {
			w := sizedFifty(config.Template, config.SizeRule{List: config.Requests, Resource: "memory", Base: "512Mi", Slope: "10Mi", Input: "apps",
				Quantize: &config.Quantize{Step: "256Mi"}})
			w.run(9)
			return w.next()
		},
		"broken-plan": func() input.Inputs {
			w := newWorld(lognormal(25, 24)...)
			w.run(30)
			w.in.InForce, w.in.Last, w.in.PlanFault = nil, w.in.InForce, belief.PlanBroken
			w.add("new", 40)
			return w.next()
		},
	}
}

// sizedFifty is a fleet of fifty clusters whose replicas have a size by one rule; the template says a tenth of a core and 1Gi.
func sizedFifty(apply config.SizeApply, rule config.SizeRule) *world {
	w := newWorld(lognormal(26, 50)...)
	w.in.Workload.Resources = &plan.Resources{Requests: map[string]string{"cpu": "100m", "memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}}
	w.in.Config.Size = config.Size{Apply: apply, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{rule}}}}
	return w
}

// next is what the next cycle is asked, a minute later.
func (w *world) next() input.Inputs {
	w.in.Now = w.in.Now.Add(time.Minute)
	return w.in
}

func goldenFile(name, suffix string) string { return filepath.Join("testdata", "cycles", name+suffix) }

func encodeInputs(t *testing.T, in input.Inputs) []byte {
	t.Helper()
	data, err := json.MarshalIndent(in, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// goldenText is the plan as it would be written, under what a cycle says of it.
func goldenText(t *testing.T, in input.Inputs, out outcome.Outcome) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# changed: %t\n", out.Changed)
	if out.Reason != "" {
		fmt.Fprintf(&b, "# reason: %s\n", out.Reason)
	}
	if out.Candidate != nil {
		fmt.Fprintf(&b, "# candidate: %d replicas, %d moves; %s\n", len(out.Candidate.Replicas), len(out.Candidate.Moves), out.Candidate.Verdict)
	}
	for _, p := range out.Problems {
		fmt.Fprintf(&b, "# problem: %s %s: %s\n", p.Phase, p.Kind, p.Message)
	}
	next := out.Next
	if out.Changed {
		next.Revision = 1
		for _, p := range []*plan.Plan{in.InForce, in.Last} {
			if p != nil {
				next.Revision = p.Revision + 1
			}
		}
	}
	text, err := codec.Encode(next)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + text
}

func TestGoldenCycles(t *testing.T) {
	if *update {
		writeGoldenCycles(t)
	}
	files, err := filepath.Glob(goldenFile("*", ".json"))
	if err != nil || len(files) != len(goldenCycles()) {
		t.Fatalf("there are %d cycles (%v), want %d; run go test -update", len(files), err, len(goldenCycles()))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var in input.Inputs
			if err := json.Unmarshal(data, &in); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(goldenFile(name, ".plan.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), goldenText(t, in, Run(in))); diff != "" {
				t.Errorf("the plan (-golden +now):\n%s", diff)
			}
			if again := encodeInputs(t, in); !bytes.Equal(data, again) {
				t.Errorf("inputs that were read are written otherwise (-file +again):\n%s", cmp.Diff(string(data), string(again)))
			}
			checkNoCredentials(t, data)
		})
	}
}

func writeGoldenCycles(t *testing.T) {
	t.Helper()
	for name, inputs := range goldenCycles() {
		in := clone(t, inputs())
		data := encodeInputs(t, in)
		for suffix, content := range map[string][]byte{".json": data, ".plan.yaml": []byte(goldenText(t, in, Run(in)))} {
			if err := os.WriteFile(goldenFile(name, suffix), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkNoCredentials: of a cluster's Secret, a cycle knows what is listed here and nothing else.
func checkNoCredentials(t *testing.T, data []byte) {
	t.Helper()
	var in struct {
		Discovered struct {
			Secrets []map[string]any `json:"secrets"`
		} `json:"discovered"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	known := []string{"uid", "name", "namespace", "cluster", "server", "hasData", "shard", "pin", "skipReconcile", "unmanaged", "immutable", "deleting"}
	for _, s := range in.Discovered.Secrets {
		for key := range s {
			if !slices.Contains(known, key) {
				t.Errorf("a Secret's %q is in the inputs of a cycle", key)
			}
		}
	}
}

// A cycle that is replayed from its inputs as JSON decides the same, down to what it remembers.
func TestAReplayDecidesTheSame(t *testing.T) {
	for name, inputs := range goldenCycles() {
		t.Run(name, func(t *testing.T) {
			in := inputs()
			first, replay := Run(in), Run(clone(t, in))
			if diff := cmp.Diff(goldenText(t, in, first), goldenText(t, in, replay)); diff != "" {
				t.Errorf("the plan (-first +replay):\n%s", diff)
			}
			a, b := memoryText(t, first.Memory), memoryText(t, replay.Memory)
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("the memory (-first +replay):\n%s", diff)
			}
		})
	}
}

func memoryText(t *testing.T, m memory.Memory) string {
	t.Helper()
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
