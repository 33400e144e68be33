package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/apiserver"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
	"ballast/planner/store"
	"ballast/planner/store/history"
)

// TestStore runs every case against one real API server, each in its own namespace.
func TestStore(t *testing.T) {
	config := apiserver.Start(t)
	for name, run := range map[string]func(*testing.T, *world){
		"the first plan makes its ConfigMap":                        makesTheConfigMap,
		"what people wrote survives byte for byte":                  keepsWhatPeopleWrote,
		"a stage comes and goes in the annotations":                 showsTheStage,
		"an idle planner writes nothing":                            writesNothingWhenIdle,
		"a lost race is answered as such":                           losesRaces,
		"writes of no meaning without end keep no plan away":        winsOverNoise,
		"people and planner write at once and nothing is lost":      losesNothing,
		"a write by content passes over nobody":                     passesOverNobody,
		"a comment in the pins keeps no plan away, and stays":       writesBesideAComment,
		"a deleted plan comes back above its revision":              comesBackAfterDeletion,
		"plan and history lost together go on above the status":     goesOnAboveTheStatus,
		"a plan that does not match its digest is replaced":         replacesABrokenPlan,
		"a restored backup is followed by a higher revision":        goesAboveABackup,
		"a forged revision does not turn the count back":            countsOverForgedRevisions,
		"a plan changed on its way is an error":                     noticesAChangedPlan,
		"an immutable ConfigMap is an error that says so":           namesAnImmutableConfigMap,
		"a filler that leaves no room is named":                     namesWhatTakesTheRoom,
		"what stands in the wrong half of a ConfigMap is taken out": takesOutWhatStandsInTheWrongHalf,
		"a plan that cannot be encoded is not written":              refusesAPlanThatCannotBe,
		"the history comes back":                                    keepsTheHistory,
		"a history written elsewhere is a conflict":                 losesHistoryRaces,
		"an API server that refuses is an error":                    passesErrorsOn,
	} {
		t.Run(name, func(t *testing.T) { run(t, newWorld(t, config)) })
	}
}

type world struct {
	*store.Store
	t      *testing.T
	ctx    context.Context
	client client.WithWatch
}

func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "argocd-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w := &world{store.New(store.Options{Client: c, Reader: c, Namespace: namespace.Name, Plan: "ballast-plan", History: "ballast-history", Key: store.KeyName("ballast-plan")}), t, t.Context(), c}
	w.must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Key}}))
	w.must(w.Unseal(t.Context()))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) equal(want, got any, opts ...cmp.Option) {
	w.t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		w.t.Errorf("(-want +got):\n%s", diff)
	}
}

func (w *world) read() store.Snapshot {
	w.t.Helper()
	s, err := w.Read(w.ctx)
	w.must(err)
	return s
}

func (w *world) write(base store.Snapshot, p plan.Plan, floor int64) store.Snapshot {
	w.t.Helper()
	s, err := w.WritePlan(w.ctx, base, p, floor, meta)
	w.must(err)
	return s
}

// stored is the plan ConfigMap as people see it.
func (w *world) stored() *corev1.ConfigMap {
	w.t.Helper()
	var cm corev1.ConfigMap
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Plan}, &cm))
	return &cm
}

func (w *world) history() *corev1.ConfigMap {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.History}, cm))
	return cm
}

func (w *world) edit(change func(*corev1.ConfigMap)) {
	w.t.Helper()
	cm := w.stored()
	change(cm)
	w.must(w.client.Update(w.ctx, cm, client.FieldOwner("a-person")))
}

var meta = configmap.Meta{DecidedAt: at, DecidedBy: "planner-0", Reason: "moves 1 of 2 clusters"}

func revised(p plan.Plan, revision int64) plan.Plan {
	p.Revision = revision
	return p
}

