package webhook

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/decision"
	"ballast/webhook/fixture"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
	"ballast/webhook/rawjson"
)

// reporter is what a helper needs of a test or a property.
type reporter interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// apply does to a document what the API server does with a patch, by the same library.
func apply(t reporter, object string, patches []decision.Op) string {
	t.Helper()
	raw, err := json.Marshal(patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatalf("decoding patch %s: %v", raw, err)
	}
	out, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("applying patch %s to %s: %v", raw, object, err)
	}
	return string(out)
}

func workloadWith(replicas, containers string) string {
	return `{"metadata":{"name":"argocd-application-controller"},"spec":{"replicas":` + replicas + `,"template":{"spec":{"containers":[` + containers + `]}}}}`
}

// decided is when the decisions of these tests are made, and lapsed is since when a stop has lasted too long then.
var (
	decided = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lapsed  = decided.Add(-plan.StopHeld - time.Second)
)

const lapsedSaid = "ballast: 4 replicas pass: plan 17 has stopped all since 2026-03-01T11:44:59Z, too long; there were 5"

// stopping is a state whose plan stops every replica, of five, since then.
func stopping(since time.Time) *inforce.State {
	s := withPlan(nil, func(p *plan.Plan) { stop(p, since) })
	s.Stopped = since
	return s
}

func stop(p *plan.Plan, since time.Time) { fixture.StopAll(p, since) }

