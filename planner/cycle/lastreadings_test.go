package cycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/track"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// partlySeen is a sized fleet of three replicas of which the clusters named hidden are gone at once: its replicas have 30, 40 and 20
// applications, of which 10, 10 and 20 are seen.
func partlySeen(t *testing.T) *liveWorld {
	t.Helper()
	loads := map[string]float64{"a-seen": 10, "b-seen": 10, "c-move": 20,
		"e-hidden": 10, "f-hidden": 10, "g-hidden": 10, "h-hidden": 10, "i-hidden": 10}
	on := map[string]int{"a-seen": 0, "b-seen": 1, "c-move": 2, "e-hidden": 0, "f-hidden": 0, "g-hidden": 1, "h-hidden": 1, "i-hidden": 1}
	w := halved(t, loads, on, "0.67")
	w.in.Workload.Resources = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}}
	w.in.Config.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "1Gi"},
		{Name: "apps", List: config.Requests, Resource: "memory", Slope: "100Mi", Input: "apps"},
		{Name: "count", List: config.Requests, Resource: "memory", Slope: "1Mi", Input: config.InputClusters, Max: "1Gi"},
		{Name: "load", List: config.Requests, Resource: "memory", Slope: "1Gi", Input: config.InputLoad}}}}}
	w.in.Memory.Sizes.Peaks = map[int]track.Peak{}
	for r := range 3 {
		w.in.Memory.Sizes.Peaks[r] = track.Peak{Bytes: 64 << 20, At: w.in.Now}
	}
	for range 3 {
		w.step(time.Minute)
	}
	before := w.memories()
	w.lose(func(name string) bool { return strings.HasSuffix(name, "hidden") })
	w.step(time.Minute)
	if findProblem(w.last, "Shrunk").Kind == "" {
		t.Fatalf("the discovery is believed: %v", problems(w.last))
	}
	if diff := cmp.Diff(before, w.memories()); diff != "" {
		t.Fatalf("a refused discovery changed sizes (-before +after):\n%s", diff)
	}
	return w
}

// requests are what the plan requests of memory for each replica.
func (w *world) memoryRequests() (all []string) {
	for _, memory := range w.memories() {
		all = append(all, memory[0])
	}
	return all
}

// What a dead replica's clusters go to has the size for them and for what is not seen.
func TestAFailoverDuringARefusedDiscoveryIsSized(t *testing.T) {
	w := partlySeen(t)
	was := w.memoryRequests()
	w.down[2] = true
	w.until(t, "replica 2 is empty", 20*time.Minute, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
	if findProblem(w.last, "Shrunk").Kind == "" {
		t.Fatalf("the discovery is believed: %v", problems(w.last))
	}
	to := w.in.InForce.Clusters["c-move"].Replica
	apps := map[int]int64{0: 30, 1: 40}
	share := (apps[to] + 20) << 30 / 90 // a load of 1 is all 90 applications
	least, got := int64(1<<30)+(apps[to]+20)*100<<20+share, parsed(t, w.memoryRequests()[to])
	if got < least || got > least+8<<20 {
		t.Errorf("replica %d requests %d MiB (%s before), want %d and a few clusters more", to, got>>20, was[to], least>>20)
	}
	if other := 1 - to; w.memoryRequests()[other] != was[other] {
		t.Errorf("replica %d requests %s instead of %s", other, w.memoryRequests()[other], was[other])
	}
}

func TestAKillDuringARefusedDiscoveryIsAnswered(t *testing.T) {
	w := partlySeen(t)
	was := parsed(t, w.memories()[1][1])
	killed := w.in.Now
	w.shape = func(p *observed.Pod) {
		p.MemoryLimit = was
		if p.Replica == 1 {
			p.OOMKilled, p.KilledAt = true, killed
		}
	}
	w.step(time.Minute)
	if got := parsed(t, w.memories()[1][1]); got < was/5*6 {
		t.Errorf("the limit is %d MiB, want a fifth above %d", got>>20, was>>20)
	}
	if findProblem(w.last, "Shrunk").Kind == "" {
		t.Fatalf("the discovery is believed: %v", problems(w.last))
	}
}

// What waits is shown also then, and nothing shrinks.
func TestWhatWaitsIsShownDuringARefusedDiscovery(t *testing.T) {
	w := partlySeen(t)
	was := w.memoryRequests()
	w.in.Config.Size.Policies[0].Rules[0].Base = "512Mi"
	w.step(time.Minute)
	if diff := cmp.Diff(was, w.memoryRequests()); diff != "" {
		t.Errorf("it shrank (-before +after):\n%s", diff)
	}
	var blocked []resize.Blocked
	for _, b := range w.last.Sizing.Blocked {
		blocked = append(blocked, resize.Blocked{Replica: b.Replica, Direction: b.Direction, Reason: b.Reason, Why: b.Why})
	}
	var want []resize.Blocked
	for r := range 3 {
		want = append(want, resize.Blocked{Replica: r, Direction: change.Down, Reason: change.UpdatePolicy, Why: gate.GoneAtOnce})
	}
	if diff := cmp.Diff(want, blocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
}

func parsed(t *testing.T, quantity string) int64 {
	t.Helper()
	q, err := resource.ParseQuantity(quantity)
	if err != nil {
		t.Fatal(err)
	}
	return q.Value()
}
