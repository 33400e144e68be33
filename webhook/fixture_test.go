package webhook

import (
	"encoding/base64"
	"maps"
	"testing"

	"ballast/planner/plan"
	"ballast/webhook/fixture"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
	"ballast/webhook/rawjson"
)

const (
	plannerUser = fixture.PlannerUser
	shippedUser = fixture.ShippedUser
	person      = "ada"
	workload    = fixture.Workload
)

func identity() inforce.Identity {
	return inforce.Identity{Namespace: "argocd", ConfigMap: "ballast-plan", Planner: shippedUser}
}

// fleet is the plan of these tests: revision 17 over 4 replicas.
func fleet() plan.Plan { return fixture.Fleet() }

// withPlan is a state that enforces the changed plan with these pins.
func withPlan(pins plan.Pins, change func(*plan.Plan)) *inforce.State {
	p := fleet()
	if change != nil {
		change(&p)
	}
	return inforce.Of(identity(), plan.NewView(p, pins))
}

// written are the data and annotations that the planner writes for a plan.
func written(t testing.TB, p plan.Plan, pins string) (data, annotations map[string]string) {
	t.Helper()
	return fixture.Written(t, p, pins)
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// object is a plan ConfigMap as the planner wrote it.
func object(t testing.TB, p plan.Plan, pins string) objects.Plan {
	t.Helper()
	data, annotations := written(t, p, pins)
	return objects.Plan{HasData: true, HasPlan: true, Plan: data[plan.KeyPlan], HasPins: pins != "", Pins: pins, HasAnnotations: true, Annotations: annotations}
}

func edited(o objects.Plan, change func(*objects.Plan)) objects.Plan {
	o.Annotations = maps.Clone(o.Annotations)
	change(&o)
	return o
}

// knowing is the state of a webhook that has seen this object.
func knowing(t testing.TB, o objects.Plan) *inforce.State {
	t.Helper()
	s := inforce.Of(identity(), nil).Next(map[string]string{plan.KeyPlan: o.Plan, plan.KeyPins: o.Pins}, o.Annotations)
	if s.View == nil || s.Stale {
		t.Fatal("the fixture's plan is not enforced")
	}
	return s
}

func mustParse(t testing.TB, doc string) rawjson.Node {
	t.Helper()
	n, err := rawjson.Parse([]byte(doc))
	if err != nil {
		t.Fatalf("parsing %s: %v", doc, err)
	}
	return n
}
