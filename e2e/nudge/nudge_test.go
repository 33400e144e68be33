package nudge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/apiserver"

	"ballast/planner/apply"
	"ballast/planner/nudge"
	"ballast/planner/paged"
)

const eu, us = "https://eu.example", "https://us.example:6443"

// TestNudger runs every case against one real API server, each with its own namespace of Argo CD's.
func TestNudger(t *testing.T) {
	config := apiserver.Start(t)
	t.Run("without the kind nobody needs a nudge", func(t *testing.T) {
		w := newWorld(t, config)
		w.watch("*")
		w.equal("", w.nudge(eu, "eu"))
	})
	addKind(t, config)
	cases := map[string]func(*testing.T, *world){
		"one Application is refreshed, and nothing else of it changes":         refreshesOne,
		"a destination by name is as good":                                     refreshesByName,
		"one with thousands of managers is passed over":                        passesOverACrowd,
		"one whose annotations are full is passed over":                        passesOverWhatIsFull,
		"a cluster without an Application needs no nudge":                      needsNone,
		"a repeated nudge asks again":                                          asksAgain,
		"a request that is pending is made anew as it was":                     renewsPending,
		"what is true now counts, not what was listed":                         readsBeforeItWrites,
		"an Application that appears after the listing is found":               looksAnew,
		"a wave takes one listing":                                             listsOnce,
		"many Applications come in pages":                                      listsInPages,
		"a listing that was forgotten on its way begins anew":                  beginsAnew,
		"Applications as large as can be are read few at a time":               readsFatOnes,
		"other namespaces count if Argo CD looks there":                        findsInWatchedNamespaces,
		"a namespace by name is listed alone":                                  listsNamedNamespaces,
		"the controller's command line goes before the ConfigMap":              obeysTheCommandLine,
		"an entry that cannot be read is reported once":                        reportsUnread,
		"without the component the error says what is missing":                 saysWhatIsForbidden,
		"the component's rights are enough":                                    worksWithTheComponent,
		"with rights in Argo CD's namespace only, that one serves":             fallsBackToItsOwn,
		"with rights in a named namespace, it is no problem":                   usesARoleInANamedNamespace,
		"the other component's rights are enough for all namespaces":           worksWithTheOtherComponent,
		"what may be listed but not patched is passed over":                    passesOverWhatItMayNotPatch,
		"an API server that refuses is an error, and is asked again next time": passesErrorsOn,
		"whoever waits for a listing can leave":                                leavesTheQueue,
		"Applications are counted as they were at a time that is told":         countsWithItsTime,
		"two Secrets of one server have the Applications of both":              countsTheMost,
		"where an expression cannot be read, none is not known to be none":     doubtsWhatNobodyRead,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, newWorld(t, config)) })
	}
}

// passesOverACrowd: the API server would merge all of them with the write, for half a minute.
func passesOverACrowd(t *testing.T, w *world) {
	crowded := w.application(w.own, "a", eu, nil)
	crowded.SetManagedFields(apiserver.Crowd("argoproj.io/v1alpha1", `{"f:spec":{"f:project":{}}}`, 100))
	w.must(w.client.Update(t.Context(), crowded))
	b := w.application(w.own, "b", eu, nil)
	w.equal(w.own+"/b", w.nudge(eu, ""))
	w.equal("", w.refresh(crowded))
	w.must(w.client.Delete(t.Context(), b))
	_, err := w.newNudger("").Nudge(t.Context(), w.own, "cluster-eu", eu, "")
	if !errors.Is(err, nudge.ErrCrowded) {
		t.Errorf("where it is the only one: %v", err)
	}
}

