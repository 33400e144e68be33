package evacuate

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/e2e/site"
	"ballast/planner/plan"
)

func evacuates(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), fixture.CordonAnnotation("2=2126-11-20T17:00:00Z,1=2026-01-01T00:00:00Z"))
	s.Writes(t, 0, func() {
		out, _ := works(t, s.Alice, "", "evacuate", "0", "--dry-run")
		fixture.Holds(t, out, "Replica 0 would take nothing", "prod-eu", "Nothing was changed.")
	})
	s.Stands(t, nil)
	before := time.Now().Truncate(time.Second)
	s.Writes(t, 1, func() { works(t, s.Alice, "", "evacuate", "0", "--for", "90m") })
	cordons, err := steer.StateOf(s.Stored(t)).Cordons(time.Now())
	fixture.MustDo(t, err)
	if len(cordons) != 2 || cordons[0].Until.Before(before.Add(90*time.Minute)) || cordons[0].Until.After(time.Now().Add(90*time.Minute)) {
		t.Fatalf("cordons are %v", cordons)
	}
	s.Stands(t, fixture.CordonAnnotation("0="+cordons[0].Until.Format(time.RFC3339)+",2=2126-11-20T17:00:00Z"))
	s.Writes(t, 0, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "evacuate", "0")), "It was cordoned so before")
	})
	s.Writes(t, 0, func() {
		if _, _, failure := run(t, s.Alice, "", "evacuate", "1"); !strings.HasPrefix(failure, "REPLICA: 1 is the last one that is not cordoned") {
			t.Errorf("the last replica: %q", failure)
		}
	})
	fixture.Holds(t, fixture.First(works(t, s.Alice, "", "evacuate")), "0         "+cordons[0].Until.Format(time.RFC3339), "2         2126-11-20T17:00:00Z")
	s.Writes(t, 1, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "evacuate", "0", "--off")), "Replica 0 is no longer cordoned")
	})
	s.Stands(t, fixture.CordonAnnotation("2=2126-11-20T17:00:00Z"))
	s.Writes(t, 0, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "evacuate", "0", "--off")), "Replica 0 was not cordoned")
	})
	s.Writes(t, 1, func() { works(t, s.Alice, "", "evacuate", "2", "--off") })
	s.Stands(t, fixture.CordonAnnotation(""))
}

func showsWhatStays(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), nil)
	yes := true
	s.Has(t, "dev", "2", func(secret *corev1.Secret) { secret.Immutable = &yes })
	s.Has(t, "lab", "2", func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationPin: "2"} })
	s.Has(t, "own", "2", func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
	s.Has(t, "prod-ap", "2", func(*corev1.Secret) {})
	out, notes := works(t, s.Alice, "", "evacuate", "2", "--dry-run")
	if fixture.Holds(t, out, "1 cluster leaves it", "prod-ap   0.2    2", `"dev" stays`, "immutable", `"lab" stays`, `"stage-eu" stays`,
		`"own" stays on replica 2, for its Secret is immutable, unmanaged or not of discover.selector`); notes != "" {
		t.Errorf("it notes %q", notes)
	}
}

// leaves is the plan of steered without what replica 2 has.
func leaves(p *plan.Plan) {
	for _, name := range []string{"dev", "lab", "prod-ap", "stage-eu"} {
		delete(p.Clusters, name)
	}
}

