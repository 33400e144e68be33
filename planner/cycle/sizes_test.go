package cycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/track"
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
	w.in.Memory.Sizes.Peaks = map[int]track.Peak{} // limits shrink where something was seen in use
	for r := range 16 {
		w.in.Memory.Sizes.Peaks[r] = track.Peak{Bytes: 64 << 20, At: w.in.Now}
	}
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
	want := []resize.Blocked{{Replica: 1, Resource: "memory", Direction: change.Down, Reason: change.StabilizationWindow, From: "2Gi", To: "1280Mi"}}
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

// Who takes the policies away is told what becomes of the pods: those of a template restart once somebody writes another size into it.
func TestWhatComesWithoutPoliciesIsSaid(t *testing.T) {
	for apply, want := range map[config.SizeApply]string{
		config.InPlace: "size.policies are gone, so no size is held any more: running pods stay as large as they are, and each gets the pod template's size when it is made anew",
		config.Template: "size.policies are gone, so the pod template is held at no size any more: it stays as it is until somebody writes another one, " +
			"as a GitOps tool does at once, and every pod restarts for that",
	} {
		w := sizedWorld(20, 1, 1)
		w.in.Config.Size.Apply = apply
		w.run(10)
		w.in.Config.Size.Policies = nil
		w.run(1)
		if got := w.last.Reason; !strings.Contains(got, want) {
			t.Errorf("%s: said is %q, want %q", apply, got, want)
		}
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

// The one rollout for the template's size waits for a wave that is under way, is shown as waiting, and happens once after it.
func TestTheTemplateWaitsForWaves(t *testing.T) {
	w := adopted(t, skewed(24)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 6}
	w.until(t, "clusters are about to move", 12*time.Hour, func(outcome.Outcome) bool {
		return w.in.InForce.Rollout != nil && w.in.InForce.Rollout.Stage == plan.Moving
	})
	sized := sizedWorld()
	w.in.Config.Size, w.in.Workload.Resources = sized.in.Config.Size, sized.in.Workload.Resources
	w.in.Config.Size.Apply = config.Template
	waves, waited := 0, 0
	for end := w.in.Now.Add(12 * time.Hour); w.in.InForce.Rollout != nil && w.in.Now.Before(end); {
		if w.step(30 * time.Second); w.in.InForce.Rollout == nil {
			break
		}
		if waves++; w.in.InForce.Resources != nil {
			t.Fatalf("in stage %s the template is held at %v", w.in.InForce.Rollout.Stage, w.in.InForce.Resources)
		}
		for _, b := range w.last.Sizing.Blocked {
			if b.Reason == change.RolloutInProgress && b.Replica == size.All {
				waited++
			}
		}
	}
	if w.in.InForce.Rollout != nil || waves == 0 || waited != waves {
		t.Fatalf("of %d cycles of the rollout %d say that the template waits: %+v", waves, waited, w.last.Sizing.Blocked)
	}
	var held []plan.Resources
	for range 72 * 12 {
		w.step(5 * time.Minute)
		if r := w.in.InForce.Resources; r != nil && (len(held) == 0 || !held[len(held)-1].Same(*r)) {
			held = append(held, *r)
		}
	}
	if len(held) != 1 {
		t.Errorf("after it the template is held at %v, want one size", held)
	}
}

// killedWorld is a fleet at rest whose replica 1 was OOM-killed at its limit of 2560Mi, so long after now.
func killedWorld(t *testing.T, after time.Duration) *world {
	t.Helper()
	w := sizedWorld(2, 2, 2)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	w.in.Observed.Known = true
	for r := range 3 {
		w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: r, Name: "p", Ready: true, Claimed: true, Answered: true, MemoryLimit: 2560 << 20})
	}
	w.in.Observed.Pods[1].OOMKilled, w.in.Observed.Pods[1].KilledAt = true, w.in.Now.Add(after)
	return w
}