func makesTheConfigMap(t *testing.T, w *world) {
	empty := w.read()
	w.equal(false, empty.Exists())
	w.equal(configmap.Document{}, empty.Document, cmpopts.EquateEmpty())
	got := w.write(empty, newPlan("a", "b"), 0)
	cm := w.stored()
	text, err := codec.Encode(newPlan("a", "b"))
	w.must(err)
	w.equal(map[string]string{"plan": text}, cm.Data)
	w.equal(map[string]string{
		"ballast.argoproj.io/revision": "1", "ballast.argoproj.io/decided-at": "2026-08-01T12:00:00Z", "ballast.argoproj.io/decided-by": "planner-0",
		"ballast.argoproj.io/reason": "moves 1 of 2 clusters", "ballast.argoproj.io/digest": plan.Digest(text),
		"ballast.argoproj.io/mac": cm.Annotations["ballast.argoproj.io/mac"], // which the plan that is read back vouches for
	}, cm.Annotations)
	w.equal(map[string]string{"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "planner", "app.kubernetes.io/part-of": "ballast"}, cm.Labels)
	w.equal(plan.FieldManager, cm.ManagedFields[0].Manager)
	again := w.read()
	w.equal(newPlan("a", "b"), *again.Document.Plan)
	w.equal(meta, again.Meta)
	w.equal(again.Document, got.Document)
}

func keepsWhatPeopleWrote(t *testing.T, w *world) {
	pins := "# the bank's, by contract\nb:   1   # until 2027\n\n\"0x1f\": 0\n"
	before := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Plan, Labels: map[string]string{"team": "fleet"},
			Annotations: map[string]string{"ballast.argoproj.io/paused": "false", "example.org/notes": "line 1\nline 2 é \t"}, Finalizers: []string{"example.org/backup"}},
		Data: map[string]string{"pins": pins, "notes.txt": "\r\n kept \r\n"}, BinaryData: map[string][]byte{"photo": {0, 255, 1}},
	}
	w.must(w.client.Create(w.ctx, before, client.FieldOwner("a-person")))
	w.write(w.read(), newPlan("a", "b"), 0)
	moved := newPlan("a", "b")
	moved.Clusters["a"] = plan.Row{Replica: 1}
	w.write(w.read(), moved, 1)
	after := w.stored()
	for _, ours := range []string{"revision", "decided-at", "decided-by", "reason", "digest", "mac"} {
		delete(after.Annotations, plan.Group+"/"+ours)
	}
	delete(after.Data, "plan")
	w.equal(before, after, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "ManagedFields"))
	for _, e := range after.ManagedFields {
		if e.Manager == plan.FieldManager && strings.Contains(e.FieldsV1.GetRawString(), "pins") {
			t.Errorf("the planner owns people's pins: %s", e.FieldsV1.GetRawString())
		}
	}
}

func showsTheStage(t *testing.T, w *world) {
	p := newPlan("a")
	p.Rollout = &plan.Rollout{Mode: "default", Stage: plan.Scaling, Since: at, From: plan.Count{Replicas: 2, ControllerReplicas: 2}, Replicas: 3, ControllerReplicas: 3}
	s := w.write(w.read(), p, 0)
	w.equal("Scaling", w.stored().Annotations[plan.AnnotationStage])
	s = w.write(s, newPlan("a"), 1)
	_, still := w.stored().Annotations[plan.AnnotationStage]
	w.equal(false, still)
	w.equal(int64(2), s.Document.Plan.Revision)
}

func writesNothingWhenIdle(t *testing.T, w *world) {
	s := w.write(w.read(), newPlan("a", "b"), 0)
	before := w.stored().ResourceVersion
	for i := range 60 { // an hour of cycles, each with other loads
		p := newPlan("a", "b")
		p.Clusters["a"] = plan.Row{Replica: 0, Load: fmt.Sprintf("0.%d", i+1)}
		w.write(s, p, 1)
		s = w.write(w.read(), p, 1)
	}
	w.equal(before, w.stored().ResourceVersion)
	w.equal(int64(1), s.Document.Plan.Revision)
}

func losesRaces(t *testing.T, w *world) {
	empty := w.read()
	s := w.write(empty, newPlan("a"), 0)
	w.edit(func(cm *corev1.ConfigMap) { cm.Data["pins"] = "a: 1\n" })
	_, raced := w.WritePlan(w.ctx, s, newPlan("b"), 1, meta)
	_, created := w.WritePlan(w.ctx, empty, newPlan("b"), 1, meta)
	s = w.read()
	w.must(w.client.Delete(w.ctx, w.stored()))
	_, deleted := w.WritePlan(w.ctx, s, newPlan("b"), 1, meta)
	w.must(w.client.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Plan}}))
	_, recreated := w.WritePlan(w.ctx, s, newPlan("b"), 1, meta)
	for name, err := range map[string]error{"edited": raced, "created": created, "deleted": deleted, "created anew": recreated} {
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("where it was %s: %v, want %v", name, err, store.ErrConflict)
		}
	}
	w.equal(map[string]string(nil), w.stored().Data)
}