// passesOverWhatIsFull: the API server takes 256 KiB of annotations, and no byte more.
func passesOverWhatIsFull(t *testing.T, w *world) {
	full := w.application(w.own, "a", eu, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"theirs": strings.Repeat("x", 256<<10-len("theirs"))})
	})
	b := w.application(w.own, "b", eu, nil)
	w.equal(w.own+"/b", w.nudge(eu, ""))
	w.equal([]string{"", "normal"}, []string{w.refresh(full), w.refresh(b)})
	w.must(w.client.Delete(t.Context(), b))
	if _, err := w.newNudger("").Nudge(t.Context(), w.own, "cluster-eu", eu, ""); !apierrors.IsInvalid(err) {
		t.Errorf("where it is the only one: %v", err)
	}
}

func refreshesOne(t *testing.T, w *world) {
	b := w.application(w.own, "b", eu, nil)
	a := w.application(w.own, "a", eu, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"theirs": "kept"})
		u.Object["status"] = map[string]any{"sync": map[string]any{"status": "Synced"}}
	})
	other := w.application(w.own, "0", us, nil)
	before := w.read(a)
	w.equal(w.own+"/a", w.nudge(eu, ""))
	after := w.read(a)
	w.equal(map[string]string{"theirs": "kept", annotationRefresh: "normal"}, after.GetAnnotations())
	w.equal([]string{"", ""}, []string{w.refresh(b), w.refresh(other)})
	i := slices.IndexFunc(after.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "ballast-planner" })
	w.equal(`{"f:metadata":{"f:annotations":{"f:argocd.argoproj.io/refresh":{}}}}`, after.GetManagedFields()[i].FieldsV1.GetRawString())
	for _, u := range []*unstructured.Unstructured{before, after} {
		u.SetAnnotations(nil)
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
	}
	w.equal(before.Object, after.Object)
}

func countsWithItsTime(t *testing.T, w *world) {
	a := w.application(w.own, "a", eu, nil)
	count := func(age time.Duration) (int, time.Duration) {
		t.Helper()
		apps, at, err := w.nudger.Count(w.ctx, w.own, []nudge.Destination{{Server: eu, Name: "eu"}}, age)
		w.must(err)
		return apps[eu], at.Sub(start)
	}
	is := func(apps int, at time.Duration) func(int, time.Duration) {
		return func(gotApps int, gotAt time.Duration) {
			t.Helper()
			w.equal([]any{apps, at}, []any{gotApps, gotAt})
		}
	}
	is(1, 0)(count(10 * time.Minute))
	w.must(w.client.Delete(w.ctx, a))
	w.clock.SetTime(start.Add(3 * time.Minute))
	is(1, 0)(count(10 * time.Minute))
	is(0, 3*time.Minute)(count(2 * time.Minute))
	is(0, 3*time.Minute)(count(10 * time.Minute))
}

// doubtsWhatNobodyRead: a cluster's Applications may all be in a namespace that only the expression names.
func doubtsWhatNobodyRead(t *testing.T, w *world) {
	w.application(w.own, "a", us, nil)
	counts := func() map[string]int {
		t.Helper()
		apps, _, err := w.nudger.Count(w.ctx, w.own, []nudge.Destination{{Server: eu}, {Server: us}}, time.Minute)
		w.must(err)
		return apps
	}
	w.watch("/a(?!b/,team")
	w.equal(map[string]int{eu: nudge.Unknown, us: 1}, counts())
	w.watch("team")
	w.clock.SetTime(start.Add(time.Hour))
	w.equal(map[string]int{eu: 0, us: 1}, counts())
}

func countsTheMost(t *testing.T, w *world) {
	w.application(w.own, "a", "prod-eu", nil)
	for _, names := range [][]string{{"prod-eu", "twin"}, {"twin", "prod-eu"}} {
		apps, _, err := w.nudger.Count(w.ctx, w.own, []nudge.Destination{{Server: eu, Name: names[0]}, {Server: eu + "/", Name: names[1]}}, time.Minute)
		w.must(err)
		w.equal(map[string]int{eu: 1}, apps)
	}
}

