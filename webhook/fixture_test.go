package webhook

import (
	"encoding/base64"
	"testing"

	"ballast/planner/plan"
)

const (
	plannerUser = "system:serviceaccount:argocd:ballast-planner"
	shippedUser = "system:serviceaccount:argocd:shipped"
	person      = "ada"
	workload    = "argocd-application-controller"
)

// newState is the state of a plan in force with its pins.
func newState(id Identity, view *plan.View) *State {
	s := &State{Identity: id, View: view}
	s.index()
	return s
}

func identity() Identity {
	return Identity{Namespace: "argocd", ConfigMap: "ballast-plan", Planner: shippedUser}
}

// fleet is the plan of these tests: revision 17 over 4 replicas.
func fleet() plan.Plan {
	return plan.Plan{
		Revision: 17, Mode: plan.Enforce, PlannerUser: plannerUser,
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, Container: "application-controller"},
		Replicas: 4, ControllerReplicas: 16, MaxReplicas: 16,
		Clusters: map[string]plan.Row{
			"prod-eu": {Replica: 3, Load: "1.82"},
			"prod-us": {Replica: 0, Load: "0.41", Server: plan.ServerHash("https://us.example")},
		},
	}
}

// withPlan is a state that enforces the changed plan with these pins.
func withPlan(pins plan.Pins, change func(*plan.Plan)) *State {
	p := fleet()
	if change != nil {
		change(&p)
	}
	return newState(identity(), plan.NewView(p, pins))
}

func encode(t testing.TB, p plan.Plan) string {
	t.Helper()
	text, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// written are the data and annotations that the planner writes for a plan.
func written(t testing.TB, p plan.Plan, pins string) (data, annotations map[string]string) {
	t.Helper()
	text := encode(t, p)
	data = map[string]string{plan.KeyPlan: text}
	if pins != "" {
		data[plan.KeyPins] = pins
	}
	return data, map[string]string{
		plan.AnnotationRevision:  revision(p.Revision),
		plan.AnnotationDecidedAt: "2026-03-01T10:00:00Z",
		plan.AnnotationDecidedBy: "ballast-planner-0",
		plan.AnnotationReason:    "2 clusters move because replica 0 carries 1.4 times the mean",
		plan.AnnotationDigest:    plan.Digest(text),
	}
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func shardIs(value string) []Field { return []Field{{"shard", value}} }