// winsOverNoise: eight writers of annotations that no cycle goes by, as fast as the API server takes them.
func winsOverNoise(t *testing.T, w *world) {
	s := w.write(w.read(), newPlan("a"), 0)
	ctx, stop := context.WithCancel(w.ctx)
	var noise sync.WaitGroup
	var wrote atomic.Int64
	silent := []string{"example.org/x", plan.AnnotationPausedBy, plan.AnnotationPausedReason, plan.AnnotationBlocked, plan.Group + "/x"}
	for k := range 8 {
		noise.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, silent[k%len(silent)], i)
				if w.client.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Plan}}, client.RawPatch(types.MergePatchType, []byte(patch))) == nil {
					wrote.Add(1)
				}
			}
		})
	}
	defer noise.Wait()
	defer stop()
	for range 20 {
		tries := 0
		for {
			next, err := w.WritePlan(w.ctx, s, newPlan("a", fmt.Sprint("b", s.Document.Plan.Revision)), 0, meta)
			if err == nil {
				s = next
				break
			}
			if tries++; !errors.Is(err, store.ErrConflict) || tries == 10 {
				t.Fatalf("after %d tries, %d writes of others: %v", tries, wrote.Load(), err)
			}
			s = w.read()
		}
	}
	w.equal(int64(21), s.Document.Plan.Revision)
	h, err := w.WriteHistory(w.ctx, store.History{}.WithPlan(s), at)
	w.must(err)
	for i := range 5 {
		w.must(w.client.Patch(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.History}},
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/x":"%d"}}}`, i))))
		h, err = w.WriteHistory(w.ctx, h, at.Add(time.Duration(i+1)*time.Minute))
		w.must(err)
	}
	t.Logf("20 plans beside %d writes", wrote.Load())
}

func losesNothing(t *testing.T, w *world) {
	const writes = 40
	w.write(w.read(), newPlan("a"), 0)
	var all sync.WaitGroup
	var races, lost int
	all.Go(func() { // a person adds pins, with a comment each
		for i := range writes {
			for {
				cm := w.stored()
				cm.Data["pins"] += fmt.Sprintf("# because of %d\nc%d: 0\n", i, i)
				err := w.client.Update(w.ctx, cm)
				if err == nil {
					break
				}
				if lost++; !apierrors.IsConflict(err) {
					t.Errorf("the person's write failed: %v", err)
					return
				}
			}
		}
	})
	all.Go(func() {
		for i := range writes {
			for {
				_, err := w.WritePlan(w.ctx, w.read(), newPlan(fmt.Sprintf("cluster-%d", i)), 0, meta)
				if err == nil {
					break
				}
				if races++; !errors.Is(err, store.ErrConflict) {
					t.Errorf("the planner's write failed: %v", err)
					return
				}
			}
		}
	})
	all.Wait()
	var pins strings.Builder
	for i := range writes {
		fmt.Fprintf(&pins, "# because of %d\nc%d: 0\n", i, i)
	}
	w.equal(pins.String(), w.stored().Data["pins"])
	w.equal(revised(newPlan("cluster-39"), writes+1), *w.read().Document.Plan)
	t.Logf("the planner lost %d races, the person %d", races, lost)
}

func comesBackAfterDeletion(t *testing.T, w *world) {
	s := w.write(w.write(w.read(), newPlan("a"), 0), newPlan("b"), 0)
	history, err := w.WriteHistory(w.ctx, store.History{}.WithPlan(s), at)
	w.must(err)
	w.must(w.client.Delete(w.ctx, w.stored()))
	gone := w.read()
	w.equal(false, gone.Exists())
	got := w.write(gone, *history.LastPlan(), history.Floor())
	w.equal(revised(newPlan("b"), 3), *got.Document.Plan)
}

