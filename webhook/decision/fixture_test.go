package decision

import (
	"encoding/base64"
	"testing"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/webhook/fixture"
	"ballast/webhook/inforce"
)

const (
	plannerUser = fixture.PlannerUser
	shippedUser = fixture.ShippedUser
	person      = "ada"
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

func shardIs(value string) []Field { return []Field{{"shard", value}} }

func encode(t testing.TB, p plan.Plan) string {
	t.Helper()
	text, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
