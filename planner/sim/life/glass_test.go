package life

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// breaks opens the break-glass; nothing may be written until it is closed again.
func (l *Life) breaks(t *testing.T) (closes func()) {
	l.Glass = true
	l.Wrote = func(step diff.Step) { t.Errorf("%s is written under break-glass", step) }
	return func() { l.Glass, l.Wrote = false, nil }
}

// has is what each container has.
func (l *Life) has() (all []plan.Resources) {
	for ordinal := range l.Replicas {
		all = append(all, l.Pods[ordinal].Size.Has)
	}
	return all
}

// TestUnderBreakGlassSizesArePeoples: what a person makes of a pod's size stays, a pod that is made anew has the template's, and a pod
// that is killed for its memory stays as it is, which is told. Once it is over each has the plan's size, and the kill is answered.
func TestUnderBreakGlassSizesArePeoples(t *testing.T) {
	l := alike(config.InPlace, sizeOf("1Gi", "2Gi"))
	l.Pass(2 * time.Hour)
	ours := sizeOf("3584Mi", "7Gi")
	if diff := cmp.Diff([]plan.Resources{ours, ours, ours}, l.has()); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	closes, plans := l.breaks(t), l.Counts["plans"]
	l.Pass(2 * time.Minute)
	l.Resize(1, sizeOf("8Gi", "10Gi"), l.Now)
	l.Crash(0, true, l.Now)
	l.Pods[2].Gone = l.Now
	l.Pass(time.Hour)
	if diff := cmp.Diff([]plan.Resources{ours, sizeOf("8Gi", "10Gi"), sizeOf("1Gi", "2Gi")}, l.has()); diff != "" {
		t.Errorf("under break-glass (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0 memory UpdatePolicy: 8704Mi instead of 7Gi"}, l.waiting()); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	for replica := range l.Replicas {
		if held, _ := l.Plan.SizeOf(replica); !held.Same(ours) || l.Counts["plans"] != plans {
			t.Errorf("the plan holds replica %d at %v, after %d plans more", replica, held, l.Counts["plans"]-plans)
		}
	}
	closes()
	for range 2 { // and stays so
		l.Pass(30 * time.Minute)
		if diff := cmp.Diff([]plan.Resources{sizeOf("3584Mi", "8640Mi"), ours, ours}, l.has()); diff != "" {
			t.Errorf("once it is over (-want +got):\n%s", diff)
		}
	}
	if err := l.Quiet(); err != nil || len(l.waiting()) > 0 {
		t.Errorf("%v; %v waits", err, l.waiting())
	}
}

// TestUnderBreakGlassTheTemplateIsPeoples: what a person makes of the template's size stays, and is put back once it is over.
func TestUnderBreakGlassTheTemplateIsPeoples(t *testing.T) {
	l := alike(config.Template, sizeOf("3584Mi", "7Gi"))
	l.Pass(25 * time.Hour)
	if held := l.Plan.Resources; held == nil || !held.Same(sizeOf("3584Mi", "7Gi")) {
		t.Fatalf("the plan holds the template at %v", held)
	}
	closes := l.breaks(t)
	l.Pass(2 * time.Minute)
	l.Patch(diff.PatchWorkload{Resources: plan.Resources{Requests: map[string]string{size.Memory: "6Gi"}}})
	l.each(20)
	l.Pass(time.Hour)
	theirs, ours := sizeOf("6Gi", "7Gi"), sizeOf("6400Mi", "12800Mi")
	if diff := cmp.Diff([]plan.Resources{theirs, theirs, theirs}, l.has()); diff != "" {
		t.Errorf("under break-glass (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"-1 memory UpdatePolicy: 6400Mi instead of 3584Mi"}, l.waiting()); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	closes()
	l.Pass(30 * time.Minute)
	if diff := cmp.Diff([]plan.Resources{ours, ours, ours}, l.has()); diff != "" {
		t.Errorf("once it is over (-want +got):\n%s", diff)
	}
	if err := l.Quiet(); err != nil || len(l.waiting()) > 0 {
		t.Errorf("%v; %v waits", err, l.waiting())
	}
}