// writesBesideAComment: who decided on pins has decided, whatever comments they have meanwhile; another pin is decided on first.
func writesBesideAComment(t *testing.T, w *world) {
	pins := func(text string) { w.edit(func(cm *corev1.ConfigMap) { cm.Data["pins"] = text }) }
	s := w.write(w.read(), newPlan("a"), 0)
	for i, text := range []string{"# why\n", "# a comment\na: 1\n", "a:   1 # until 2027\n\n", "# one more\n\"a\": 1\n"} {
		if i == 1 { // the pin itself is new
			pins("a: 1\n")
			s = w.read()
		}
		pins(text)
		w.edit(func(cm *corev1.ConfigMap) {
			cm.Annotations[plan.AnnotationPausedBy], cm.Annotations[plan.AnnotationBlocked] = fmt.Sprint(i), fmt.Sprint(i)
		})
		s = w.write(s, newPlan("a", fmt.Sprint("b", i)), 0)
		w.equal(revised(newPlan("a", fmt.Sprint("b", i)), int64(i)+2), *s.Document.Plan)
		w.equal(text, w.stored().Data["pins"])
		w.equal(fmt.Sprint(i), w.stored().Annotations[plan.AnnotationPausedBy])
	}
	for _, text := range []string{"# one more\na: 0\n", "a: 1\nb: 1\n", "", "a: 1\na: 1\n", "a: x\n"} {
		pins("a: 1\n")
		s = w.read()
		pins(text)
		if _, err := w.WritePlan(w.ctx, s, newPlan("z"), 0, meta); !errors.Is(err, store.ErrConflict) {
			t.Errorf("beside %q: %v, want %v", text, err, store.ErrConflict)
		}
		w.equal(text, w.stored().Data["pins"])
	}
	w.equal(int64(5), w.read().Document.Plan.Revision)
}

// goesOnAboveTheStatus: nobody vouches for it, so that a number that could not be one counts for nothing.
func goesOnAboveTheStatus(t *testing.T, w *world) {
	forget := func() {
		for _, name := range []string{w.Plan, w.History} {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
			w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, cm)))
		}
	}
	next := func() int64 {
		forget()
		return w.write(w.read(), newPlan("a"), 0).Document.Plan.Revision
	}
	s := w.write(w.read(), newPlan("a"), 6)
	_, err := w.WriteHistory(w.ctx, store.History{}.WithPlan(s), at)
	w.must(err)
	for _, c := range []struct{ said, want int64 }{
		{7, 8}, {0, 1}, {1_000_000, 1_000_001}, {1_000_001, 1}, {1 << 62, 1}, {math.MaxInt64, 1}, {-7, 1}, {math.MinInt64, 1},
	} {
		w.must(w.WriteStatus(w.ctx, status.Status{Leader: "planner-0", LookedAt: at, Revision: c.said}))
		if got := next(); got != c.want {
			t.Errorf("the status says %d, and the next plan is %d, want %d", c.said, got, c.want)
		}
	}
	w.must(w.WriteStatus(w.ctx, status.Status{Revision: 7}))
	w.equal(int64(2), w.write(w.read(), newPlan("b"), 0).Document.Plan.Revision) // beside an own plan it says nothing
	forget()
	w.equal(int64(4), w.write(w.read(), newPlan("a"), 3).Document.Plan.Revision) // nor where the caller knows one
	w.edit(func(cm *corev1.ConfigMap) { delete(cm.Data, "plan") })
	w.equal(int64(8), w.write(w.read(), newPlan("a"), 0).Document.Plan.Revision) // the annotation says 4
	w.edit(func(cm *corev1.ConfigMap) {
		delete(cm.Data, "plan")
		cm.Annotations[plan.AnnotationRevision] = "900"
	})
	w.equal(int64(901), w.write(w.read(), newPlan("a"), 0).Document.Plan.Revision)
	for _, text := range []string{"{", "", `{"revision": 99999999999999999999}`, `{"revision": 7.5}`, `{"revision": "7"}`} {
		name := client.ObjectKey{Namespace: w.Namespace, Name: status.Name(w.Plan)}
		var cm corev1.ConfigMap
		w.must(w.client.Get(w.ctx, name, &cm))
		cm.Data = map[string]string{status.Key: text}
		w.must(w.client.Update(w.ctx, &cm))
		w.equal(int64(1), next())
	}
}