// endsWithThree: an opted-out Secret and one that discover.selector leaves out have no row, and their clusters work all the same.
func endsWithThree(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(leaves), nil)
	optOut := func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} }
	s.Has(t, "elsewhere", "1", optOut)
	other := s.Has(t, "other", "2", func(*corev1.Secret) {})
	s.Makes(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-config"}, Data: map[string]string{"config.yaml": "apiVersion: ballast.argoproj.io/v1alpha1\n" +
		"kind: PlannerConfig\ndiscover:\n  selector:\n    matchLabels: {argocd.argoproj.io/secret-type: cluster, team: ours}\n"}})
	lab := s.Has(t, "lab", "2", optOut)
	ends := func(want string, code int) {
		t.Helper()
		o, notes := patiently(s), &bytes.Buffer{}
		o.Config = "ballast-config"
		err := o.run(t.Context(), "2", io.Discard, notes)
		if err == nil || err.Error() != want || say.ExitCode(err) != code {
			t.Errorf("it ends with %v\nwant %s", err, want)
		}
		if strings.Contains(notes.String(), "is empty") {
			t.Errorf("told %q", notes)
		}
	}
	const mend = ": create it anew, or take the annotation ballast.argoproj.io/unmanaged off, or let the selector have it; then evacuate it again"
	ends("replica 2 is not empty: 2 clusters stay there because the Secret is immutable, unmanaged or not of discover.selector (lab, other)"+mend, 3)

	// A Secret that comes while it waits counts, and one that goes does not.
	s.Plans(t, fixture.Steered(nil), nil)
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- patiently(s).run(t.Context(), "2", io.Discard, w) }()
	w.next(t)
	fixture.MustDo(t, s.Planner.Delete(t.Context(), lab.DeepCopy()))
	s.Has(t, "late", "2", optOut)
	lab.ResourceVersion, lab.UID, lab.Data["shard"] = "", "", []byte("1")
	fixture.MustDo(t, s.Planner.Create(t.Context(), lab))
	metav1.SetMetaDataAnnotation(&other.ObjectMeta, plan.AnnotationPin, "2")
	fixture.MustDo(t, s.Planner.Update(t.Context(), other))
	s.GoesOn(t, fixture.Revision(18, func(p *plan.Plan) { leaves(p); p.Clusters["other"] = plan.Row{Replica: 2, Pinned: true} }))
	err := <-ended
	const want = `replica 2 is not empty: 1 cluster stays there by a pin (other): take the pin out of data.pins of ConfigMap "ballast-plan", ` +
		"or the annotation ballast.argoproj.io/pin off the Secret, or pin to another replica; " +
		"1 cluster stays there because the Secret is immutable, unmanaged or not of discover.selector (late)" + mend
	if err == nil || err.Error() != want || say.ExitCode(err) != 3 {
		t.Errorf("it ends with %v\nwant %s", err, want)
	}

	// The cluster that Argo CD adds by itself is on replica 0.
	s.Plans(t, fixture.Steered(func(p *plan.Plan) { p.Clusters = nil }), nil)
	o := patiently(s)
	err = o.run(t.Context(), "0", io.Discard, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "replica 0 is not empty: 1 cluster stays there because it has no Secret (in-cluster)") || say.ExitCode(err) != 3 {
		t.Errorf("the in-cluster: it ends with %v", err)
	}
}

// endsWithOne: who may not list Secrets is not told that a replica is empty.
func endsWithOne(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(leaves), nil)
	s.Has(t, "lab", "2", func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
	mary := s.Granted("mary", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}})
	_, notes, failure := run(t, mary, "", "evacuate", "2", "--wait")
	const want = "no cluster of the plan is to leave replica 2 any more, and whether it is empty cannot be told: " +
		"not seen are the cluster Secrets and Argo CD's settings: list on secrets and get on configmaps is needed; then evacuate it again"
	if fixture.Holds(t, notes, "note: without the right to list Secrets"); failure != want || strings.Contains(notes, "is empty") {
		t.Errorf("it ends with %q\nwant %q\n%s", failure, want, notes)
	}
	nora := s.Granted("nora", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "patch"}})
	_, _, failure = run(t, nora, "", "evacuate", "2", "--wait")
	fixture.Holds(t, failure, "whether it is empty cannot be told: not seen are the workload's settings", "list on statefulsets or deployments is needed")
}

// told collects what a command tells while it runs.
type told struct{ lines chan string }

func (w told) Write(p []byte) (int, error) {
	for _, line := range strings.Split(strings.TrimSuffix(string(p), "\n"), "\n") {
		w.lines <- line
	}
	return len(p), nil
}

func (w told) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-w.lines:
		return line
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing more is told")
		return ""
	}
}

func patiently(s *fixture.Site) *options {
	return &options{Options: s.Connected(), keep: 2 * time.Hour, wait: true, timeout: time.Minute, poll: 10 * time.Millisecond}
}

func waitsForWaves(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), nil)
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- patiently(s).run(t.Context(), "2", io.Discard, w) }()
	moves := map[string]int{"dev": 0, "lab": 1}
	for _, step := range []struct {
		next plan.Plan
		want string
	}{
		{plan.Plan{}, "12:00:00  3 clusters to go, 0 on the way"},
		{fixture.Wave(18, 1, moves, moves), "12:00:00  1 cluster to go, 2 on the way; live, Moving, wave 1 of 2, 2 moves"},
		{fixture.Wave(19, 2, map[string]int{"dev": 0, "lab": 1, "prod-ap": 0}, map[string]int{"prod-ap": 0}), "12:00:00  0 clusters to go, 1 on the way; live, Moving, wave 2 of 2, 1 move"},
		{fixture.Wave(20, 0, map[string]int{"dev": 0, "lab": 1, "prod-ap": 0}, nil), "12:00:00  0 clusters to go, 0 on the way"},
	} {
		if step.next.Revision > 0 {
			s.GoesOn(t, step.next)
		}
		if got := w.next(t); got != step.want {
			t.Fatalf("told %q, want %q", got, step.want)
		}
	}
	stageEUStays(t, <-ended)
}

