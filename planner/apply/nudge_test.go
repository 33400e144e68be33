package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
)

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
	nudge := func(name string) diff.Nudge {
		return diff.Nudge{Cluster: name, Server: "https://" + name, Name: name, Shard: 1, Since: start}
	}
	applier := New(w.options)
	steps := []diff.Step{nudge("c"), diff.PatchShard{Secret: "a", Shard: 1}, diff.PatchShard{Secret: "b", Shard: 1}, nudge("a"), nudge("b")}
	report := applier.Apply(w.ctx, w.target, steps)
	w.equal([]Outcome{Applied, Applied, Failed, Applied, Deferred}, w.outcomes(report))
	w.equal([]string{"nudge c by https://c or c", "patch a", "nudge a by https://a or a"}, r.did)
	w.equal([]time.Time{start.Add(time.Second), start.Add(5 * time.Second)}, []time.Time{report.Results[3].Until, report.Results[4].Until})
	for i, s := range steps {
		w.equal(s, report.Results[i].Step)
	}
	w.equal([]Outcome{Deferred, Deferred}, w.outcomes(applier.Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "b", Shard: 1}, nudge("b")}))) // its backoff
	w.equal([]Outcome{Deferred, Deferred}, w.outcomes(applier.Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 1}, nudge("a")})))
	w.clock.SetTime(start.Add(5 * time.Second))
	w.equal([]Outcome{Unchanged, Applied}, w.outcomes(applier.Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 1}, nudge("a")})))
}

// nudgesRepairs nudges at the pace of a wave's nudges, from the write on, six times at most; each repair anew.
func nudgesRepairs(t *testing.T, w *world) {
	r := &recorder{}
	w.options.Nudger = r
	w.secret("a", "0", nil)
	applier, v := New(w.options), plan.NewView(fixture.Plan(2, 16, fixture.Shards{"a": 1}), nil)
	seen := fixture.But(fixture.Fit(2, 16, fixture.Shards{"a": 0}), func(s *observed.State) { s.OwnersKnown, s.Owned = false, nil })
	var nudged []int
	for second := range 60 {
		if second == 30 { // somebody else writes again
			w.must(w.client.Patch(w.ctx, w.secretNamed("a"), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"0"}}`))))
			seen.Secrets[0].Shard = 0
		}
		w.clock.SetTime(start.Add(time.Duration(second) * time.Second))
		seen.Given = applier.Given()
		for _, result := range applier.Apply(w.ctx, w.target, diff.Steps(v, seen, diff.Options{Nudge: true}).Steps).Results {
			switch result.Step.(type) {
			case diff.PatchShard:
				seen.Secrets[0].Shard = 1
			case diff.Nudge:
				if result.Outcome == Applied {
					nudged = append(nudged, second)
				}
			}
		}
	}
	w.equal([]int{0, 1, 6, 11, 16, 21, 30, 31, 36, 41, 46, 51}, nudged)
	w.equal(map[string]observed.Given{}, applier.Given())
	w.secret("b", "1", nil) // as somebody else wrote it already
	steps := []diff.Step{diff.PatchShard{Secret: "b", Shard: 1, Why: diff.Pinned}, diff.Nudge{Cluster: "b", Shard: 1}}
	w.equal([]Outcome{Unchanged, Unchanged}, w.outcomes(applier.Apply(w.ctx, w.target, steps)))
	w.equal(map[string]observed.Given{}, applier.Given())
	r.none = true
	steps[0] = diff.PatchShard{Secret: "b", Shard: 0, Why: diff.Pinned}
	w.equal([]Outcome{Applied, Unchanged}, w.outcomes(applier.Apply(w.ctx, w.target, steps)))
	w.equal(map[string]observed.Given{}, applier.Given())
}

func (w *world) secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: name}}
}

func TestANudgeIsAnAnswerOfItsOwn(t *testing.T) {
	step := diff.Nudge{Cluster: "a", Server: "https://a", Name: "a", Shard: 1, Since: start}
	refused := errors.New("patching applications is forbidden")
	for name, test := range map[string]struct {
		nudger Nudger
		want   Outcome
		err    string
	}{
		"done":                      {&recorder{}, Applied, ""},
		"a cluster without any":     {&recorder{none: true}, Unchanged, ""},
		"failed":                    {&recorder{err: refused}, Failed, `nudging an Application of cluster "a": patching applications is forbidden`},
		"an Applier without Nudger": {nil, Unchanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			result := New(Options{Nudger: test.nudger}).Apply(t.Context(), plan.Target{}, []diff.Step{step}).Results[0]
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
	p, step := newPace(1000), diff.Nudge{Cluster: "a", Shard: 1, Since: start}
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
		step  diff.Nudge
		times int
		after time.Duration
		want  answer
	}{
		"the same":                 {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 2, 2 * time.Second, answer{Wait: 3 * time.Second}},
		"the same, once":           {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 1, time.Second / 2, answer{Wait: time.Second / 2}},
		"another cluster":          {diff.Nudge{Cluster: "b", Shard: 1, Since: start}, 1, 0, answer{}},
		"another replica":          {diff.Nudge{Cluster: "a", Shard: 2, Since: start}, 1, 0, answer{}},
		"another wave":             {diff.Nudge{Cluster: "a", Shard: 1, Since: start.Add(time.Second)}, 1, 0, answer{}},
		"a clock that went back":   {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 1, -time.Hour, answer{}},
		"six are enough":           {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 6, time.Minute, answer{Spent: true}},
		"what is long forgotten":   {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 6, 7 * time.Hour, answer{}},
		"what is nearly forgotten": {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 6, 6 * time.Hour, answer{Spent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace(1000)
			for i := range test.times {
				p.nudge(diff.Nudge{Cluster: "a", Shard: 1, Since: start}, start.Add(time.Duration(i-test.times+1)*nudgeEvery))
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