func replacesABrokenPlan(t *testing.T, w *world) {
	w.write(w.write(w.read(), newPlan("a"), 0), newPlan("b"), 0)
	for _, change := range []func(*corev1.ConfigMap){
		func(cm *corev1.ConfigMap) {
			cm.Data["plan"] = strings.Replace(cm.Data["plan"], "replica: 0", "replica: 1", 1)
		},
		func(cm *corev1.ConfigMap) { cm.Data["plan"] = "{" },
		func(cm *corev1.ConfigMap) { delete(cm.Data, "plan") },
		func(cm *corev1.ConfigMap) { cm.Annotations = nil },
	} {
		was := w.read().Document.Plan.Revision
		w.edit(change)
		w.equal((*plan.Plan)(nil), w.read().Document.Plan)
		w.equal(revised(newPlan("b"), was+1), *w.write(w.read(), newPlan("b"), 0).Document.Plan)
	}
	w.equal(revised(newPlan("b"), 6), *w.read().Document.Plan)
}

func goesAboveABackup(t *testing.T, w *world) {
	first := w.write(w.read(), newPlan("a"), 0)
	backup := w.stored()
	w.write(w.write(first, newPlan("b"), 0), newPlan("c"), 0)
	w.edit(func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = backup.Data, backup.Annotations })
	w.equal(revised(newPlan("a"), 1), *w.read().Document.Plan)
	w.equal(revised(newPlan("c"), 4), *w.write(w.read(), newPlan("c"), 3).Document.Plan)
	w.edit(func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = backup.Data, backup.Annotations })
	w.equal(revised(newPlan("a"), 5), *w.write(w.read(), newPlan("a"), 4).Document.Plan)
}

func countsOverForgedRevisions(t *testing.T, w *world) {
	forge := func(revision string) {
		w.edit(func(cm *corev1.ConfigMap) { cm.Annotations[plan.AnnotationRevision] = revision })
	}
	next := func(name string) int64 {
		return w.write(w.read(), newPlan(name), 0).Document.Plan.Revision
	}
	w.write(w.read(), newPlan("a"), 0)
	forge("900")
	w.equal(int64(2), next("x")) // beside our own plan an annotation says nothing
	w.edit(func(cm *corev1.ConfigMap) { delete(cm.Data, "plan") })
	forge("900")
	w.equal(int64(901), next("y"))
	for _, forged := range []string{"1", "-7", "abc", fmt.Sprint(int64(math.MaxInt64)), "99999999999999999999999"} {
		was := w.read().Document.Plan.Revision
		forge(forged)
		w.equal(was+1, next("z"+fmt.Sprint(was)))
	}
	forgePlan := func(revision int64) {
		w.edit(func(cm *corev1.ConfigMap) {
			_, rest, _ := strings.Cut(cm.Data["plan"], "revision: ")
			_, rest, _ = strings.Cut(rest, "\n")
			cm.Data["plan"] = fmt.Sprintf("apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nrevision: %d\n%s", revision, rest)
			cm.Annotations[plan.AnnotationDigest] = plan.Digest(cm.Data["plan"])
		})
	}
	was := w.read().Document.Plan.Revision
	forgePlan(was + 1_000_000)
	w.equal((*plan.Plan)(nil), w.read().Document.Plan)
	w.equal(true, errors.Is(w.read().Document.PlanErr, store.ErrForeign))
	// Beyond the jump nothing counts, so that revisions never come to their end.
	for i, forged := range []int64{plan.MaxRevision, plan.MaxRevision + 1, math.MaxInt64, 0, -1} {
		forgePlan(forged)
		w.equal((*plan.Plan)(nil), w.read().Document.Plan)
		w.equal(was+int64(i)+1, w.write(w.read(), newPlan(fmt.Sprint("f", i)), was+int64(i)).Document.Plan.Revision)
	}
	was = w.read().Document.Plan.Revision
	forgePlan(was + 5000)
	w.equal(revised(newPlan("z"), was+5001), *w.write(w.read(), newPlan("z"), was).Document.Plan)
}

func noticesAChangedPlan(t *testing.T, w *world) {
	s := w.write(w.read(), newPlan("a"), 0)
	w.Client = interceptor.NewClient(w.client, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		err := c.Patch(ctx, o, p, opts...)
		o.(*corev1.ConfigMap).Data["plan"] = "put back by a webhook"
		return err
	}})
	if _, err := w.WritePlan(w.ctx, s, newPlan("b"), 0, meta); !errors.Is(err, store.ErrNotKept) {
		t.Errorf("got %v, want %v", err, store.ErrNotKept)
	}
}

