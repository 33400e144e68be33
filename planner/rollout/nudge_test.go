package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/plan"
)

func TestNudgesWakeWhoHasNotTakenItsCluster(t *testing.T) {
	nudge := func(cluster string, shard int) Nudge {
		return Nudge{Cluster: cluster, Server: "https://" + cluster, Name: "name of " + cluster, Shard: shard, Since: start}
	}
	named := func(s Seen) Seen {
		for i := range s.Secrets {
			s.Secrets[i].Cluster = "name of " + s.Secrets[i].Name
		}
		return s
	}
	repair := func(cluster string, shard int) Nudge {
		n := nudge(cluster, shard)
		n.Since = time.Time{}
		return n
	}
	given := func(cluster string, shard int, looked time.Time) Seen {
		return but(fit(3, 16, old), func(s *Seen) { s.Given, s.Looked = map[string]Given{cluster: {shard, start}}, looked })
	}
	patch := PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}
	waiting := named(but(fit(3, 16, grown), func(s *Seen) { s.Owned["b"] = Owned{Owners: []int{2}} }))
	for name, test := range map[string]struct {
		plan plan.Plan
		pins plan.Pins
		seen Seen
		off  bool
		want []Step
	}{
		"with the write that moves it": {
			plan: growing(plan.Moving, moved), seen: named(fit(3, 16, old)), want: []Step{patch, nudge("b", 2)},
		},
		"again until it is taken": {plan: growing(plan.Moving, moved), seen: waiting, want: []Step{nudge("b", 2)}},
		"where nothing is known of owners": {
			plan: growing(plan.Moving, moved), seen: named(but(fit(3, 16, grown), func(s *Seen) { s.Owned, s.Asked, s.Pods = nil, false, nil })), want: []Step{nudge("b", 2)},
		},
		"not when it is taken":         {plan: growing(plan.Moving, moved), seen: named(fit(3, 16, grown))},
		"not where nudging is off":     {plan: growing(plan.Moving, moved), seen: waiting, off: true},
		"not outside a wave":           {plan: growing(plan.Verifying, nil), seen: named(fit(3, 16, old))},
		"not a pod that does not hear": {plan: growing(plan.Moving, moved), seen: but(waiting, func(s *Seen) { s.Pods = slices.Clone(s.Pods); s.Pods[2].Ready = false })},
		"not for a cluster without an Application": {
			plan: growing(plan.Moving, moved), seen: but(waiting, func(s *Seen) { s.Owned = map[string]Owned{"b": {Idle: true}} }),
		},
		"not for a cluster that Argo CD is told to leave": {
			plan: growing(plan.Moving, moved), seen: but(waiting, func(s *Seen) { s.Secrets = slices.Clone(s.Secrets); s.Secrets[1].Skip = true }),
		},
		"not for a Secret that cannot be written": {
			plan: growing(plan.Moving, moved), seen: but(named(fit(3, 16, old)), func(s *Seen) { s.Secrets[1].Immutable = true }),
		},
		"not while its Secret is held back": {
			plan: growing(plan.Moving, moved), seen: but(named(fit(3, 16, old)), func(s *Seen) { s.Workload = standing(2, ptr(16)) }),
			want: []Step{PatchWorkload{Replicas: ptr(3), Why: Drifted}},
		},
		"where a pin says now": {
			plan: growing(plan.Moving, moved), pins: plan.Pins{"b": 0}, seen: named(but(fit(3, 16, shards{"a": 0, "b": 0, "c": 1}), func(s *Seen) { s.Owned["b"] = Owned{} })),
			want: []Step{nudge("b", 0)},
		},
		"on the way back": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { wave(p, shards{"b": 1}, shards{"b": 2}) }), seen: named(fit(3, 16, grown)),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Moved}, nudge("b", 1)},
		},
		"with the write of a pin": {
			plan: newPlan(3, 16, old), pins: plan.Pins{"b": 2}, seen: named(fit(3, 16, old)),
			want: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Pinned}, repair("b", 2)},
		},
		"with the repair of a drift, which its owner has by the last look": {
			plan: newPlan(3, 16, old), seen: named(but(fit(3, 16, grown), func(s *Seen) { s.Owned["b"] = Owned{Owners: []int{1}, Live: []int{1}} })),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Drifted}, repair("b", 1)},
		},
		"with the repair of what is no shard": {
			plan: newPlan(3, 16, old), seen: named(but(fit(3, 16, old), func(s *Seen) { s.Secrets[1].Valid = false })),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "invalid", Why: Broken}, repair("b", 1)},
		},
		"not with a stamp, which moves nothing": {
			plan: newPlan(3, 16, old), seen: named(but(fit(3, 16, old), func(s *Seen) { s.Secrets[1].Valid, s.Secrets[1].Absent = false, true })),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "-", Why: Unstamped}},
		},
		"after a repair, whatever was seen before it": {
			plan: newPlan(3, 16, old), seen: named(given("b", 1, start)), want: []Step{nudge("b", 1)},
		},
		"after a repair, while nobody has it": {
			plan: newPlan(3, 16, old), seen: named(but(given("b", 1, start.Add(time.Second)), func(s *Seen) { s.Owned["b"] = Owned{} })), want: []Step{nudge("b", 1)},
		},
		"not after a repair once it is taken":      {plan: newPlan(3, 16, old), seen: named(given("b", 1, start.Add(time.Second)))},
		"not after a repair that others overruled": {plan: newPlan(3, 16, old), seen: named(given("b", 2, start))},
		"not after a repair where nudging is off":  {plan: newPlan(3, 16, old), seen: named(given("b", 1, start)), off: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := Steps(plan.NewView(test.plan, test.pins), test.seen, StepOptions{Nudge: !test.off})
			if diff := cmp.Diff(test.want, got.Steps); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// recorder is a Nudger that notes in which order things were done.
type recorder struct {
	mu   sync.Mutex
	did  []string
	err  error
	none bool // the cluster has no Application
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, what)
}

