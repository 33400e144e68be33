package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/rawjson"
)

// TestWhatThePlannersSelectorLeavesOutPasses as it is written: what the planner does not take for a cluster, the webhook must
// not give a replica.
func TestWhatThePlannersSelectorLeavesOutPasses(t *testing.T) {
	const argos = `"argocd.argoproj.io/secret-type":"cluster"`
	for labels, want := range map[string]map[string]plan.Reason{ // by selector
		argos:                                {"": plan.Restored, "team in (a,b)": plan.Unmanaged, "!hands-off": plan.Restored, "team notin (a)": plan.Restored, "team": plan.Unmanaged},
		argos + `,"team":"a"`:                {"": plan.Restored, "team in (a,b)": plan.Restored, "!hands-off": plan.Restored, "team notin (a)": plan.Unmanaged, "team": plan.Restored},
		argos + `,"team":"c","hands-off":""`: {"": plan.Restored, "team in (a,b)": plan.Unmanaged, "!hands-off": plan.Unmanaged, "team notin (a)": plan.Restored, "team": plan.Restored},
		`"team":"a"`:                         {"": plan.Unmanaged, "team in (a,b)": plan.Unmanaged}, // no cluster of Argo CD's
	} {
		for selector, reason := range want {
			state := withPlan(nil, func(p *plan.Plan) {
				if selector != "" {
					p.Selector = "argocd.argoproj.io/secret-type=cluster," + selector
				}
			})
			object := fmt.Sprintf(`{"metadata":{"name":"prod-eu","namespace":"argocd","labels":{%s}},"data":{"server":"aHR0cHM6Ly9h","shard":"MQ=="}}`, labels)
			v, err := reviewCluster(state, &review{Request: decision.Request{Namespace: "argocd", Name: "prod-eu", User: person}, object: mustParse(t, object), old: mustParse(t, object)})
			if err != nil {
				t.Fatal(err)
			}
			if held := len(v.Patches) > 0; v.Reason != reason || held != (reason == plan.Restored) {
				t.Errorf("{%s} under %q: %s, patched: %t, want %s", labels, selector, v.Reason, held, reason)
			}
		}
	}
}

// TestASelectorThatCannotBeReadSelectsAll: Argo CD's label still does.
func TestASelectorThatCannotBeReadSelectsAll(t *testing.T) {
	state := withPlan(nil, func(p *plan.Plan) { p.Selector = "a in (" })
	if leavesOut(state, mustParse(t, `{"metadata":{}}`)) {
		t.Error("a Secret is left out")
	}
}

// TestWhoTakesASecretOutOfTheSelectorsSightIsInTheAuditLog, and hears what that means: it is an opt-out by another name.
func TestWhoTakesASecretOutOfTheSelectorsSightIsInTheAuditLog(t *testing.T) {
	state := withPlan(nil, func(p *plan.Plan) { p.Selector = "argocd.argoproj.io/secret-type=cluster,team=a" })
	secret := func(team string) rawjson.Node {
		return mustParse(t, fmt.Sprintf(`{"metadata":{"name":"prod-eu","namespace":"argocd","labels":{"argocd.argoproj.io/secret-type":"cluster","team":%q}},"data":{"server":"aHR0cHM6Ly9h","shard":"Mw=="}}`, team))
	}
	for name, test := range map[string]struct {
		old, object rawjson.Node
		create      bool
		acts        []decision.Field
		warns       bool
	}{
		"out":           {secret("a"), secret("b"), false, []decision.Field{{Name: "selected", Value: ""}}, true},
		"back":          {secret("b"), secret("a"), false, []decision.Field{{Name: "selected", Value: "true"}}, false},
		"it stays":      {secret("a"), secret("a"), false, nil, false},
		"it stays out":  {secret("b"), secret("c"), false, nil, false},
		"it is made so": {nil, secret("b"), true, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := reviewCluster(state, &review{Request: decision.Request{Namespace: "argocd", Name: "prod-eu", User: person, Create: test.create}, object: test.object, old: test.old})
			if err != nil {
				t.Fatal(err)
			}
			var got []decision.Field
			for _, f := range v.Enforced {
				if f.IsAct() {
					got = append(got, f)
				}
			}
			if diff := cmp.Diff(test.acts, got); diff != "" {
				t.Errorf("acts (-want +got):\n%s", diff)
			}
			said := slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.HasPrefix(w, "ballast: discover.selector leaves this Secret out") })
			if said != test.warns {
				t.Errorf("people hear %q", v.Warnings)
			}
		})
	}
}