// takesOutWhatStandsInTheWrongHalf: a key stands in data or in binaryData, so that somebody who makes the ConfigMaps first
// could keep the planner out of them.
func takesOutWhatStandsInTheWrongHalf(t *testing.T, w *world) {
	w.must(w.client.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Plan}, BinaryData: map[string][]byte{"plan": []byte("x"), "photo": {1}}}))
	w.equal(int64(1), w.write(w.read(), newPlan("a"), 0).Document.Plan.Revision)
	w.equal(map[string][]byte{"photo": {1}}, w.stored().BinaryData)
	w.must(w.client.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.History},
		Data: map[string]string{"macs.json": "x", "votes": "x", "notes": strings.Repeat("x", 900<<10)}}))
	h, _, err := w.ReadHistory(w.ctx)
	w.must(err)
	h.Parts = map[string][]byte{"votes": make([]byte, 200<<10)}
	_, err = w.WriteHistory(w.ctx, h, meta.DecidedAt)
	w.must(err)
	back, problems, err := w.ReadHistory(w.ctx)
	w.must(err)
	w.equal(200<<10, len(back.Parts["votes"]))
	w.equal([]string(nil), problems, cmpopts.EquateEmpty())
	w.equal(map[string]string{"savedAt": "2026-08-01T12:00:00Z"}, w.history().Data)
}

func namesWhatTakesTheRoom(t *testing.T, w *world) {
	w.write(w.read(), newPlan("a"), 0)
	for what, fill := range map[string]struct {
		by   func(*corev1.ConfigMap)
		says string
	}{
		"another key": {func(cm *corev1.ConfigMap) { cm.Data["notes"] = strings.Repeat("x", 1<<20-len(cm.Data["plan"])-40) },
			"the ConfigMap has no room left: data.notes takes 1024 KiB of it: delete that"},
		"an annotation": {func(cm *corev1.ConfigMap) { cm.Annotations["example.org/x"] = strings.Repeat("x", 256<<10-700) },
			"the ConfigMap has no room left: annotation example.org/x takes 256 KiB of it: delete that"},
		"a reason of people's": {func(cm *corev1.ConfigMap) {
			cm.Annotations[plan.AnnotationPausedReason] = strings.Repeat("x", 256<<10-700)
		},
			"the ConfigMap has no room left: annotation ballast.argoproj.io/paused-reason takes 256 KiB of it: delete that"},
	} {
		w.edit(fill.by)
		more := meta
		more.Reason = strings.Repeat("a reason ", 100)
		_, err := w.WritePlan(w.ctx, w.read(), newPlan("a", "one-more-cluster-that-takes-some-forty-letters"), 0, more)
		if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), fill.says) {
			t.Errorf("%s: %.300v", what, err)
		}
		w.edit(func(cm *corev1.ConfigMap) {
			delete(cm.Data, "notes")
			delete(cm.Annotations, "example.org/x")
			delete(cm.Annotations, plan.AnnotationPausedReason)
		})
	}
	w.equal(int64(2), w.write(w.read(), newPlan("a", "b"), 0).Document.Plan.Revision)
}

func namesAnImmutableConfigMap(t *testing.T, w *world) {
	s := w.write(w.read(), newPlan("a"), 0)
	h, err := w.WriteHistory(w.ctx, store.History{}.WithPlan(s), at)
	w.must(err)
	w.equal(false, s.Immutable() || h.Immutable())
	w.edit(func(cm *corev1.ConfigMap) { cm.Immutable = ptr.To(true) })
	var history corev1.ConfigMap
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.History}, &history))
	history.Immutable = ptr.To(true)
	w.must(w.client.Update(w.ctx, &history))
	s = w.read()
	h, _, err = w.ReadHistory(w.ctx)
	w.must(err)
	w.equal(true, s.Immutable() && h.Immutable())
	for name, write := range map[string]func() error{
		"plan":    func() error { _, err := w.WritePlan(w.ctx, s, newPlan("b"), 0, meta); return err },
		"history": func() error { _, err := w.WriteHistory(w.ctx, h, at.Add(time.Minute)); return err },
	} {
		err := write()
		w.equal(true, errors.Is(err, store.ErrImmutable))
		w.equal(fmt.Sprintf("writing ConfigMap %q in %q: the ConfigMap is immutable: delete it, and ballast makes it anew", "ballast-"+name, w.Namespace), fmt.Sprint(err))
	}
	stage := "noted"
	_, err = w.Annotate(w.ctx, s, map[string]*string{"example.org/stage": &stage}) // which may be changed still
	w.must(err)
	w.must(w.client.Delete(w.ctx, w.stored()))
	w.equal(revised(newPlan("b"), 2), *w.write(w.read(), newPlan("b"), 1).Document.Plan)
	w.equal(false, w.read().Immutable())
}

