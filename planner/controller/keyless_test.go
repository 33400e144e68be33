package controller

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/sim"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// TestAStoppedFleetComesBackOnceThoughItsPlanCannotBeWritten: the ConfigMap stands, its writes are refused and the stop has lapsed. Each
// cycle reads the stopped plan and fails to write another; people hear of it once, and repairs go by a plan with replicas all along.
func TestAStoppedFleetComesBackOnceThoughItsPlanCannotBeWritten(t *testing.T) {
	var told []string
	emit := func(_ discover.Workload, events ...telemetry.Event) {
		for _, e := range events {
			told = append(told, e.Reason)
		}
	}
	c, clock := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), clocktesting.NewFakeClock(sim.Epoch)
	l := NewLoop(wiring.Options{Log: logr.Discard(), Emit: emit, Config: config.Default, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Clock: clock,
		Store: store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"})})
	target := plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "ac", Container: "ac"}
	stopped := plan.Plan{Mode: plan.Enforce, Target: target, MaxReplicas: 8, Clusters: map[string]plan.Row{"c000": {Replica: 0}},
		Rollout: &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: sim.Epoch,
			From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 4}}
	stands, err := l.Store.WritePlan(t.Context(), store.Snapshot{}, stopped, 0, configmap.Meta{DecidedAt: sim.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "ballast-plan", nil)
	cycle := func() {
		in := input.Inputs{Now: clock.Now().UTC(), Config: config.Default(),
			Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "ac"}}
		snapshot, err := l.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.takeIn(&in, snapshot)
		l.keyless.goesBackUnwritten(in, snapshot, refused)
		clock.Step(time.Minute)
	}
	cycle()
	if p := l.plan.Newest().Plan; p == nil || p.Replicas != 0 || len(told) > 0 {
		t.Fatalf("while the stop holds the plan is %+v, and people hear %q", p, told)
	}
	clock.Step(plan.StopHeld)
	for range 5 {
		cycle()
		if p := l.plan.Newest().Plan; p.Replicas != 3 || p.Revision != stands.Document.Plan.Revision+1 {
			t.Errorf("revision %d has %d replicas, want those of before the stop", p.Revision, p.Replicas)
		}
	}
	if diff := cmp.Diff([]string{"BroughtBackUnwritten"}, told); diff != "" {
		t.Errorf("(-want +told):\n%s", diff)
	}
}
