package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
	"ballast/webhook/rawjson"
)

// podOf is a pod of the workload's, with these containers.
func podOf(name, containers string) string {
	return podMade(`"name":"`+name+`","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"a"},{"apiVersion":"apps/v1","kind":"StatefulSet","name":"argocd-application-controller","controller":true}]`, `"containers":[`+containers+`]`)
}

func podMade(metadata, spec string) string {
	return `{"metadata":{` + metadata + `},"spec":{` + spec + `}}`
}

// inPods is a state whose plan has sizes: of replica 2 its own.
func inPods(change func(*plan.Plan)) *inforce.State {
	return withPlan(nil, func(p *plan.Plan) {
		p.Sizes = &plan.Sizes{
			Default:  plan.Resources{Requests: map[string]string{"cpu": "1", "memory": "2Gi"}},
			Replicas: map[int]plan.Resources{2: {Requests: map[string]string{"memory": "6Gi"}, Limits: map[string]string{"memory": "8Gi"}}},
		}
		if change != nil {
			change(p)
		}
	})
}

func TestDecidePod(t *testing.T) {
	const (
		small = `{"name":"application-controller","resources":{"requests":{"cpu":"250m","memory":"1Gi","ephemeral-storage":"1Gi"},"limits":{"memory":"4Gi"}}}`
		exact = `{"name":"application-controller","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}}`
		first = "argocd-application-controller-0"
		third = "argocd-application-controller-2"
	)
	general := func(cpu, memory string) []decision.Field {
		return []decision.Field{{Name: "requests.cpu", Value: cpu}, {Name: "requests.memory", Value: memory}}
	}
	own := func(limit, request string) []decision.Field {
		return []decision.Field{{Name: "limits.memory", Value: limit}, {Name: "requests.memory", Value: request}}
	}
	deployed := func(name, hash, owner string) string {
		return podMade(name+`"generateName":"argocd-application-controller-7d9-","labels":{"pod-template-hash":"`+hash+`"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"`+owner+`","controller":true}]`,
			`"containers":[`+small+`]`)
	}
	deployment := inPods(func(p *plan.Plan) { p.Target.Kind, p.Sizes.Replicas = plan.Deployment, nil })
	glass := inPods(nil)
	glass.BreakGlass = true
	stale := inPods(nil)
	stale.Stale = true
	const keeps = "ballast: the pod keeps its template's size (plan 17): "
	for name, tc := range map[string]struct {
		state    *inforce.State
		object   string
		update   bool
		foreign  bool // another namespace
		patch    []decision.Op
		reason   plan.Reason
		asked    []decision.Field
		enforced []decision.Field
		warnings []string
	}{
		"the default, and what the plan does not name stays": {state: inPods(nil), object: podOf(first, small),
			patch:  []decision.Op{{Op: "replace", Path: "/spec/containers/0/resources/requests/cpu", Value: "1"}, {Op: "replace", Path: "/spec/containers/0/resources/requests/memory", Value: "2Gi"}},
			reason: plan.Restored, asked: general("250m", "1Gi"), enforced: general("1", "2Gi"),
			warnings: []string{"ballast: requests.cpu, requests.memory stay as planned (plan 17)"}},
		"its own": {state: inPods(nil), object: podOf(third, `{"name":"sidecar"},`+small),
			patch:  []decision.Op{{Op: "replace", Path: "/spec/containers/1/resources/limits/memory", Value: "8Gi"}, {Op: "replace", Path: "/spec/containers/1/resources/requests/memory", Value: "6Gi"}},
			reason: plan.Restored, asked: own("4Gi", "1Gi"), enforced: own("8Gi", "6Gi"),
			warnings: []string{"ballast: limits.memory, requests.memory stay as planned (plan 17)"}},
		"what the template has not is added without a word": {state: inPods(nil),
			object: podOf(first, `{"name":"application-controller"},{"name":"sidecar","resources":{"requests":{"cpu":"1"}}}`),
			patch:  []decision.Op{{Op: "add", Path: "/spec/containers/0/resources", Value: map[string]map[string]string{"requests": {"cpu": "1", "memory": "2Gi"}}}},
			reason: plan.Restored, asked: general("", ""), enforced: general("1", "2Gi")},
		"as planned": {state: inPods(nil), object: podOf(first, `{"name":"application-controller","resources":{"requests":{"cpu":"1000m","memory":"2048Mi"}}}`),
			reason: plan.InPlan, asked: general("1", "2Gi"), enforced: general("1", "2Gi")},
		"by the last good plan": {state: stale, object: podOf(first, `{"name":"application-controller","resources":{"requests":{"cpu":"1","memory":"2Gi"}}}`),
			reason: plan.StalePlan, asked: general("1", "2Gi"), enforced: general("1", "2Gi")},
		"a pod of a Deployment, whose name is made later": {state: deployment, object: deployed("", "7d9", "argocd-application-controller-7d9"),
			patch:  []decision.Op{{Op: "replace", Path: "/spec/containers/0/resources/requests/cpu", Value: "1"}, {Op: "replace", Path: "/spec/containers/0/resources/requests/memory", Value: "2Gi"}},
			reason: plan.Restored, asked: general("250m", "1Gi"), enforced: general("1", "2Gi"),
			warnings: []string{"ballast: requests.cpu, requests.memory stay as planned (plan 17)"}},
		"another Deployment's":               {state: deployment, object: deployed("", "7d9", "argocd-application-controller-x-7d9"), reason: plan.Unmanaged},
		"a Deployment's without a hash":      {state: deployment, object: deployed("", "", "argocd-application-controller-"), reason: plan.Unmanaged},
		"a StatefulSet's under a Deployment": {state: deployment, object: podOf(first, small), reason: plan.Unmanaged},
		"a guaranteed pod": {state: inPods(nil), object: podOf(first, exact), reason: plan.Immutable, asked: general("1", "1Gi"),
			warnings: []string{keeps + "its request of memory would be above its limit: let the size na..."}},
		"a pod that would be another class": {state: inPods(func(p *plan.Plan) { p.Sizes.Default = plan.Resources{Limits: map[string]string{"memory": "2Gi"}} }), object: podOf(first, exact),
			reason: plan.Immutable, asked: []decision.Field{{Name: "limits.memory", Value: "1Gi"}},
			warnings: []string{keeps + "its quality of service would be Burstable and no longer Guarant..."}},
		"a pod that asks for nothing": {state: inPods(nil), object: podOf(first, `{"name":"application-controller"}`), reason: plan.Immutable, asked: general("", ""),
			warnings: []string{keeps + "its quality of service would be Burstable and no longer BestEff..."}},
		"not where an initialising container asks": {state: inPods(nil),
			object: podMade(`"name":"`+first+`","ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"argocd-application-controller","controller":true}]`,
				`"initContainers":[{"name":"copy","resources":{"limits":{"cpu":"1"}}}],"containers":[{"name":"application-controller"}]`),
			patch:  []decision.Op{{Op: "add", Path: "/spec/containers/0/resources", Value: map[string]map[string]string{"requests": {"cpu": "1", "memory": "2Gi"}}}},
			reason: plan.Restored, asked: general("", ""), enforced: general("1", "2Gi")},
		"a pod with resources as a whole": {state: inPods(nil),
			object: podMade(`"name":"`+first+`","ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"argocd-application-controller","controller":true}]`,
				`"resources":{"limits":{"cpu":"4"}},"containers":[`+small+`]`),
			reason: plan.Immutable, asked: general("250m", "1Gi"), warnings: []string{keeps + "the pod has resources as a whole (spec.resources): take them ou..."}},
		"a pod without a controller's container": {state: inPods(nil), object: podOf(first, `{"name":"a"},{"name":"b"}`), reason: plan.Unmanaged,
			warnings: []string{"ballast: no container is found that runs argocd-application-controller, so the pod keeps its template's size"}},
		"a pod with more containers than are read": {state: inPods(nil), object: podOf(first, small+strings.Repeat(`,{"name":"a"}`, objects.MaxContainers)), reason: plan.Unmanaged,
			warnings: []string{"ballast: no container is found that runs argocd-application-controller, so the pod keeps its template's size"}},
		"a pod that opted out": {state: inPods(nil), object: podMade(`"name":"`+first+`","annotations":{"ballast.argoproj.io/unmanaged":"true"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"argocd-application-controller","controller":true}]`,
			`"containers":[`+small+`]`), reason: plan.Unmanaged},
		"a workload that opted out":    {state: inPods(func(p *plan.Plan) { p.Unmanaged = true }), object: podOf(first, small), reason: plan.Unmanaged},
		"another workload's pod":       {state: inPods(nil), object: podOf("argocd-server-0", small), reason: plan.Unmanaged},
		"a pod of no controller":       {state: inPods(nil), object: podMade(`"name":"`+first+`"`, `"containers":[`+small+`]`), reason: plan.Unmanaged},
		"an ordinal in another form":   {state: inPods(nil), object: podOf("argocd-application-controller-02", small), reason: plan.Unmanaged},
		"another namespace's pod":      {state: inPods(nil), object: podOf(first, small), foreign: true, reason: plan.Unmanaged},
		"what is no creation":          {state: inPods(nil), object: podOf(first, small), update: true, reason: plan.Unmanaged},
		"a plan without sizes":         {state: withPlan(nil, nil), object: podOf(first, small), reason: plan.InPlan},
		"a replica without a size":     {state: inPods(func(p *plan.Plan) { p.Sizes.Default = plan.Resources{} }), object: podOf(first, small), reason: plan.InPlan},
		"a plan that observes":         {state: inPods(func(p *plan.Plan) { p.Mode = plan.Observe }), object: podOf(first, small), reason: plan.Observing},
		"break-glass":                  {state: glass, object: podOf(first, small), reason: plan.Observing},
		"no plan":                      {state: inforce.Of(identity(), nil), object: podOf(first, small), reason: plan.NoPlan},
		"a frozen plan's mode is Hold": {state: inPods(func(p *plan.Plan) { p.Mode = plan.Hold }), object: podOf(first, `{"name":"application-controller","resources":{"requests":{"cpu":"1","memory":"2Gi"}}}`), reason: plan.InPlan, asked: general("1", "2Gi"), enforced: general("1", "2Gi")},
		"quantities that nobody can read": {state: inPods(nil), object: podOf(first, `{"name":"application-controller","resources":{"requests":{"cpu":"eyJhbGciOi","memory":"1Gi"}}}`),
			patch:  []decision.Op{{Op: "replace", Path: "/spec/containers/0/resources/requests/cpu", Value: "1"}, {Op: "replace", Path: "/spec/containers/0/resources/requests/memory", Value: "2Gi"}},
			reason: plan.Restored, asked: general(printable.Invalid, "1Gi"), enforced: general("1", "2Gi"), warnings: []string{"ballast: requests.cpu, requests.memory stay as planned (plan 17)"}},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := objects.DecodePod(mustParse(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			r := decision.Request{Create: !tc.update, Namespace: "argocd", User: "system:serviceaccount:kube-system:statefulset-controller", At: decided}
			if tc.foreign {
				r.Namespace = "elsewhere"
			}
			got := decision.Pod(tc.state, r, object)
			want := decision.Verdict{Reason: tc.reason, Revision: tc.state.Revision(), Patches: tc.patch, Requested: tc.asked, Enforced: tc.enforced, Warnings: tc.warnings}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodThatCannotBeReadIsMalformed(t *testing.T) {
	for name, doc := range map[string]string{
		"no spec": `{"metadata":{}}`, "a spec that is a list": `{"spec":[]}`, "containers that are no list": `{"spec":{"containers":{}}}`,
		"a container that is a word": `{"spec":{"containers":["a"]}}`, "initContainers that are no list": `{"spec":{"initContainers":{}}}`,
	} {
		if p, err := objects.DecodePod(mustParse(t, doc)); err == nil {
			t.Errorf("%s is read as %+v", name, p)
		}
	}
}

func drawPod(t *rapid.T) map[string]any {
	spec := drawWorkload(t)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	maybe(t, spec, "initContainers", []any{map[string]any{"name": "copy", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}}}})
	hash := rapid.SampledFrom([]string{"", "7d9"}).Draw(t, "hash")
	owner := map[string]any{"apiVersion": rapid.SampledFrom([]string{"apps/v1", "v1"}).Draw(t, "group"), "controller": rapid.Bool().Draw(t, "controls"),
		"kind": rapid.SampledFrom([]string{"StatefulSet", "ReplicaSet"}).Draw(t, "owner"), "name": rapid.SampledFrom([]string{workload, workload + "-7d9"}).Draw(t, "owner's name")}
	metadata := map[string]any{"labels": map[string]any{"pod-template-hash": hash}, "ownerReferences": []any{owner}}
	maybe(t, metadata, "name", fmt.Sprintf("%s-%d", workload, rapid.IntRange(0, 9).Draw(t, "ordinal")))
	return map[string]any{"kind": "Pod", "metadata": metadata, "spec": spec}
}

// A pod that was made by the plan's size is of the class that its template gives it, so that it can be given any other.
func TestNoSizeChangesThePodsClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		object := document(t, drawPod(t))
		rv := review{Request: drawRequest(t), object: object}
		v, err := reviewPod(s, &rv)
		if err != nil || len(v.Patches) == 0 {
			return
		}
		before, err := objects.DecodePod(object)
		if err != nil {
			t.Fatal(err)
		}
		after, err := objects.DecodePod(rawjson.Node(apply(t, string(object), v.Patches)))
		if err != nil {
			t.Fatal(err)
		}
		at := objects.FindController(before.Containers, s.View.Plan.Target.Container)
		if why := before.Size(at).Misfit(after.Size(at).Controller); why != "" {
			t.Errorf("%s became what it cannot be: %s", object, why)
		}
	})
}