func refreshesByName(t *testing.T, w *world) {
	a := w.application(w.own, "a", "prod-eu", nil)
	w.application(w.own, "b", eu, nil)
	w.equal(w.own+"/a", w.nudge(eu, "prod-eu"))
	w.equal("normal", w.refresh(a))
}

func needsNone(t *testing.T, w *world) {
	w.application(w.own, "a", us, nil)
	w.application(w.own, "b", eu, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"argocd.argoproj.io/skip-reconcile": "true"})
	})
	w.equal("", w.nudge(eu, "eu"))
	w.equal("", w.nudge(eu, "eu"))
	w.equal([]int{1, 0}, []int{w.lists, w.writes})
}

func asksAgain(t *testing.T, w *world) {
	a := w.application(w.own, "a", eu, nil)
	for range 3 {
		w.equal(w.own+"/a", w.nudge(eu, ""))
		w.equal("normal", w.refresh(a))
		w.served(a)
		w.clock.SetTime(w.clock.Now().Add(5 * time.Second))
	}
	w.equal(1, w.lists)
}

// renewsPending: to set what is set is no event, and the new owner would not be woken.
func renewsPending(t *testing.T, w *world) {
	a := w.application(w.own, "a", eu, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotationRefresh: "hard"}) })
	b := w.application(w.own, "b", us, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotationRefresh: ""}) })
	version := w.read(a).GetResourceVersion()
	w.equal(w.own+"/a", w.nudge(eu, ""))
	w.equal("hard", w.refresh(a))
	if w.read(a).GetResourceVersion() == version {
		t.Error("the write was none")
	}
	w.equal(w.own+"/b", w.nudge(us, ""))
	w.equal("normal", w.refresh(b))
}

func readsBeforeItWrites(t *testing.T, w *world) {
	gone := w.application(w.own, "a-gone", eu, nil)
	moved := w.application(w.own, "b-moved", eu, nil)
	pending := w.application(w.own, "c-pending", eu, nil)
	well := w.application(w.own, "d-well", eu, nil)
	w.equal("", w.nudge(us, "")) // lists
	w.must(w.client.Delete(w.ctx, gone))
	w.must(w.client.Patch(w.ctx, moved, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"destination":{"server":"`+us+`"}}}`))))
	w.must(w.client.Patch(w.ctx, pending, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotationRefresh+`":"normal"}}}`))))
	w.equal(w.own+"/d-well", w.nudge(eu, ""))
	w.equal([]string{"", "normal"}, []string{w.refresh(moved), w.refresh(well)})
	w.equal([]int{1, 1}, []int{w.lists, w.writes})
}

func looksAnew(t *testing.T, w *world) {
	w.equal("", w.nudge(eu, ""))
	w.application(w.own, "a", eu, nil)
	w.clock.SetTime(start.Add(fresh))
	w.equal("", w.nudge(eu, ""))
	w.clock.SetTime(start.Add(fresh + time.Second))
	w.equal(w.own+"/a", w.nudge(eu, ""))
	w.equal(2, w.lists)
	w.clock.SetTime(start.Add(fresh + keep))
	w.equal(w.own+"/a", w.nudge(eu, ""))
	w.equal(2, w.lists)
	w.clock.SetTime(start) // a clock that was put back makes no listing younger
	w.equal(w.own+"/a", w.nudge(eu, ""))
	w.equal(3, w.lists)
}

func listsOnce(t *testing.T, w *world) {
	const clusters = 20
	for i := range clusters {
		w.application(w.own, fmt.Sprintf("app-%02d", i), fmt.Sprintf("https://%02d", i), nil)
	}
	got := make([]string, clusters)
	var all errgroup.Group
	for i := range clusters {
		all.Go(func() (err error) {
			got[i], err = w.nudger.Nudge(w.ctx, w.own, "cluster", fmt.Sprintf("https://%02d", i), "")
			return err
		})
	}
	w.must(all.Wait())
	var want []string
	for i := range clusters {
		want = append(want, fmt.Sprintf("%s/app-%02d", w.own, i))
	}
	w.equal(want, got)
	w.equal([]int{1, clusters}, []int{w.lists, w.writes})
}

