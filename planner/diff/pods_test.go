package diff

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

type amounts = map[string]string

func TestPodsAreSized(t *testing.T) {
	shards := fixture.Shards{"a": 0, "b": 1, "c": 1}
	sized := func(change func(*plan.Plan)) plan.Plan {
		p := fixture.Plan(2, 16, shards)
		p.Sizes = &plan.Sizes{Default: plan.Resources{Requests: amounts{"cpu": "1", "memory": "2Gi"}},
			Replicas: map[int]plan.Resources{1: {Requests: amounts{"memory": "6Gi"}, Limits: amounts{"memory": "8Gi"}}}}
		if change != nil {
			change(&p)
		}
		return p
	}
	asks := func(cpu, memory, limit string) *observed.Size {
		r := plan.Resources{Requests: amounts{"cpu": cpu, "memory": memory}}
		if limit != "" {
			r.Limits = amounts{"memory": limit}
		}
		return &observed.Size{Asks: podspec.Size{Controller: r}}
	}
	pods := func(sizes ...*observed.Size) observed.State {
		return fixture.But(fixture.Fit(2, 16, shards), func(s *observed.State) {
			for i := range s.Pods {
				s.Pods[i].Name, s.Pods[i].Size = []string{"c-0", "c-1"}[i], sizes[i]
			}
		})
	}
	right := asks("1", "6Gi", "8Gi")
	first := PatchPod{Pod: "c-0", Size: plan.Resources{Requests: amounts{"cpu": "1"}}, Was: plan.Resources{Requests: amounts{"cpu": "250m"}}, Why: Sized}
	for name, test := range map[string]struct {
		plan plan.Plan
		seen observed.State
		o    Options
		want Result
	}{
		"each as large as its replica": {plan: sized(nil), seen: pods(asks("1000m", "2048Mi", ""), asks("7", "6Gi", "8Gi"))},
		"what differs, and nothing else": {plan: sized(nil), seen: pods(asks("250m", "2Gi", "4Gi"), asks("1", "2Gi", "")), want: Result{Steps: []Step{first,
			PatchPod{Pod: "c-1", Replica: 1, Size: plan.Resources{Requests: amounts{"memory": "6Gi"}, Limits: amounts{"memory": "8Gi"}}, Was: plan.Resources{Requests: amounts{"memory": "2Gi"}}, Why: Sized}}}},
		"a plan without sizes":                 {plan: sized(func(p *plan.Plan) { p.Sizes = nil }), seen: pods(asks("250m", "2Gi", ""), right)},
		"a replica without a size":             {plan: sized(func(p *plan.Plan) { p.Sizes.Default = plan.Resources{} }), seen: pods(asks("250m", "2Gi", ""), right)},
		"a plan that observes":                 {plan: sized(func(p *plan.Plan) { p.Mode = plan.Observe }), seen: pods(asks("250m", "2Gi", ""), right)},
		"a plan that holds":                    {plan: sized(func(p *plan.Plan) { p.Mode = plan.Hold }), seen: pods(asks("250m", "2Gi", ""), right), want: Result{Steps: []Step{first}}},
		"break-glass":                          {plan: sized(nil), seen: pods(asks("250m", "2Gi", ""), right), o: Options{BreakGlass: true}},
		"a pod that is being deleted":          {plan: sized(nil), seen: pods(nil, right)},
		"what the node has not made yet":       {plan: sized(nil), seen: pods(&observed.Size{Asks: asks("1", "2Gi", "").Asks, Resize: observed.ResizeDeferred, Has: asks("250m", "2Gi", "").Asks.Controller}, right)},
		"a Deployment's pods are all the same": {plan: sized(func(p *plan.Plan) { p.Target.Kind, p.Sizes.Replicas = plan.Deployment, nil }), seen: pods(asks("1", "2Gi", ""), asks("1", "2Gi", ""))},
		"a pod of no slot is one of a Deployment's": {plan: sized(func(p *plan.Plan) { p.Target.Kind, p.Sizes.Replicas = plan.Deployment, nil }),
			seen: fixture.But(pods(asks("250m", "2Gi", ""), asks("1", "2Gi", "")), func(s *observed.State) { s.Pods[0].Replica = -1 }), want: Result{Steps: []Step{
				PatchPod{Pod: "c-0", Replica: -1, Size: first.Size, Was: first.Was, Why: Sized}}}},
		"a workload that opted out": {plan: sized(nil), seen: fixture.But(pods(asks("250m", "2Gi", ""), right), func(s *observed.State) { s.Workload.Unmanaged = true }),
			want: Result{Held: []Held{{Reason: HeldUnmanaged, Pod: "c-0"}}}},
		"a pod that opted out": {plan: sized(nil), seen: pods(&observed.Size{Asks: asks("250m", "2Gi", "").Asks, Unmanaged: true}, right), want: Result{Held: []Held{{Reason: HeldUnmanaged, Pod: "c-0"}}}},
		"another class": {plan: sized(nil), seen: pods(&observed.Size{}, right), want: Result{Held: []Held{{Reason: HeldMisfit, Pod: "c-0",
			Words: "its quality of service would be Burstable and no longer BestEffort: let the pod template ask for something of what the size names"}}}},
		"a container that would restart": {plan: sized(nil), seen: pods(&observed.Size{Asks: asks("1", "1Gi", "").Asks, Restarts: []string{"memory"}}, right), want: Result{Held: []Held{{Reason: HeldRestarts, Pod: "c-0",
			Words: "its resizePolicy restarts the container for memory: take that out of the pod template; it gets its size when it is made anew"}}}},
		"which does not for cpu": {plan: sized(nil), seen: pods(&observed.Size{Asks: asks("250m", "2Gi", "").Asks, Restarts: []string{"memory"}}, right), want: Result{Steps: []Step{first}}},
		"an API server without pods/resize": {plan: sized(nil), seen: pods(asks("250m", "2Gi", ""), right), o: Options{NoResize: true}, want: Result{Held: []Held{{Reason: HeldNoResize, Pod: "c-0",
			Words: "the API server is older than Kubernetes 1.33, and has no pods/resize: it gets its size when it is made anew, or set size.apply: template"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Between(plan.NewView(test.plan, nil), test.seen, test.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTemplateIsHeldAtItsResources(t *testing.T) {
	shards := fixture.Shards{"a": 0, "b": 1, "c": 1}
	p := fixture.Plan(2, 16, shards)
	p.Resources = &plan.Resources{Requests: amounts{"cpu": "1", "memory": "2Gi"}, Limits: amounts{"memory": "4Gi"}}
	given := func(r *plan.Resources, change func(*observed.State)) observed.State {
		s := fixture.Fit(2, 16, shards)
		s.Workload.Resources = r
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, test := range map[string]struct {
		seen observed.State
		want Result
	}{
		"as planned": {given(&plan.Resources{Requests: amounts{"cpu": "1000m", "memory": "2Gi", "ephemeral-storage": "1Gi"}, Limits: amounts{"memory": "4096Mi"}}, nil), Result{}},
		"nothing":    {given(nil, nil), Result{Steps: []Step{PatchWorkload{Resources: *p.Resources, Why: Sized}}}},
		"one of them": {given(&plan.Resources{Requests: amounts{"cpu": "2", "memory": "2Gi"}, Limits: amounts{"memory": "4Gi"}}, nil),
			Result{Steps: []Step{PatchWorkload{Resources: plan.Resources{Requests: amounts{"cpu": "1"}}, Why: Sized}}}},
		"with the replicas": {given(nil, func(s *observed.State) { s.Workload.Replicas = 1 }), Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(2), Resources: *p.Resources, Why: Drifted}},
			Held: []Held{{Secret: "b", Reason: HeldBeyondReach, Shard: 1}, {Secret: "c", Reason: HeldBeyondReach, Shard: 1}}}},
		"a limit that people gave it, above the request": {
			given(&plan.Resources{Requests: amounts{"cpu": "1", "memory": "2Gi"}, Limits: amounts{"cpu": "2", "memory": "4Gi"}}, nil), Result{}},
		"a limit that people gave it, below the request": {given(&plan.Resources{Requests: amounts{"cpu": "250m"}, Limits: amounts{"cpu": "500m"}}, nil),
			Result{Steps: []Step{PatchWorkload{Resources: plan.Resources{Requests: amounts{"memory": "2Gi"}, Limits: amounts{"memory": "4Gi"}}, Why: Sized}},
				Held: []Held{{Reason: HeldMisfit, Words: "its request of cpu would be above its limit, of which the plan holds one: " +
					"change the other in the pod template, or let the rules name both"}}}},
		"opted out": {given(nil, func(s *observed.State) { s.Workload.Unmanaged = true }), Result{Held: []Held{{Reason: HeldUnmanaged}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Between(plan.NewView(p, nil), test.seen, Options{})
			if name == "with the replicas" {
				got.Held, test.want.Held = nil, nil // what waits for a replica is TestSteps'
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodsStepSaysWhatItDoes(t *testing.T) {
	s := PatchPod{Pod: "c-3", Replica: 3, Size: plan.Resources{Requests: amounts{"memory": "6Gi", "cpu": "2"}, Limits: amounts{"memory": "8Gi"}}, Was: plan.Resources{Requests: amounts{"cpu": "1"}}, Why: Sized}
	if got := s.String(); got != "size of c-3: limits.memory=8Gi requests.cpu=2 requests.memory=6Gi (Sized)" {
		t.Error(got)
	}
	doc, err := json.Marshal(s)
	if want := `{"step":"PatchPod","pod":"c-3","replica":3,"size":{"requests":{"cpu":"2","memory":"6Gi"},"limits":{"memory":"8Gi"}},"was":{"requests":{"cpu":"1"}},"why":"Sized"}`; err != nil || string(doc) != want {
		t.Errorf("%v\n%s\n%s", err, doc, want)
	}
	w := PatchWorkload{Resources: plan.Resources{Limits: amounts{"cpu": "2"}}, Why: Sized}
	if got := w.String(); got != "workload: limits.cpu=2 (Sized)" {
		t.Error(got)
	}
	for h, want := range map[Held]string{
		{Reason: HeldMisfit, Pod: "c-3", Words: "of that"}: `pod "c-3" is left at its size: of that`,
		{Reason: HeldMisfit, Words: "of that"}:             `the pod template is left at its size: of that`,
		{Reason: HeldUnmanaged, Pod: "c-3"}:                `pod "c-3" is annotated as unmanaged, so it is left at its size`,
	} {
		if got := h.Message(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