func (r *recorder) Nudge(_ context.Context, _, cluster, server, name string) (string, error) {
	r.note(fmt.Sprintf("nudge %s by %s or %s", cluster, server, name))
	if r.none || r.err != nil {
		return "", r.err
	}
	return "argocd/app-of-" + cluster, nil
}

// patchesFirst nudges each cluster after its own Secret was written, and not where that failed or had to wait.
func patchesFirst(t *testing.T, w *world) {
	r := &recorder{}
	away := errors.New("the API server is away")
	for _, name := range []string{"a", "b", "c"} {
		w.secret(name, "0", nil)
	}
	w.options.Nudger, w.options.Concurrency = r, 1
	w.options.Client = interceptor.NewClient(w.client, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetName() == "b" {
			return away
		}
		err := c.Patch(ctx, o, p, opts...)
		r.note("patch " + o.GetName())
		return err
	}})
	nudge := func(name string) Nudge {
		return Nudge{Cluster: name, Server: "https://" + name, Name: name, Shard: 1, Since: start}
	}
	applier := NewApplier(w.options)
	steps := []Step{nudge("c"), PatchShard{Secret: "a", Shard: 1}, PatchShard{Secret: "b", Shard: 1}, nudge("a"), nudge("b")}
	report := applier.Apply(w.ctx, w.target, steps)
	w.equal([]ApplyOutcome{Applied, Applied, Failed, Applied, Deferred}, w.outcomes(report))
	w.equal([]string{"nudge c by https://c or c", "patch a", "nudge a by https://a or a"}, r.did)
	w.equal([]time.Time{start.Add(time.Second), start.Add(5 * time.Second)}, []time.Time{report.Results[3].Until, report.Results[4].Until})
	for i, s := range steps {
		w.equal(s, report.Results[i].Step)
	}
	w.equal([]ApplyOutcome{Deferred, Deferred}, w.outcomes(applier.Apply(w.ctx, w.target, []Step{PatchShard{Secret: "b", Shard: 1}, nudge("b")}))) // its backoff
	w.equal([]ApplyOutcome{Deferred, Deferred}, w.outcomes(applier.Apply(w.ctx, w.target, []Step{PatchShard{Secret: "a", Shard: 1}, nudge("a")})))
	w.clock.SetTime(start.Add(5 * time.Second))
	w.equal([]ApplyOutcome{Unchanged, Applied}, w.outcomes(applier.Apply(w.ctx, w.target, []Step{PatchShard{Secret: "a", Shard: 1}, nudge("a")})))
}

