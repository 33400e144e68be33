package cycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/discover"
)

// TestAClusterWhoseOwnerIsAstrayIsTold: after the second Secret of a server went, Argo CD's pods have the cluster on replica 0,
// whatever its own Secret says (e2e/gaps TestWhatArgoCDMakesOfASecondSecretThatGoes). Plan, Secret and pods' readiness are as ever.
func TestAClusterWhoseOwnerIsAstrayIsTold(t *testing.T) {
	const told = "ownership/OwnerAstray/c002"
	for name, test := range map[string]struct {
		change func(*liveWorld)
		want   bool
	}{
		"its pods go by replica 0":             {func(w *liveWorld) { w.placed = map[string]int{"c002": 0} }, true},
		"they are where plan and Secret say":   {func(w *liveWorld) {}, false},
		"another Secret of it has replica 0":   {func(w *liveWorld) { w.placed = map[string]int{"c002": 0}; w.other("c002", 0) }, false},
		"another Secret of it agrees":          {func(w *liveWorld) { w.placed = map[string]int{"c002": 0}; w.other("c002", 2) }, true},
		"the workload rolls out":               {func(w *liveWorld) { w.placed = map[string]int{"c002": 0}; w.in.Workload.Generation++ }, false},
		"a pod that is ready keeps silent":     {func(w *liveWorld) { w.placed = map[string]int{"c002": 0}; w.mute = map[int]bool{1: true} }, false},
		"nobody has it, which is another tale": {func(w *liveWorld) { w.taken["c002"] = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			test.change(w)
			for minute := range 8 {
				w.step(time.Minute)
				found := problems(w.last)
				if want := test.want && minute >= 5; slices.Contains(found, told) != want {
					t.Fatalf("problems %v in minute %d, want %s: %t", found, minute, told, want)
				}
			}
			if test.want && !strings.Contains(strings.Join(messages(w.last), "\n"), "pin it to replica 0 in data.pins") {
				t.Errorf("problems %v, want the mend", messages(w.last))
			}
			w.placed, w.taken = nil, map[string]bool{}
			w.step(time.Minute)
			if found := problems(w.last); slices.Contains(found, told) {
				t.Errorf("problems %v once it is where it belongs", found)
			}
		})
	}
}

// other adds a Secret of a cluster's server, whose shard nobody may write.
func (w *liveWorld) other(of string, shard int) {
	w.add("zz", 0)
	s := w.secret("zz")
	s.Server, s.Unmanaged, s.Shard = server(of), true, discover.ShardValue{State: discover.ShardValid, N: shard}
}