func listsInPages(t *testing.T, w *world) {
	for i := range paged.First + 20 {
		w.application(w.own, fmt.Sprintf("app-%03d", i), us, nil)
	}
	w.application(w.own, "zz-last", eu, nil)
	w.equal(w.own+"/zz-last", w.nudge(eu, ""))
	w.equal(2, w.lists)
}

// readsFatOnes: 30 of 1.4 MB each are 42 MB, of which the first page would have all.
func readsFatOnes(t *testing.T, w *world) {
	const fat = 30
	for i := range fat {
		w.application(w.own, fmt.Sprintf("app-%03d", i), us, func(u *unstructured.Unstructured) {
			var conditions []any
			for range 28_000 {
				conditions = append(conditions, map[string]any{"message": "", "type": "aa", "note": "xxxxxxx"})
			}
			u.Object["status"] = map[string]any{"conditions": conditions}
		})
	}
	w.application(w.own, "zz-last", eu, nil)
	w.equal(w.own+"/zz-last", w.nudge(eu, ""))
	w.equal(fat, w.counted(us))
	if w.lists < 10 || w.lists > 16 {
		t.Errorf("%d requests, want two that are too large, one of one, and ten of three or so", w.lists)
	}
}

func beginsAnew(t *testing.T, w *world) {
	for i := range paged.First {
		w.application(w.own, fmt.Sprintf("app-%03d", i), us, nil)
	}
	w.application(w.own, "zz-last", eu, nil)
	forgotten := false
	w.nudger.Reader = interceptor.NewClient(w.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		var o client.ListOptions
		if o.ApplyOptions(opts); o.Continue != "" && !forgotten {
			forgotten = true
			return expired()
		}
		return c.List(ctx, l, opts...)
	}})
	w.equal(w.own+"/zz-last", w.nudge(eu, ""))
	w.equal(paged.First, w.counted(us))
}

func findsInWatchedNamespaces(t *testing.T, w *world) {
	team, stranger := w.namespace("team-"), w.namespace("stranger-")
	a := w.application(team, "a", eu, nil)
	b := w.application(stranger, "a", us, nil)
	w.watch(team[:len(team)-1] + "?")
	w.equal([]string{team + "/a", ""}, []string{w.nudge(eu, ""), w.nudge(us, "")})
	w.equal([]string{"normal", ""}, []string{w.refresh(a), w.refresh(b)})
}

func listsNamedNamespaces(t *testing.T, w *world) {
	team := w.namespace("team-")
	w.application(team, "a", eu, nil)
	w.watch(team + ", no-such-namespace")
	w.equal(team+"/a", w.nudge(eu, ""))
	w.equal(3, w.lists)
	w.equal([]nudge.ListingReason(nil), w.reasons())
}

func obeysTheCommandLine(t *testing.T, w *world) {
	team, stranger := w.namespace("team-"), w.namespace("stranger-")
	w.application(team, "a", eu, nil)
	w.application(stranger, "a", us, nil)
	w.watch(stranger)
	setting, set, away := team, true, error(nil)
	w.nudger.Own = func(context.Context) (string, bool, error) { return setting, set, away }
	w.equal([]string{team + "/a", ""}, []string{w.nudge(eu, ""), w.nudge(us, "")})
	setting = "" // Argo CD's own namespace and no other
	w.clock.SetTime(start.Add(time.Hour))
	w.equal([]string{"", ""}, []string{w.nudge(eu, ""), w.nudge(us, "")})
	set = false
	w.clock.SetTime(start.Add(2 * time.Hour))
	w.equal([]string{"", stranger + "/a"}, []string{w.nudge(eu, ""), w.nudge(us, "")})
	away = errors.New("no workload")
	w.clock.SetTime(start.Add(3 * time.Hour))
	if _, err := w.nudger.Nudge(w.ctx, w.own, "prod-eu", eu, ""); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
}