// A kill counts once, whatever its node's clock says; one that is ahead of every clock is none.
func TestAnOOMKillCountsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  string
	}{
		"by a node that is ahead":    {4 * time.Minute, "3Gi"},
		"by a node that is behind":   {-4 * time.Minute, "3Gi"},
		"by a clock of next century": {79 * 365 * 24 * time.Hour, "2560Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			w := killedWorld(t, test.after)
			for range 20 {
				w.run(1)
				for r, size := range w.memories() { // the pods follow
					q := resource.MustParse(size[1])
					w.in.Observed.Pods[r].MemoryLimit = q.Value()
				}
			}
			if got := w.memories()[1][1]; got != test.want {
				t.Errorf("the limit is %s, want %s", got, test.want)
			}
		})
	}
}

// While a request waits to shrink, a killed replica's limit grows all the same.
func TestAnOOMKillIsHeardWhileTheRequestIsToShrink(t *testing.T) {
	w := killedWorld(t, time.Second)
	w.in.Config.Change.Down.Mode = change.Off
	w.setLoad("c001", 0)
	w.run(3)
	if got := w.memories()[1]; got != [2]string{"1280Mi", "3Gi"} {
		t.Errorf("replica 1 has %v, want its request as it was and 3Gi; blocked %v", got, w.last.Sizing.Blocked)
	}
}

// A pod whose request is its limit stays so: what was seen in use raises both, since another class is no size in place.
func TestWhatIsGuaranteedStaysSo(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.in.Workload.Resources = &plan.Resources{Requests: map[string]string{"memory": "1Gi", "cpu": "1"}, Limits: map[string]string{"memory": "1Gi", "cpu": "1"}}
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.in.Observed.Known = true
	for r := range 3 {
		w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: r, Name: "p", Ready: true, Claimed: true, Answered: true, MemoryLimit: 4 << 30, Memory: 3 << 30})
	}
	w.run(5)
	for r, got := range w.memories() {
		if got != [2]string{"3712Mi", "3712Mi"} {
			t.Errorf("replica %d has %v, want 3712Mi of both", r, got)
		}
	}
}

// A rule that asks an empty replica for nothing keeps nobody's size from changing.
func TestARuleThatAsksForNothingFreezesNobody(t *testing.T) {
	w := sizedWorld(20, 20, 0)
	for i := range w.in.Config.Size.Policies {
		for k := range w.in.Config.Size.Policies[i].Rules {
			w.in.Config.Size.Policies[i].Rules[k].Base = "0"
		}
	}
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	w.setLoad("c000", 40)
	w.run(45)
	for _, p := range w.last.Problems {
		if p.Kind == "SizePolicyRefused" {
			t.Errorf("%s", p.Message)
		}
	}
	if got := w.memories()[0][0]; got != "4Gi" {
		t.Errorf("replica 0 requests %s, want 4Gi; blocked %v", got, w.last.Sizing.Blocked)
	}
}

// TestOverCapacityNoChangeOfSizeIsTooSmall: the whole way, from the loads and partition.capacity on.
func TestOverCapacityNoChangeOfSizeIsTooSmall(t *testing.T) {
	for name, test := range map[string]struct {
		capacity config.Decimal
		want     [2]string
		blocked  []change.BlockReason
	}{
		"within it": {"100", [2]string{"2Gi", "4Gi"}, []change.BlockReason{change.TooSmall}},
		"over it":   {"0.01", [2]string{"2560Mi", "5Gi"}, nil},
	} {
		w := sizedWorld(10, 2, 2)
		w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
		w.in.Config.Partition.MaxReplicas = &w.in.Workload.Replicas
		w.run(5)
		w.in.Config.Change.Up.MinChange = &config.SizeSteps{Memory: &config.SizeStep{Percentage: 80}}
		w.in.Config.Partition.Capacity = &test.capacity
		w.setLoad("c000", 14)
		w.run(5)
		var blocked []change.BlockReason
		for _, b := range w.last.Sizing.Blocked {
			blocked = append(blocked, b.Reason)
		}
		if diff := cmp.Diff(test.blocked, blocked); diff != "" || w.memoryOf(0) != test.want {
			t.Errorf("%s: %v, want %v; blocked -want +got:\n%s%v", name, w.memoryOf(0), test.want, diff, problems(w.last))
		}
	}
}