// nudgesRepairs nudges at the pace of a wave's nudges, from the write on, six times at most; each repair anew.
func nudgesRepairs(t *testing.T, w *world) {
	r := &recorder{}
	w.options.Nudger = r
	w.secret("a", "0", nil)
	applier, v := NewApplier(w.options), plan.NewView(newPlan(2, 16, shards{"a": 1}), nil)
	seen := but(fit(2, 16, shards{"a": 0}), func(s *Seen) { s.Asked, s.Owned = false, nil })
	var nudged []int
	for second := range 60 {
		if second == 30 { // somebody else writes again
			w.must(w.client.Patch(w.ctx, w.secretNamed("a"), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"0"}}`))))
			seen.Secrets[0].Shard = 0
		}
		w.clock.SetTime(start.Add(time.Duration(second) * time.Second))
		seen.Given = applier.Given()
		for _, result := range applier.Apply(w.ctx, w.target, Steps(v, seen, StepOptions{Nudge: true}).Steps).Results {
			switch result.Step.(type) {
			case PatchShard:
				seen.Secrets[0].Shard = 1
			case Nudge:
				if result.Outcome == Applied {
					nudged = append(nudged, second)
				}
			}
		}
	}
	w.equal([]int{0, 1, 6, 11, 16, 21, 30, 31, 36, 41, 46, 51}, nudged)
	w.equal(map[string]Given{}, applier.Given())
	w.secret("b", "1", nil) // as somebody else wrote it already
	steps := []Step{PatchShard{Secret: "b", Shard: 1, Why: Pinned}, Nudge{Cluster: "b", Shard: 1}}
	w.equal([]ApplyOutcome{Unchanged, Unchanged}, w.outcomes(applier.Apply(w.ctx, w.target, steps)))
	w.equal(map[string]Given{}, applier.Given())
	r.none = true
	steps[0] = PatchShard{Secret: "b", Shard: 0, Why: Pinned}
	w.equal([]ApplyOutcome{Applied, Unchanged}, w.outcomes(applier.Apply(w.ctx, w.target, steps)))
	w.equal(map[string]Given{}, applier.Given())
}

func (w *world) secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: name}}
}

func TestANudgeIsAnAnswerOfItsOwn(t *testing.T) {
	step := Nudge{Cluster: "a", Server: "https://a", Name: "a", Shard: 1, Since: start}
	refused := errors.New("patching applications is forbidden")
	for name, test := range map[string]struct {
		nudger Nudger
		want   ApplyOutcome
		err    string
	}{
		"done":                      {&recorder{}, Applied, ""},
		"a cluster without any":     {&recorder{none: true}, Unchanged, ""},
		"failed":                    {&recorder{err: refused}, Failed, `nudging an Application of cluster "a": patching applications is forbidden`},
		"an Applier without Nudger": {nil, Unchanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			result := NewApplier(ApplierOptions{Nudger: test.nudger}).Apply(t.Context(), plan.Target{}, []Step{step}).Results[0]
			message := ""
			if result.Err != nil {
				message = result.Err.Error()
			}
			if diff := cmp.Diff([]string{string(test.want), test.err}, []string{string(result.Outcome), message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNudgesAreMadeAtOnceAfter1sThenEvery5sAndSixTimes(t *testing.T) {
	p, step := newPace(1000), Nudge{Cluster: "a", Shard: 1, Since: start}
	var made []time.Duration
	for now := time.Duration(0); now < 2*time.Minute; now += time.Second {
		if wait, spent := p.nudge(step, start.Add(now)); wait == 0 && !spent {
			made = append(made, now/time.Second)
		}
	}
	if diff := cmp.Diff([]time.Duration{0, 1, 6, 11, 16, 21}, made); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestThePaceOfNudgesIsOneMoves(t *testing.T) {
	type answer struct {
		Wait  time.Duration
		Spent bool
	}
	for name, test := range map[string]struct {
		step  Nudge
		times int
		after time.Duration
		want  answer
	}{
		"the same":                 {Nudge{Cluster: "a", Shard: 1, Since: start}, 2, 2 * time.Second, answer{Wait: 3 * time.Second}},
		"the same, once":           {Nudge{Cluster: "a", Shard: 1, Since: start}, 1, time.Second / 2, answer{Wait: time.Second / 2}},
		"another cluster":          {Nudge{Cluster: "b", Shard: 1, Since: start}, 1, 0, answer{}},
		"another replica":          {Nudge{Cluster: "a", Shard: 2, Since: start}, 1, 0, answer{}},
		"another wave":             {Nudge{Cluster: "a", Shard: 1, Since: start.Add(time.Second)}, 1, 0, answer{}},
		"a clock that went back":   {Nudge{Cluster: "a", Shard: 1, Since: start}, 1, -time.Hour, answer{}},
		"six are enough":           {Nudge{Cluster: "a", Shard: 1, Since: start}, 6, time.Minute, answer{Spent: true}},
		"what is long forgotten":   {Nudge{Cluster: "a", Shard: 1, Since: start}, 6, 7 * time.Hour, answer{}},
		"what is nearly forgotten": {Nudge{Cluster: "a", Shard: 1, Since: start}, 6, 6 * time.Hour, answer{Spent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace(1000)
			for i := range test.times {
				p.nudge(Nudge{Cluster: "a", Shard: 1, Since: start}, start.Add(time.Duration(i-test.times+1)*nudgeEvery))
			}
			now := start.Add(test.after)
			p.forget(now)
			wait, spent := p.nudge(test.step, now)
			if diff := cmp.Diff(test.want, answer{wait, spent}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
