package life

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// sizeOf is a request and a limit of memory.
func sizeOf(request, limit string) plan.Resources {
	return plan.Resources{Requests: map[string]string{"memory": request}, Limits: map[string]string{"memory": limit}}
}

// alike is a fleet of three replicas and 18 clusters of ten Applications, of which each replica is to request 512Mi, and 16Mi for each
// Application of the fleet in steps of 256Mi; the template has a limit of twice its request. Nothing is levelled.
func alike(apply config.SizeApply, template plan.Resources) *Life {
	c := configuration()
	c.Size = config.Size{Apply: apply, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "512Mi"},
		{Name: "apps", List: config.Requests, Resource: "memory", Slope: "16Mi", Input: "apps", Scope: config.ScopeTotal,
			Quantize: &config.Quantize{Step: "256Mi"}},
	}}}}
	c.Change.Moves.Mode, c.Change.Moves.Rate = change.Off, nil
	c.Rollout.Live.MaxMovesPerWave = 1
	loads := map[string]float64{}
	for i := range 18 {
		loads[fmt.Sprintf("c%02d", i)] = 10
	}
	l := New(1, c, 3, "3", loads)
	l.Sized(sim.Sizing{
		Template: template,
		Held: func(replica int) (plan.Resources, bool) {
			if l.Plan == nil || l.Glass || !l.Plan.Mode.Enforced() {
				return plan.Resources{}, false
			}
			return l.Plan.SizeOf(replica)
		},
		Uses: func(int, []string) int64 { return idle },
		Full: map[int]bool{}, Small: map[int]int64{},
	})
	return l
}

// each has every cluster have that many Applications.
func (l *Life) each(apps float64) {
	for name := range l.Loads {
		l.Loads[name] = apps
	}
}

// waiting is what of sizes waits, and why.
func (l *Life) waiting() (all []string) {
	if l.Last.Sizing == nil {
		return nil
	}
	for _, b := range l.Last.Sizing.Blocked {
		all = append(all, fmt.Sprintf("%d %s %s: %s instead of %s", b.Replica, b.Resource, b.Reason, b.To, b.From))
	}
	return all
}

// templateWrite is a write of the pod template's size, when it was, and what the plan said of it before.
type templateWrite struct {
	at   time.Time
	size plan.Resources
	said string
}

// TestByTheTemplateOneRolloutIsAnnouncedWaitsForWavesAndHappensOnce: the size that the load asks for is told while a drain moves its
// waves, it is written once they are over, after the plan that says so, and the next one is written a day later.
func TestByTheTemplateOneRolloutIsAnnouncedWaitsForWavesAndHappensOnce(t *testing.T) {
	l := alike(config.Template, sizeOf("3584Mi", "7Gi"))
	var writes []templateWrite
	l.Wrote = func(step diff.Step) {
		s, workload := step.(diff.PatchWorkload)
		if !workload || len(s.Resources.Requests)+len(s.Resources.Limits) == 0 {
			return
		}
		if l.Plan.Rollout != nil {
			t.Errorf("%s is written while clusters move: %+v", s, *l.Plan.Rollout)
		}
		writes = append(writes, templateWrite{l.Now, s.Resources, l.Last.Reason})
	}
	l.Pass(25 * time.Hour) // the fleet restarted for its env, and may restart again
	if err := l.Quiet(); err != nil || len(writes) > 0 || l.Made != 6 {
		t.Fatalf("%v; %d writes of the template, %d pods so far, want none and 6", err, len(writes), l.Made)
	}

	l.Cordon = "1=" + l.Now.Add(6*time.Hour).UTC().Format(time.RFC3339)
	for end := l.Now.Add(time.Hour); l.Plan.Rollout == nil || l.Plan.Rollout.Stage != plan.Moving; l.Pass(act) {
		if l.Now.After(end) {
			t.Fatalf("nothing is drained for an hour: %v", l.Last.Problems)
		}
	}
	l.each(20)
	l.Pass(time.Minute) // a cycle has seen it
	waves, told := map[int]bool{}, map[string]bool{}
	for ; l.Plan.Rollout != nil; l.Pass(act) {
		waves[l.Plan.Rollout.Wave], told[strings.Join(l.waiting(), "; ")] = true, true
	}
	if diff := cmp.Diff(map[string]bool{"-1 memory RolloutInProgress: 6400Mi instead of 3584Mi": true}, told); diff != "" {
		t.Errorf("told while clusters move (-want +got):\n%s", diff)
	}
	if len(waves) < 3 || l.Sizing.Template.Requests["memory"] != "3584Mi" {
		t.Errorf("%d waves were seen, and the template has %v", len(waves), l.Sizing.Template)
	}

	l.Pass(10 * time.Minute)
	if len(writes) != 1 {
		t.Fatalf("the template was written %d times, want once; %v waits", len(writes), l.waiting())
	}
	first := writes[0]
	const says = "the pod template gets another size, for which every replica restarts: every replica's memory 6400Mi instead of 3584Mi"
	if diff := cmp.Diff(sizeOf("6400Mi", "12800Mi"), first.size); diff != "" || !strings.Contains(first.said, says) {
		t.Errorf("said before: %q, want %q; written (-want +got):\n%s", first.said, says, diff)
	}
	if err := l.Quiet(); err != nil || l.Made != 9 {
		t.Errorf("%v; %d pods so far, want 9: each restarted once more", err, l.Made)
	}

	l.each(30)
	l.Pass(first.at.Add(24*time.Hour - time.Minute).Sub(l.Now))
	if diff := cmp.Diff([]string{"-1 memory RateLimit: 9Gi instead of 6400Mi"}, l.waiting()); diff != "" {
		t.Errorf("within the day (-want +got):\n%s", diff)
	}
	if b := l.Last.Sizing.Blocked; len(b) != 1 || !b[0].Until.Equal(first.at.Add(24*time.Hour)) {
		t.Errorf("it waits until %v, want a day after %s", b, first.at)
	}
	if len(writes) != 1 || l.Made != 9 {
		t.Errorf("within the day the template was written %d times, %d pods so far", len(writes), l.Made)
	}
	l.Pass(15 * time.Minute)
	if len(writes) != 2 || !writes[1].size.Same(sizeOf("9Gi", "18Gi")) {
		t.Errorf("a day later: %+v; %v waits", writes, l.waiting())
	}
	if err := l.Quiet(); err != nil || l.Made != 12 {
		t.Errorf("%v; %d pods so far, want 12", err, l.Made)
	}
}
