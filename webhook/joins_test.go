package webhook

import (
	"strings"
	"testing"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/rawjson"
)

// TestTheEnvJoinsWhateverChangesThePodTemplate, and no other write: pods would restart for what nobody asked for.
func TestTheEnvJoinsWhateverChangesThePodTemplate(t *testing.T) {
	const env = `{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"4"}`
	waits := func(p *plan.Plan) { p.ControllerReplicas, p.NextControllerReplicas = 4, 16 }
	container := func(image, env string, more ...string) string {
		return `{"name":"application-controller","image":"` + image + `","env":[` + env + `]` + strings.Join(more, "") + `}`
	}
	stands := workloadWith("4", container("a", env))
	at := func(value string) string { return strings.ReplaceAll(env, `"4"`, `"`+value+`"`) }
	for name, tc := range map[string]struct {
		old, object string
		plan        func(*plan.Plan)
		want        string // of the env that is stored
	}{
		"nothing":               {old: stands, object: stands, want: "4"},
		"an annotation":         {old: stands, object: strings.Replace(stands, `"name":"argocd`, `"annotations":{"a":"b"},"name":"argocd`, 1), want: "4"},
		"replicas":              {old: stands, object: strings.Replace(stands, `"replicas":4`, `"replicas":9`, 1), want: "4"},
		"the env alone":         {old: stands, object: workloadWith("4", container("a", at("9"))), want: "4"},
		"the env taken away":    {old: stands, object: workloadWith("4", container("a", "")), want: "4"},
		"an image":              {old: stands, object: workloadWith("4", container("b", env)), want: "16"},
		"another variable":      {old: stands, object: workloadWith("4", container("a", `{"name":"X","value":"1"},`+env)), want: "16"},
		"a restart":             {old: stands, object: strings.Replace(stands, `"template":{`, `"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"}},`, 1), want: "16"},
		"a container beside it": {old: stands, object: workloadWith("4", container("a", env)+`,{"name":"x"}`), want: "16"},
		"resources":             {old: stands, object: workloadWith("4", container("a", env, `,"resources":{"limits":{"cpu":"1"}}`)), want: "16"},
		"resources that the plan holds": {old: stands, object: workloadWith("4", container("a", env, `,"resources":{"limits":{"cpu":"1"}}`)),
			plan: func(p *plan.Plan) { p.Resources = &plan.Resources{Limits: map[string]string{"cpu": "2"}} }, want: "4"},
		"a workload made anew":             {object: stands, want: "16"},
		"what came before stays":           {old: workloadWith("4", container("a", at("16"))), object: workloadWith("4", container("a", at("16"))), want: "16"},
		"and is not taken back":            {old: workloadWith("4", container("a", at("16"))), object: stands, want: "16"},
		"and outlives what it came with":   {old: workloadWith("4", container("b", at("16"))), object: stands, want: "16"}, // kubectl rollout undo
		"an image, where nothing waits":    {old: stands, object: workloadWith("4", container("b", env)), plan: func(p *plan.Plan) { p.NextControllerReplicas = 0 }, want: "4"},
		"an image, in a mode that watches": {old: stands, object: workloadWith("4", container("b", env)), plan: func(p *plan.Plan) { p.Mode = plan.Observe }, want: "4"},
		"an old one that cannot be read":   {old: `{"spec":1}`, object: workloadWith("4", container("b", env)), want: "4"},
	} {
		t.Run(name, func(t *testing.T) {
			state := withPlan(nil, func(p *plan.Plan) {
				waits(p)
				if tc.plan != nil {
					tc.plan(p)
				}
			})
			rv := &review{Request: decision.Request{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, User: person, At: decided}, object: mustParse(t, tc.object)}
			if tc.old != "" {
				rv.old = mustParse(t, tc.old)
			}
			v, err := reviewController(state, rv)
			if err != nil {
				t.Fatal(err)
			}
			stored := apply(t, tc.object, v.Patches)
			if got := storedEnv(mustParse(t, stored)); got != tc.want {
				t.Errorf("the env is %q, want %q, in %s", got, tc.want, stored)
			}
		})
	}
}

// storedEnv is the env of the first container.
func storedEnv(object rawjson.Node) (value string) {
	for _, container := range object.Field("spec").Field("template").Field("spec").Field("containers").Members {
		for _, entry := range container.Field("env").Members {
			if entry.Field("name").Is(plan.EnvReplicas) {
				value = entry.Field("value").Text(10)
			}
		}
		break
	}
	return value
}