func refusesAPlanThatCannotBe(t *testing.T, w *world) {
	s := w.write(w.read(), newPlan("a"), 0)
	p := newPlan("b")
	p.MaxReplicas = 0
	_, err := w.WritePlan(w.ctx, s, p, 0, meta)
	w.equal("encoding plan revision 2: maxReplicas: 0 is not between 1 and 1000000", fmt.Sprint(err))
	w.equal(revised(newPlan("a"), 1), *w.read().Document.Plan)
}

func keepsTheHistory(t *testing.T, w *world) {
	none, problems, err := w.ReadHistory(w.ctx)
	w.must(err)
	w.equal(0, len(problems))
	w.equal(store.History{}, none, cmpopts.IgnoreUnexported(store.History{}, history.Content{}))
	s := w.write(w.read(), newPlan("a"), 0)
	h := none.WithPlan(s)
	h.Parts = map[string][]byte{"votes": {1, 2}, "fleet.json.gz": {3}}
	h, err = w.WriteHistory(w.ctx, h, at)
	w.must(err)
	h = h.WithPlan(w.write(s, newPlan("b"), 0))
	h.Parts = map[string][]byte{"votes": {9}}
	h, err = w.WriteHistory(w.ctx, h, at.Add(time.Minute))
	w.must(err)
	got, problems, err := w.ReadHistory(w.ctx)
	w.must(err)
	w.equal([]string(nil), problems)
	text := func(p plan.Plan) string {
		text, err := codec.Encode(p)
		w.must(err)
		return text
	}
	w.equal(store.History{Content: history.Content{
		Plans: []history.Record{{Revision: 2, Text: text(revised(newPlan("b"), 2)), Meta: meta}, {Revision: 1, Text: text(newPlan("a")), Meta: meta, Until: meta.DecidedAt}}, Parts: map[string][]byte{"votes": {9}}, SavedAt: at.Add(time.Minute),
	}}, got, cmpopts.IgnoreUnexported(store.History{}, history.Content{}))
	w.equal(h, got, cmpopts.IgnoreUnexported(store.History{}, history.Content{}))
	w.equal(int64(2), got.Floor())
}

func losesHistoryRaces(t *testing.T, w *world) {
	first, err := w.WriteHistory(w.ctx, store.History{Content: history.Content{Parts: map[string][]byte{"votes": {1}}}}, at)
	w.must(err)
	_, err = w.WriteHistory(w.ctx, first, at.Add(time.Minute))
	w.must(err)
	_, stale := w.WriteHistory(w.ctx, first, at.Add(2*time.Minute))
	_, unread := w.WriteHistory(w.ctx, store.History{}, at.Add(2*time.Minute))
	for name, err := range map[string]error{"stale": stale, "unread": unread} {
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("a %s history: %v, want %v", name, err, store.ErrConflict)
		}
	}
	got, _, err := w.ReadHistory(w.ctx)
	w.must(err)
	w.equal(at.Add(time.Minute), got.SavedAt)
}

func passesErrorsOn(t *testing.T, w *world) {
	s := w.read()
	w.Namespace = "not-there"
	_, err := w.WritePlan(w.ctx, s, newPlan("a"), 0, meta)
	w.equal(`writing ConfigMap "ballast-plan" in "not-there": namespaces "not-there" not found`, fmt.Sprint(err))
	stopped, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.Read(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("reading: %v, want %v", err, context.Canceled)
	}
	if _, _, err := w.ReadHistory(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("reading the history: %v, want %v", err, context.Canceled)
	}
}