func reportsUnread(t *testing.T, w *world) {
	w.watch("/a(?!b/,team")
	for i := range 3 {
		w.clock.SetTime(start.Add(time.Duration(i) * time.Minute))
		w.equal("", w.nudge(eu, ""))
	}
	w.equal([]nudge.ListingProblem{{Reason: nudge.PatternUnread, Message: "no Application is looked for in the namespaces of /a(?!b/ (Argo CD's setting application.namespaces): error parsing regexp: missing closing ) in `a(?!b`; name them, or use globs"}}, w.problems)
	w.watch("team")
	w.clock.SetTime(start.Add(time.Hour))
	w.equal("", w.nudge(eu, ""))
	w.watch("/a(?!b/")
	w.clock.SetTime(start.Add(2 * time.Hour))
	w.equal("", w.nudge(eu, ""))
	w.equal([]nudge.ListingReason{nudge.PatternUnread, nudge.PatternUnread}, w.reasons())
}

func passesErrorsOn(t *testing.T, w *world) {
	w.application(w.own, "a", eu, nil)
	away := errors.New("the API server is away")
	refuse := map[string]error{"list": away}
	funcs := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return unless(refuse["list"], func() error { return c.List(ctx, l, opts...) })
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return unless(refuse["get "+o.GetObjectKind().GroupVersionKind().Kind], func() error { return c.Get(ctx, key, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return unless(refuse["patch"], func() error { return c.Patch(ctx, o, p, opts...) })
		},
	}
	refusing := interceptor.NewClient(w.client, funcs)
	w.nudger.Reader, w.nudger.Client = refusing, refusing
	for _, c := range []struct{ refuse, want string }{
		{"list", `nudging the owner of cluster "cluster": listing Applications in "` + w.own + `": the API server is away`},
		{"get ", `nudging the owner of cluster "cluster": reading ConfigMap "argocd-cmd-params-cm" in "` + w.own + `": the API server is away`},
		{"get Application", `nudging the owner of cluster "cluster": reading Application "a" in "` + w.own + `": the API server is away`},
		{"patch", `nudging the owner of cluster "cluster": refreshing Application "a" in "` + w.own + `": the API server is away`},
	} {
		refuse = map[string]error{c.refuse: away}
		application, err := w.nudger.Nudge(w.ctx, w.own, "cluster", eu, "")
		if application != "" || !errors.Is(err, away) || err.Error() != c.want {
			t.Errorf("%q, %v, want %s", application, err, c.want)
		}
	}
	refuse = nil
	w.equal(w.own+"/a", w.nudge(eu, ""))
}

func unless(err error, otherwise func() error) error {
	if err != nil {
		return err
	}
	return otherwise()
}

func leavesTheQueue(t *testing.T, w *world) {
	w.application(w.own, "a", eu, nil)
	listing, release := make(chan struct{}), make(chan struct{})
	w.nudger.Reader = interceptor.NewClient(w.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		close(listing)
		<-release
		return c.List(ctx, l, opts...)
	}})
	var first errgroup.Group
	first.Go(func() error {
		application, err := w.nudger.Nudge(w.ctx, w.own, "cluster", eu, "")
		if application != w.own+"/a" {
			return fmt.Errorf("%q, %w", application, err)
		}
		return err
	})
	<-listing
	impatient, leave := context.WithCancelCause(w.ctx)
	reason := errors.New("the leader's lease is lost")
	leave(reason)
	if _, err := w.nudger.Nudge(impatient, w.own, "cluster", eu, ""); !errors.Is(err, reason) || !strings.Contains(err.Error(), "waiting for a listing of Applications") {
		t.Errorf("%v", err)
	}
	close(release)
	w.must(first.Wait())
}

var _ apply.Nudger = (*nudge.Nudger)(nil)