func TestDecideControllerHoldsReplicasEnvAndResources(t *testing.T) {
	const agrees = `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`
	both := func(replicas, env string) []decision.Field {
		return []decision.Field{{Name: "replicas", Value: replicas}, {Name: "ARGOCD_CONTROLLER_REPLICAS", Value: env}}
	}
	sized := withPlan(nil, func(p *plan.Plan) {
		p.Resources = &plan.Resources{Requests: map[string]string{"cpu": "500m", "memory": "2Gi"}, Limits: map[string]string{"memory": "4096Mi"}}
	})
	sizedFields := func(replicas, env, memoryLimit, cpu, memory string) []decision.Field {
		return append(both(replicas, env), decision.Field{Name: "limits.memory", Value: memoryLimit}, decision.Field{Name: "requests.cpu", Value: cpu}, decision.Field{Name: "requests.memory", Value: memory})
	}
	requested := withPlan(nil, func(p *plan.Plan) {
		p.Resources = &plan.Resources{Requests: map[string]string{"cpu": "500m", "memory": "4Gi"}}
	})
	withResources := func(resources string) string {
		return workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":`+resources+`}`)
	}
	asked := func(fields ...decision.Field) []decision.Field { return append(both("4", "16"), fields...) }
	deployment := withPlan(nil, func(p *plan.Plan) { p.Target.Kind = plan.Deployment })
	for name, tc := range map[string]struct {
		state     *inforce.State
		kind      string
		object    string
		stored    string // what the object is after the patch
		reason    plan.Reason
		requested []decision.Field
		enforced  []decision.Field
		warnings  []string
	}{
		"a workload as planned passes": {state: withPlan(nil, nil), object: workloadWith("4", agrees), stored: workloadWith("4", agrees),
			reason: plan.InPlan, requested: both("4", "16"), enforced: both("4", "16")},
		"both numbers are put back, the order of env stays": {state: withPlan(nil, nil),
			object: workloadWith("9", `{"name":"application-controller","env":[{"name":"A","value":"1"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"9"},{"name":"B","value":"2"}]}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"A","value":"1"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"},{"name":"B","value":"2"}]}`),
			reason: plan.Restored, requested: both("9", "9"), enforced: both("4", "16"),
			warnings: []string{"ballast: 9 replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config",
				"ballast: ARGOCD_CONTROLLER_REPLICAS 9 was asked, 16 stays (plan 17)"}},
		"replicas that are not given are added": {state: withPlan(nil, nil),
			object: `{"spec":{"template":{"spec":{"containers":[` + agrees + `]}}}}`, stored: `{"spec":{"replicas":4,"template":{"spec":{"containers":[` + agrees + `]}}}}`,
			reason: plan.Restored, requested: both("", "16"), enforced: both("4", "16"),
			warnings: []string{"ballast: no replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config"}},
		"an absent entry is appended": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"A","value":"1"}]}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"A","value":"1"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`),
			reason: plan.Restored, requested: both("4", ""), enforced: both("4", "16")},
		"an absent env is made": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller"}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`),
			reason: plan.Restored, requested: both("4", ""), enforced: both("4", "16")},
		"an entry without a value gets one": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS"}]}`),
			stored: workloadWith("4", agrees),
			reason: plan.Restored, requested: both("4", ""), enforced: both("4", "16")},
		"a reference is replaced whole": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}]}`),
			stored: workloadWith("4", agrees),
			reason: plan.Restored, requested: both("4", "reference"), enforced: both("4", "16"),
			warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS reference was asked, 16 stays (plan 17)"}},
		"every duplicate is set": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"2"}]}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`),
			reason: plan.Restored, requested: both("4", "2"), enforced: both("4", "16"),
			warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS 2 was asked, 16 stays (plan 17)"}},
		"a token in the env is not printed": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"eyJhbGciOi"}]}`),
			stored: workloadWith("4", agrees),
			reason: plan.Restored, requested: both("4", printable.Invalid), enforced: both("4", "16"),
			warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS invalid was asked, 16 stays (plan 17)"}},
		"an entry that is longer than any number is not an absent one": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"`+strings.Repeat("9", 2<<10)+`"}]}`),
			stored: workloadWith("4", agrees),
			reason: plan.Restored, requested: both("4", printable.Invalid), enforced: both("4", "16"),
			warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS invalid was asked, 16 stays (plan 17)"}},
		"the container of another name is found by its env": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"sidecar","args":["--watch","argocd-application-controller"]},{"name":"renamed","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"1"}]}`),
			stored: workloadWith("4", `{"name":"sidecar","args":["--watch","argocd-application-controller"]},{"name":"renamed","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`),
			reason: plan.Restored, requested: both("4", "1"), enforced: both("4", "16"),
			warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS 1 was asked, 16 stays (plan 17)"}},
		"the container of another name is found by its command": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"proxy","args":["--to=argocd-application-controller"]},{"name":"renamed","command":["/usr/local/bin/argocd-application-controller"]}`),
			stored: workloadWith("4", `{"name":"proxy","args":["--to=argocd-application-controller"]},{"name":"renamed","command":["/usr/local/bin/argocd-application-controller"],"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`),
			reason: plan.Restored, requested: both("4", ""), enforced: both("4", "16")},
		"the container of another name is found by its shell line": {state: withPlan(nil, nil),
			object: workloadWith("4", `{"name":"proxy"},{"name":"renamed","command":["sh","-c","exec argocd-application-controller -v"]}`),
			stored: workloadWith("4", `{"name":"proxy"},{"name":"renamed","command":["sh","-c","exec argocd-application-controller -v"],"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`),
			reason: plan.Restored, requested: both("4", ""), enforced: both("4", "16")},
		"without the container the replicas are held, and it is told": {state: withPlan(nil, nil),
			object: workloadWith("9", `{"name":"other"},{"name":"more"}`), stored: workloadWith("4", `{"name":"other"},{"name":"more"}`),
			reason: plan.Restored, requested: []decision.Field{{Name: "replicas", Value: "9"}}, enforced: []decision.Field{{Name: "replicas", Value: "4"}},
			warnings: []string{"ballast: 9 replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config",
				"ballast: no container runs argocd-application-controller, so ARGOCD_CONTROLLER_REPLICAS is not held"}},
		"an env of 0 is never held: every pod would own every cluster": {state: withPlan(nil, func(p *plan.Plan) { p.ControllerReplicas = 0 }),
			object: workloadWith("4", agrees), stored: workloadWith("4", agrees),
			reason: plan.InPlan, requested: both("4", "16"), enforced: []decision.Field{{Name: "replicas", Value: "4"}}},
		"free replicas are left, the env is held": {state: withPlan(nil, func(p *plan.Plan) { p.FreeReplicas = true }),
			object: workloadWith("9", agrees), stored: workloadWith("9", agrees),
			reason: plan.InPlan, requested: both("9", "16"), enforced: []decision.Field{{Name: "ARGOCD_CONTROLLER_REPLICAS", Value: "16"}}},
		"a Deployment without the env gets none": {state: deployment, kind: plan.Deployment,
			object: workloadWith("4", `{"name":"application-controller"}`), stored: workloadWith("4", `{"name":"application-controller"}`),
			reason: plan.InPlan, requested: both("4", ""), enforced: []decision.Field{{Name: "replicas", Value: "4"}}},
		"a Deployment with the env is held at it": {state: deployment, kind: plan.Deployment,
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"2"}]}`), stored: workloadWith("4", agrees),
			reason: plan.Restored, requested: both("4", "2"), enforced: both("4", "16"),
			warnings: []string{"ballast: ARGOCD_CONTROLLER_REPLICAS 2 was asked, 16 stays (plan 17)"}},
		"a stop holds 0 for a while": {state: stopping(decided.Add(-plan.StopHeld)), object: workloadWith("4", agrees), stored: workloadWith("0", agrees),
			reason: plan.Restored, requested: both("4", "16"), enforced: both("0", "16"),
			warnings: []string{"ballast: 4 replicas were asked, 0 stay (plan 17); to fix a number, set partition.replicas in ballast-config"}},
		"one that no planner ends lets replicas pass, and holds the env": {state: stopping(lapsed),
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"1"}]}`), stored: workloadWith("4", agrees),
			reason: plan.StalePlan, requested: both("4", "1"), enforced: []decision.Field{{Name: "ARGOCD_CONTROLLER_REPLICAS", Value: "16"}},
			warnings: []string{lapsedSaid, "ballast: ARGOCD_CONTROLLER_REPLICAS 1 was asked, 16 stays (plan 17)"}},
		"and 0 pass, too": {state: stopping(lapsed), object: workloadWith("0", agrees), stored: workloadWith("0", agrees),
			reason: plan.StalePlan, requested: both("0", "16"), enforced: []decision.Field{{Name: "ARGOCD_CONTROLLER_REPLICAS", Value: "16"}}},
		"another kind under the name is not ours": {state: withPlan(nil, nil), kind: plan.Deployment,
			object: workloadWith("9", agrees), stored: workloadWith("9", agrees), reason: plan.Unmanaged, requested: both("9", "16")},
		"a workload that opted out is left": {state: withPlan(nil, nil),
			object: `{"metadata":{"annotations":{"ballast.argoproj.io/unmanaged":"true"}},"spec":{"replicas":9}}`,
			stored: `{"metadata":{"annotations":{"ballast.argoproj.io/unmanaged":"true"}},"spec":{"replicas":9}}`,
			reason: plan.Unmanaged, requested: []decision.Field{{Name: "replicas", Value: "9"}, {Name: "unmanaged", Value: "true"}}, enforced: []decision.Field{{Name: "unmanaged", Value: "true"}}},
		"in Observe every write passes": {state: withPlan(nil, func(p *plan.Plan) { p.Mode = plan.Observe }),
			object: workloadWith("9", agrees), stored: workloadWith("9", agrees), reason: plan.Observing, requested: both("9", "16")},
		"the same sizes in other words pass": {state: sized,
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"memory":"4Gi"},"requests":{"cpu":0.5,"memory":"2048Mi"}}}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"memory":"4Gi"},"requests":{"cpu":0.5,"memory":"2048Mi"}}}`),
			reason: plan.InPlan, requested: sizedFields("4", "16", "4Gi", "500m", "2Gi"), enforced: sizedFields("4", "16", "4Gi", "500m", "2Gi")},
		"other sizes are put back, and only those the plan names": {state: sized,
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1"}}}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"cpu":"1","memory":"4Gi"},"requests":{"cpu":"500m","memory":"2Gi"}}}`),
			reason: plan.Restored, requested: sizedFields("4", "16", "1Gi", "1", ""), enforced: sizedFields("4", "16", "4Gi", "500m", "2Gi"),
			warnings: []string{"ballast: limits.memory, requests.cpu stay as planned (plan 17)"}},
		"absent sizes are made": {state: sized,
			object: workloadWith("4", agrees),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"memory":"4Gi"},"requests":{"cpu":"500m","memory":"2Gi"}}}`),
			reason: plan.Restored, requested: sizedFields("4", "16", "", "", ""), enforced: sizedFields("4", "16", "4Gi", "500m", "2Gi")},
		"an absent section is made": {state: sized,
			object: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"memory":"4Gi"}}}`),
			stored: workloadWith("4", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}],"resources":{"limits":{"memory":"4Gi"},"requests":{"cpu":"500m","memory":"2Gi"}}}`),
			reason: plan.Restored, requested: sizedFields("4", "16", "4Gi", "", ""), enforced: sizedFields("4", "16", "4Gi", "500m", "2Gi")},
		"a limit of people's below the planned request passes with its own request": {state: requested,
			object: withResources(`{"limits":{"memory":"2Gi"},"requests":{"cpu":"500m","memory":"1Gi"}}`),
			stored: withResources(`{"limits":{"memory":"2Gi"},"requests":{"cpu":"500m","memory":"1Gi"}}`),
			reason: plan.Immutable, requested: asked(decision.Field{Name: "requests.cpu", Value: "500m"}, decision.Field{Name: "requests.memory", Value: "1Gi"}),
			enforced: asked(decision.Field{Name: "requests.cpu", Value: "500m"}),
			warnings: []string{"ballast: memory passes as asked: with plan 17 its request 4Gi would be above its limit 2Gi"}},
		"and what else the plan names is held beside it": {state: requested,
			object: withResources(`{"limits":{"memory":"2Gi"}}`), stored: withResources(`{"limits":{"memory":"2Gi"},"requests":{"cpu":"500m"}}`),
			reason: plan.Restored, requested: asked(decision.Field{Name: "requests.cpu"}, decision.Field{Name: "requests.memory"}),
			enforced: asked(decision.Field{Name: "requests.cpu", Value: "500m"}),
			warnings: []string{"ballast: memory passes as asked: with plan 17 its request 4Gi would be above its limit 2Gi"}},
		"a limit of people's above it stays beside it": {state: requested,
			object: withResources(`{"limits":{"memory":"6Gi"},"requests":{"cpu":"500m","memory":"1Gi"}}`),
			stored: withResources(`{"limits":{"memory":"6Gi"},"requests":{"cpu":"500m","memory":"4Gi"}}`),
			reason: plan.Restored, requested: asked(decision.Field{Name: "requests.cpu", Value: "500m"}, decision.Field{Name: "requests.memory", Value: "1Gi"}),
			enforced: asked(decision.Field{Name: "requests.cpu", Value: "500m"}, decision.Field{Name: "requests.memory", Value: "4Gi"}),
			warnings: []string{"ballast: requests.memory stay as planned (plan 17)"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind := tc.kind
			if kind == "" {
				kind = plan.StatefulSet
			}
			rv := &review{Request: decision.Request{Kind: kind, Namespace: "argocd", Name: workload, User: person, At: decided}, object: mustParse(t, tc.object)}
			got, err := reviewController(tc.state, rv)
			if err != nil {
				t.Fatal(err)
			}
			want := decision.Verdict{Reason: tc.reason, Revision: 17, Patches: got.Patches, Requested: tc.requested, Enforced: tc.enforced, Warnings: tc.warnings}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tree(t, tc.stored), tree(t, apply(t, tc.object, got.Patches))); diff != "" {
				t.Errorf("stored object (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the plan holds, the webhook makes no pod template that Kubernetes refuses of one that it takes.
func TestNoTemplateIsGivenARequestAboveItsLimit(t *testing.T) {
	draw := func(t *rapid.T, of string) plan.Resources {
		r := plan.Resources{Requests: map[string]string{}, Limits: map[string]string{}}
		for _, name := range []string{"cpu", "memory"} {
			request := rapid.IntRange(1, 8).Draw(t, of+" of "+name)
			if rapid.Bool().Draw(t, of+" requests "+name) {
				r.Requests[name] = strconv.Itoa(request)
			}
			if rapid.Bool().Draw(t, of+" limits "+name) {
				r.Limits[name] = strconv.Itoa(request + rapid.IntRange(0, 4).Draw(t, of+" has more "+name))
			}
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		held := draw(t, "the plan")
		state := withPlan(nil, func(p *plan.Plan) { p.Resources = &held })
		resources, err := json.Marshal(draw(t, "the object"))
		if err != nil {
			t.Fatal(err)
		}
		doc := workloadWith("4", `{"name":"application-controller","resources":`+string(resources)+`}`)
		request := decision.Request{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, User: person, At: decided}
		got, err := reviewController(state, &review{Request: request, object: rawjson.Node(doc)})
		if err != nil {
			t.Fatal(err)
		}
		after, err := objects.DecodeWorkload(rawjson.Node(apply(t, doc, got.Patches)))
		if err != nil {
			t.Fatal(err)
		}
		c := after.Containers[0]
		for name, text := range c.Requests {
			request, limit := resource.MustParse(text), c.Limits[name]
			if limit != "" && request.Cmp(resource.MustParse(limit)) > 0 {
				t.Errorf("%s became one that requests %s of %s with a limit of %s", doc, text, name, limit)
			}
		}
	})
}

func tree(t testing.TB, doc string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDecideScaleHoldsTheTargetsReplicas(t *testing.T) {
	const word = "to fix a number, set partition.replicas in ballast-config"
	on := decision.Request{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, User: person, At: decided}
	other := on
	other.Name = "argocd-repo-server"
	replicas := func(n string) []decision.Field { return []decision.Field{{Name: "replicas", Value: n}} }
	for name, tc := range map[string]struct {
		state   *inforce.State
		request decision.Request
		object  string
		want    decision.Verdict
	}{
		"the planned number passes": {withPlan(nil, nil), on, `{"spec":{"replicas":4}}`,
			decision.Verdict{Reason: plan.InPlan, Revision: 17, Requested: replicas("4"), Enforced: replicas("4")}},
		"another number is put back": {withPlan(nil, nil), on, `{"spec":{"replicas":9}}`,
			decision.Verdict{Reason: plan.Restored, Revision: 17, Requested: replicas("9"), Enforced: replicas("4"), Patches: []decision.Op{{Op: "replace", Path: "/spec/replicas", Value: 4}},
				Warnings: []string{"ballast: 9 replicas were asked, 4 stay (plan 17); " + word}}},
		"an absent number is 0": {withPlan(nil, nil), on, `{"spec":{}}`,
			decision.Verdict{Reason: plan.Restored, Revision: 17, Requested: replicas("0"), Enforced: replicas("4"), Patches: []decision.Op{{Op: "add", Path: "/spec/replicas", Value: 4}},
				Warnings: []string{"ballast: 0 replicas were asked, 4 stay (plan 17); " + word}}},
		"a plan of 0 lets an absent number pass": {withPlan(nil, func(p *plan.Plan) { p.Replicas = 0 }), on, `{"spec":{}}`,
			decision.Verdict{Reason: plan.InPlan, Revision: 17, Requested: replicas("0"), Enforced: replicas("0")}},
		"a stop holds 0 for a while": {stopping(decided.Add(-plan.StopHeld)), on, `{"spec":{"replicas":4}}`,
			decision.Verdict{Reason: plan.Restored, Revision: 17, Requested: replicas("4"), Enforced: replicas("0"), Patches: []decision.Op{{Op: "replace", Path: "/spec/replicas", Value: 0}},
				Warnings: []string{"ballast: 4 replicas were asked, 0 stay (plan 17); " + word}}},
		"a stop that no planner ends lets people bring replicas back": {stopping(lapsed), on, `{"spec":{"replicas":4}}`,
			decision.Verdict{Reason: plan.StalePlan, Revision: 17, Requested: replicas("4"), Warnings: []string{lapsedSaid}}},
		"or keep them where they are": {stopping(lapsed), on, `{"spec":{}}`,
			decision.Verdict{Reason: plan.StalePlan, Revision: 17, Requested: replicas("0")}},
		"another workload is not ours, whatever was stopped": {stopping(lapsed), other, `{"spec":{"replicas":9}}`,
			decision.Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: replicas("9")}},
		"an absent spec is made": {withPlan(nil, nil), on, `{}`,
			decision.Verdict{Reason: plan.Restored, Revision: 17, Requested: replicas("0"), Enforced: replicas("4"), Patches: []decision.Op{{Op: "add", Path: "/spec", Value: map[string]int{"replicas": 4}}},
				Warnings: []string{"ballast: 0 replicas were asked, 4 stay (plan 17); " + word}}},
		"free replicas are left": {withPlan(nil, func(p *plan.Plan) { p.FreeReplicas = true }), on, `{"spec":{"replicas":9}}`,
			decision.Verdict{Reason: plan.InPlan, Revision: 17, Requested: replicas("9")}},
		"a workload that opted out is left": {withPlan(nil, func(p *plan.Plan) { p.Unmanaged = true }), on, `{"spec":{"replicas":9}}`,
			decision.Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: replicas("9")}},
		"another workload is not ours": {withPlan(nil, nil), other, `{"spec":{"replicas":9}}`,
			decision.Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: replicas("9")}},
		"without a plan every write passes": {inforce.Of(identity(), nil), on, `{"spec":{"replicas":9}}`, decision.Verdict{Reason: plan.NoPlan, Requested: replicas("9")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reviewScale(tc.state, &review{Request: tc.request, object: mustParse(t, tc.object)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheContainerIsFoundAsThePlannerFindsIt reads the table of podspec.FindController as an admission request.
func TestTheContainerIsFoundAsThePlannerFindsIt(t *testing.T) {
	text, err := os.ReadFile("../planner/plan/podspec/testdata/containers.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]struct {
		Named      string
		Containers json.RawMessage
		Want       int
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			object, err := objects.DecodeWorkload(mustParse(t, workloadWith("4", string(tc.Containers[1:len(tc.Containers)-1]))))
			if err != nil {
				t.Fatal(err)
			}
			if got := objects.FindController(object.Containers, tc.Named); got != tc.Want {
				t.Errorf("container %d, want %d", got, tc.Want)
			}
		})
	}
}
