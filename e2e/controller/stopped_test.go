package controller_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// TestALeaderThatIsStoppedKeepsThePlanItWrites: it is told to stop as its plan is on the way, and somebody deletes that plan before
// another leads. The next one is of a higher revision all the same.
func TestALeaderThatIsStoppedKeepsThePlanItWrites(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Hold, 3, 2, 1)
	_, end := b.start()
	end()
	before := b.plan()
	b.addCluster("new", 5)
	ctx, stop := context.WithCancel(t.Context())
	b.meddle = map[string]func(int){"patch ballast-plan": func(int) { stop() }}
	if result, err := b.newLoop().Once(ctx); result != "changed" || err != nil {
		t.Fatalf("a cycle that writes a plan as it is stopped answers %q, %v", result, err)
	}
	written := b.plan()
	if written.Revision != before.Revision+1 {
		t.Fatalf("plan %d stands after %d", written.Revision, before.Revision)
	}
	b.must(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: b.planMap().ObjectMeta}))
	if result, err := b.newLoop().Once(t.Context()); result != "changed" || err != nil {
		t.Fatalf("the next leader's cycle answers %q, %v", result, err)
	}
	if again := b.plan(); again.Revision != written.Revision+1 || len(again.Clusters) != len(written.Clusters) {
		t.Errorf("plan %d of %d clusters was written anew as %d of %d", written.Revision, len(written.Clusters), again.Revision, len(again.Clusters))
	}
}

// TestALeaderThatIsStoppedBeginsNoPlan: what was decided as it stops is the next leader's to decide.
func TestALeaderThatIsStoppedBeginsNoPlan(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Hold, 3, 2, 1)
	_, end := b.start()
	end()
	before := b.plan().Revision
	b.addCluster("new", 5)
	ctx, stop := context.WithCancel(t.Context())
	b.prometheus.once(stop)
	if result, err := b.newLoop().Once(ctx); result != "failed" || err == nil {
		t.Errorf("a cycle that is stopped before it writes answers %q, %v", result, err)
	}
	if after := b.plan().Revision; after != before {
		t.Errorf("plan %d stands after %d", after, before)
	}
}
