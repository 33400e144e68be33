package cycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// sizedWorld is a fleet whose replicas request 1Gi and 100Mi for each application, in steps of 256Mi; the template has 1Gi, and
// limits of twice that.
func sizedWorld(loads ...float64) *world {
	w := newWorld(loads...)
	w.in.Workload.Resources = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "2Gi"}}
	w.in.Config.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "1Gi"},
		{Name: "apps", List: config.Requests, Resource: "memory", Slope: "100Mi", Input: "apps", Quantize: &config.Quantize{Step: "256Mi"}},
	}}}}
	return w
}

// memoryOf is what the plan holds a replica's memory at: request and limit.
func (w *world) memoryOf(replica int) [2]string {
	r, _ := w.in.InForce.SizeOf(replica)
	return [2]string{r.Requests["memory"], r.Limits["memory"]}
}

func (w *world) memories() (all [][2]string) {
	for r := range w.in.InForce.Replicas {
		all = append(all, w.memoryOf(r))
	}
	return all
}

func TestEachReplicaHasItsOwnSize(t *testing.T) {
	w := sizedWorld(20, 1, 1)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	want := [][2]string{{"3Gi", "6Gi"}, {"1280Mi", "2560Mi"}, {"1280Mi", "2560Mi"}}
	if diff := cmp.Diff(want, w.memories()); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, problems(w.last))
	}
	if got := w.in.InForce.Sizes.Replicas; len(got) != 1 || got[0].Requests["memory"] != "3Gi" {
		t.Errorf("the plan has %v, want a row of replica 0 alone", got)
	}
	writes := w.writes
	w.run(60)
	if w.writes != writes {
		t.Errorf("an idle hour wrote the plan %d times, last because %q", w.writes-writes, w.last.Reason)
	}
}

// A step of the load raises one replica, once; what falls again waits for change.down.
func TestALoadStepRaisesOneReplicaOnce(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.in.Config.Change.Down.StabilizationWindow = config.Duration(30 * time.Minute)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	writes := w.writes
	w.setLoad("c001", 10)
	w.run(5)
	if w.writes != writes+1 || w.memoryOf(1) != [2]string{"2Gi", "4Gi"} || w.memoryOf(0) != [2]string{"1280Mi", "2560Mi"} {
		t.Errorf("%d writes, sizes %v", w.writes-writes, w.memories())
	}
	w.setLoad("c001", 2)
	w.run(29)
	if w.memoryOf(1) != [2]string{"2Gi", "4Gi"} {
		t.Fatalf("it shrank before the window was over: %v", w.memories())
	}
	want := []Blocked{{Replica: 1, Resource: "memory", Direction: change.Down, Reason: change.StabilizationWindow, From: "2Gi", To: "1280Mi"}}
	got := w.last.Sizing.Blocked
	for i := range got {
		if got[i].Since.IsZero() || !got[i].Until.After(w.in.Now) {
			t.Errorf("it waits since %v until %v", got[i].Since, got[i].Until)
		}
		got[i].Since, got[i].Until, got[i].Why = time.Time{}, time.Time{}, ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	w.run(3)
	if w.memoryOf(1) != [2]string{"1280Mi", "2560Mi"} || len(w.last.Sizing.Blocked) != 0 {
		t.Errorf("sizes %v, blocked %v", w.memories(), w.last.Sizing.Blocked)
	}
}

func TestWithoutPoliciesNothingIsSized(t *testing.T) {
	w := sizedWorld(20, 1, 1)
	w.run(5)
	w.in.Config.Size.Policies = nil
	w.run(1)
	if w.in.InForce.Sizes != nil || w.last.Sizing != nil || w.in.Memory.Sizes.Rules != nil {
		t.Errorf("the plan has %+v, the outcome %+v", w.in.InForce.Sizes, w.last.Sizing)
	}
}

// In Observe people see what sizes would be, and the plan has none.
func TestObserveSaysSizesAndHoldsNone(t *testing.T) {
	w := sizedWorld(20, 1, 1)
	w.in.Config.Mode = plan.Observe
	w.run(5)
	if w.in.InForce.Sizes != nil {
		t.Errorf("the plan has %+v", w.in.InForce.Sizes)
	}
	var got []string
	for _, b := range w.last.Sizing.Blocked {
		got = append(got, b.String())
	}
	waits := "waits since 2026-11-20T09:01:00Z: UpdatePolicy (the mode is Observe)"
	want := []string{"replica 1: memory 3Gi instead of 1Gi " + waits, "replica 2: memory 1280Mi instead of 1Gi " + waits}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
}

// A replica that was OOM-killed gets a limit that is a fifth above, at once, whatever waits.
func TestAnOOMKillRaisesTheLimitAtOnce(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.in.Config.Change.Up.Cooldown = config.Duration(24 * time.Hour)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	w.in.Observed.Known = true
	for r := range 3 {
		w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: r, Name: "p", Ready: true, Claimed: true, Answered: true, MemoryLimit: 2560 << 20})
	}
	w.in.Observed.Pods[1].OOMKilled, w.in.Observed.Pods[1].KilledAt = true, w.in.Now.Add(time.Second)
	w.run(2)
	if got := w.memories(); got[1] != [2]string{"1280Mi", "3Gi"} || got[0] != [2]string{"1280Mi", "2560Mi"} {
		t.Errorf("sizes %v, want replica 1's limit at 3Gi alone; blocked %v", got, w.last.Sizing.Blocked)
	}
	writes := w.writes
	w.run(30)
	if w.writes != writes {
		t.Errorf("it went on: %v, %s", w.memories(), w.last.Reason)
	}
}

// With template one size is for all, and it changes once a day at most.
func TestTheTemplateHasOneSizeOnceADay(t *testing.T) {
	w := sizedWorld(20, 1, 1)
	w.in.Config.Size.Apply = config.Template
	w.in.Config.Change.Restarts.Every = config.Duration(24 * time.Hour)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(10)
	got := w.in.InForce.Resources
	if got == nil || got.Requests["memory"] != "3Gi" || got.Limits["memory"] != "6Gi" || w.in.InForce.Sizes != nil {
		t.Fatalf("the plan has %+v and %+v; blocked %v", got, w.in.InForce.Sizes, w.last.Sizing.Blocked)
	}
	w.setLoad("c000", 40)
	w.run(5)
	if got := w.in.InForce.Resources.Requests["memory"]; got != "3Gi" {
		t.Errorf("a second restart within the day: %s", got)
	}
	if b := w.last.Sizing.Blocked; len(b) != 1 || b[0].Reason != change.RateLimit || b[0].Replica != size.All || b[0].To != "5Gi" {
		t.Errorf("blocked: %+v", b)
	}
	w.in.Now = w.in.Now.Add(24 * time.Hour)
	w.run(2)
	if got := w.in.InForce.Resources; got.Requests["memory"] != "5Gi" || got.Limits["memory"] != "10Gi" {
		t.Errorf("a day later it is %v", got)
	}
}
