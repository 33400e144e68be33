package cycle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/sharding"
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
		"another Secret of it agrees":          {func(w *liveWorld) { w.placed = map[string]int{"c002": 0, "zz": 0}; w.other("c002", 2) }, true},
		"the workload rolls out":               {func(w *liveWorld) { w.placed = map[string]int{"c002": 0}; w.in.Workload.Generation++ }, false},
		"a pod that is ready keeps silent":     {func(w *liveWorld) { w.placed = map[string]int{"c002": 0}; w.mute = map[int]bool{1: true} }, false},
		"nobody has it, which is another tale": {func(w *liveWorld) { w.taken["c002"] = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.in.Paused = true
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

// TestAnInClusterThatASecondSecretLeftAstrayIsTold: one with a slash behind its server leaves its shard behind when it goes, until the
// controllers restart, for the cluster that Argo CD runs in needs no Secret. No pin mends that.
func TestAnInClusterThatASecondSecretLeftAstrayIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		at        int
		algorithm string
		want      bool
	}{
		"it is where Argo CD has it without a Secret": {at: 0},
		"it is where that Secret had it":              {at: 2, want: true},
		"of Argo CD's ring nobody can tell":           {at: 2, algorithm: string(sharding.ConsistentHashing)},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.in.Discovered.InClusterEnabled, w.in.Workload.Algorithm = true, test.algorithm
			w.placed = map[string]int{discover.ImplicitID: test.at}
			before := w.owners()
			for range 8 {
				w.step(time.Minute)
			}
			if told := slices.Contains(problems(w.last), "ownership/OwnerAstray/in-cluster"); told != test.want {
				t.Errorf("told: %t, want %t: %v", told, test.want, messages(w.last))
			}
			said := strings.Join(messages(w.last), "\n")
			if mend := strings.Contains(said, "restart all controllers, replica 0 too"); mend != test.want || strings.Contains(said, "pin it to") {
				t.Errorf("the mend is not told: %s", said)
			}
			if diff := cmp.Diff(before, w.owners()); test.want && diff != "" {
				t.Errorf("the plan follows (-before +after):\n%s", diff)
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

// TestThePlanFollowsAnOwnerThatIsAstray: one write of a shard makes Argo CD's pods work out all of them anew.
func TestThePlanFollowsAnOwnerThatIsAstray(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*liveWorld)
		want   []string // whose Secret names another replica afterwards
	}{
		"one of two":                   {func(*liveWorld) {}, []string{"c002"}},
		"none while a person froze it": {func(w *liveWorld) { w.in.Paused = true }, nil},
		"none that is pinned":          {func(w *liveWorld) { w.in.Pins = plan.Pins{"c002": 2} }, []string{"c005"}},
		"none once ballast tripped":    {func(w *liveWorld) { w.in.Tripped = "for a test" }, nil},
		"none under rollout.default": {func(w *liveWorld) {
			w.in.Config.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
		}, nil},
		"none whose group would come along": {func(w *liveWorld) {
			w.in.Config.Partition.Groups = []config.Group{together("team")}
			for _, name := range []string{"c002", "c007", "c008"} { // all on one replica
				w.secret(name).Labels = labeltext.Of(map[string]string{"team": "yes"}, []string{"team"})
			}
		}, []string{"c005"}},
		"none onto a replica that is near its memory limit": {func(w *liveWorld) {
			w.shape = func(p *observed.Pod) {
				if p.MemoryLimit = 100 << 20; p.Replica == 0 {
					p.Memory = 95 << 20
				}
			}
		}, nil},
		"none onto a replica that has the most": {func(w *liveWorld) { w.in.Config.Partition.MaxClustersPerReplica = len(w.on(0)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			before := w.owners()
			test.change(w)
			goAstray := func() { w.placed = map[string]int{"c002": 0, "c005": 0} }
			goAstray()
			pass := func(minutes int) (moved []string) {
				for range minutes {
					at := w.owners()
					w.step(time.Minute)
					if !maps.Equal(at, w.owners()) {
						w.placed = nil // by the write
					}
				}
				for name, at := range w.owners() {
					if at != before[name] && at == 0 && (name == "c002" || name == "c005") {
						moved = append(moved, name)
					}
				}
				slices.Sort(moved)
				return moved
			}
			if diff := cmp.Diff(test.want, pass(15)); diff != "" {
				t.Fatalf("moved (-want +got):\n%s\n%v", diff, messages(w.last))
			}
			if found := problems(w.last); (len(test.want) > 0) == slices.Contains(found, "ownership/OwnerAstray/c005") {
				t.Errorf("problems %v", found)
			}
			if len(test.want) == 0 {
				return
			}
			goAstray()
			delete(w.placed, test.want[0])
			if diff := cmp.Diff(test.want, pass(60)); diff != "" {
				t.Errorf("within six hours (-want +got):\n%s", diff)
			}
		})
	}
}