// stageEUStays: it is pinned, so that whoever waits must not take the replica for empty.
func stageEUStays(t *testing.T, err error) {
	t.Helper()
	const want = `replica 2 is not empty: 1 cluster stays there by a pin (stage-eu): take the pin out of data.pins of ConfigMap "ballast-plan", ` +
		"or the annotation ballast.argoproj.io/pin off the Secret, or pin to another replica; then evacuate it again"
	if err == nil || err.Error() != want || say.ExitCode(err) != 3 {
		t.Errorf("it ends with %v, want %s", err, want)
	}
}

func waitsItOut(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), fixture.CordonAnnotation("2=2126-11-20T17:00:00Z"))
	w, ended, broken := told{make(chan string, 100)}, make(chan error, 1), atomic.Bool{}
	m := &steer.PlanMap{Key: client.ObjectKey{Namespace: "argocd", Name: site.PlanConfigMap}, Client: interceptor.NewClient(s.Planner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if broken.Load() {
				return apierrors.NewServiceUnavailable("etcd has no leader")
			}
			return c.Get(ctx, key, o, opts...)
		}})}
	go func() { ended <- patiently(s).follow(t.Context(), m, 2, w) }()
	steps := []struct {
		happens func()
		want    string
	}{
		{func() {}, "12:00:00  3 clusters to go, 0 on the way"},
		{func() { broken.Store(true) }, `12:00:00  reading the plan ConfigMap "ballast-plan" in "argocd": etcd has no leader`},
		{func() { broken.Store(false) }, "12:00:00  3 clusters to go, 0 on the way"},
		{func() { s.Annotates(t, plan.AnnotationDigest, "0") }, "12:00:00  the plan cannot be read: the plan does not match its digest annotation; the planner mends it within a cycle, see `ballast status`"},
		{func() {
			s.GoesOn(t, fixture.Wave(18, 0, map[string]int{"dev": 0, "lab": 1, "prod-ap": 0, "stage-eu": 1}, nil))
		}, "12:00:00  0 clusters to go, 0 on the way"},
	}
	for _, step := range steps {
		step.happens()
		if got := w.next(t); got != step.want {
			t.Fatalf("told %q, want %q", got, step.want)
		}
	}
	stageEUStays(t, <-ended)
}

func waitsNoLonger(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationEnforcement: "off"})
	o, notes := patiently(s), &bytes.Buffer{}
	o.timeout = 5 * time.Second
	err := o.run(t.Context(), "2", io.Discard, notes)
	const want = "replica 2 is not empty after 5s: 3 clusters to go (dev, lab, prod-ap), 0 on the way; the evacuation goes on"
	if err == nil || err.Error() != want {
		t.Errorf("it ends with %v, want %s", err, want)
	}
	if got := notes.String(); got != "12:00:00  3 clusters to go, 0 on the way; it waits: enforcement is off (annotation ballast.argoproj.io/enforcement), and the planner moves nothing until that is removed\n" {
		t.Errorf("told %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- patiently(s).run(ctx, "2", io.Discard, w) }()
	w.next(t)
	cancel()
	if err := <-ended; err == nil || err.Error() != "interrupted; the evacuation goes on, and ballast evacuate 2 --off ends it" {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

func waitsForACordonOnly(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), nil)
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- patiently(s).run(t.Context(), "2", io.Discard, w) }()
	w.next(t)
	s.Annotates(t, plan.AnnotationCordon, "")
	const want = "the cordon of replica 2 was taken away or is over, with 3 clusters to go (dev, lab, prod-ap)"
	if err := <-ended; err == nil || err.Error() != want {
		t.Errorf("it ends with %v, want %s", err, want)
	}
}

func decidesAnew(t *testing.T, s *fixture.Site) {
	s.Makes(t, fixture.QuietWorld().Workload)
	s.Plans(t, fixture.Steered(nil), nil)
	m := s.Racing(t, 1, func() { s.Annotates(t, plan.AnnotationCordon, "0=2126-11-20T17:00:00Z") })
	o := patiently(s)
	o.until = fixture.Noon.Add(2 * time.Hour)
	if _, err := o.begin(t.Context(), m, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	s.Stands(t, fixture.CordonAnnotation("0=2126-11-20T17:00:00Z,1=2026-11-20T14:00:00Z"))
	s.Plans(t, fixture.Steered(nil), nil)
	m = s.Racing(t, 1, func() { s.Annotates(t, plan.AnnotationCordon, "0=2126-11-20T17:00:00Z,1=2126-11-20T17:00:00Z") })
	if _, err := o.begin(t.Context(), m, 2, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "REPLICA: 2 is the last one") {
		t.Errorf("the last replica, cordoned by a race: %v", err)
	}
	s.Stands(t, fixture.CordonAnnotation("0=2126-11-20T17:00:00Z,1=2126-11-20T17:00:00Z"))
}
