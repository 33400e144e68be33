package apply_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/apply"
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
	applier := apply.New(w.options)
	steps := []diff.Step{nudge("c"), diff.PatchShard{Secret: "a", Shard: 1}, diff.PatchShard{Secret: "b", Shard: 1}, nudge("a"), nudge("b")}
	report := applier.Apply(w.ctx, w.target, steps)
	w.equal([]apply.Outcome{apply.Applied, apply.Applied, apply.Failed, apply.Applied, apply.Deferred}, w.outcomes(report))
	w.equal([]string{"nudge c by https://c or c", "patch a", "nudge a by https://a or a"}, r.did)
	w.equal([]time.Time{start.Add(time.Second), start.Add(5 * time.Second)}, []time.Time{report.Results[3].Until, report.Results[4].Until})
	for i, s := range steps {
		w.equal(s, report.Results[i].Step)
	}
	w.equal([]apply.Outcome{apply.Deferred, apply.Deferred}, w.outcomes(applier.Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "b", Shard: 1}, nudge("b")}))) // its backoff
	w.equal([]apply.Outcome{apply.Deferred, apply.Deferred}, w.outcomes(applier.Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 1}, nudge("a")})))
	w.clock.SetTime(start.Add(5 * time.Second))
	w.equal([]apply.Outcome{apply.Unchanged, apply.Applied}, w.outcomes(applier.Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 1}, nudge("a")})))
}

// nudgesRepairs nudges at the pace of a wave's nudges, from the write on, six times at most; each repair anew.
func nudgesRepairs(t *testing.T, w *world) {
	r := &recorder{}
	w.options.Nudger = r
	w.secret("a", "0", nil)
	applier, v := apply.New(w.options), plan.NewView(fixture.Plan(2, 16, fixture.Shards{"a": 1}), nil)
	seen := fixture.But(fixture.Fit(2, 16, fixture.Shards{"a": 0}), func(s *observed.State) { s.OwnersKnown, s.Owned = false, nil })
	var nudged []int
	for second := range 60 {
		if second == 30 { // somebody else writes again
			w.must(w.client.Patch(w.ctx, w.secretNamed("a"), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"0"}}`))))
			seen.Secrets[0].Shard = 0
		}
		w.clock.SetTime(start.Add(time.Duration(second) * time.Second))
		seen.Repaired = applier.Repaired()
		for _, result := range applier.Apply(w.ctx, w.target, diff.Between(v, seen, diff.Options{Nudge: true}).Steps).Results {
			switch result.Step.(type) {
			case diff.PatchShard:
				seen.Secrets[0].Shard = 1
			case diff.Nudge:
				if result.Outcome == apply.Applied {
					nudged = append(nudged, second)
				}
			}
		}
	}
	w.equal([]int{0, 1, 6, 11, 16, 21, 30, 31, 36, 41, 46, 51}, nudged)
	w.equal(map[string]observed.Repair{}, applier.Repaired())
	w.secret("b", "1", nil) // as somebody else wrote it already
	steps := []diff.Step{diff.PatchShard{Secret: "b", Shard: 1, Why: diff.Pinned}, diff.Nudge{Cluster: "b", Shard: 1}}
	w.equal([]apply.Outcome{apply.Unchanged, apply.Unchanged}, w.outcomes(applier.Apply(w.ctx, w.target, steps)))
	w.equal(map[string]observed.Repair{}, applier.Repaired())
	r.none = true
	steps[0] = diff.PatchShard{Secret: "b", Shard: 0, Why: diff.Pinned}
	w.equal([]apply.Outcome{apply.Applied, apply.Unchanged}, w.outcomes(applier.Apply(w.ctx, w.target, steps)))
	w.equal(map[string]observed.Repair{}, applier.Repaired())
}

func (w *world) secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: name}}
}
