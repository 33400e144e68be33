package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/site"
	"ballast/planner/plan"
)

// TestSteeringOnARealAPIServer: each command's write is in the plan ConfigMap as it should be and nothing beside, and the
// shipped webhook's rule for the plan lets it pass.
func TestSteeringOnARealAPIServer(t *testing.T) {
	s := startSteerSite(t)
	for name, run := range map[string]func(*testing.T, *steerSite){
		"freeze says why and who, and ends without a trace":       freezes,
		"freeze leaves another one's freeze as it is":             leavesAFreeze,
		"resume shows a trip, asks, and clears it with a freeze":  resumes,
		"resume clears no trip that nobody saw":                   clearsNoNewTrip,
		"resume lifts no freeze that nobody saw":                  liftsNoNewFreeze,
		"evacuate writes a cordon beside others, and ends it":     evacuates,
		"evacuate shows what Secrets keep from moving":            showsWhatStays,
		"evacuate tells of each wave until the replica is empty":  waitsForWaves,
		"evacuate waits out what is wrong for a moment":           waitsItOut,
		"evacuate waits no longer than it may":                    waitsNoLonger,
		"evacuate waits no longer than the cordon":                waitsForACordonOnly,
		"evacuate calls no replica empty that still works":        endsWithThree,
		"evacuate calls no replica empty that it cannot see":      endsWithOne,
		"rollback lists the plans that are kept":                  listsPlans,
		"rollback shows the way back, asks, and asks the planner": rollsBack,
		"rollback asks for no plan that nobody saw":               rollsBackWhatWasSeen,
		"a lost race is decided anew":                             decidesAnew,
		"a race that is lost for ever is told":                    tellsOfLostRaces,
		"a write that is changed on its way is told":              tellsOfChangedWrites,
		"few rights do, and missing ones are named":               namesRights,
		"status shows what is under way, and names what it hides": showsWhatIsUnderWay,
		"without a plan there is nothing to steer":                needsAPlan,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}

// works runs a command that must not fail.
func works(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes string) {
	t.Helper()
	out, notes, failure := steer(t, kubeconfig, stdin, args...)
	if failure != "" {
		t.Fatalf("ballast %s: %s", strings.Join(args, " "), failure)
	}
	return out, notes
}

func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it says\n%s\nwithout %q", text, part)
		}
	}
}

func freezes(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	s.writes(t, 1, func() {
		out, _ := works(t, s.alice, "", "freeze", "--reason", "a sale")
		holds(t, out, "Frozen: the planner decides nothing by itself", "By         alice\n", "Reason     a sale\n", "revision 17 goes on being enforced")
	})
	s.stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale", plan.AnnotationPausedBy: "alice"})
	s.writes(t, 1, func() {
		out, _ := works(t, s.alice, "", "freeze", "--off", "-o", "json")
		var got frozen
		mustDo(t, json.Unmarshal([]byte(out), &got))
		if diff := cmp.Diff(frozen{Revision: 17, Mode: plan.Enforce, Changed: true}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	s.stands(t, nil)
	s.writes(t, 0, func() { works(t, s.alice, "", "freeze", "--off") })
}

func leavesAFreeze(t *testing.T, s *steerSite) {
	bobs := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a migration", plan.AnnotationPausedBy: "bob"}
	s.plans(t, steered(nil), bobs)
	s.writes(t, 0, func() {
		out, _ := works(t, s.alice, "", "freeze")
		holds(t, out, "Frozen, as before", "bob", "a migration")
	})
	s.stands(t, bobs)
	s.writes(t, 1, func() { works(t, s.alice, "", "freeze", "--reason", "a sale, too") })
	s.stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale, too", plan.AnnotationPausedBy: "alice"})
	s.plans(t, steered(nil), map[string]string{plan.AnnotationPaused: "yes", plan.AnnotationPausedBy: "bob"}) // which freezes nothing
	works(t, s.alice, "", "freeze")
	s.stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice"})
}

func resumes(t *testing.T, s *steerSite) {
	stopped := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "bob", plan.AnnotationTripped: `cluster "dev" has no owner`}
	s.plans(t, steered(nil), stopped)
	s.writes(t, 0, func() {
		out, _, failure := steer(t, s.alice, "n\n", "resume")
		if holds(t, out, `ballast stopped itself: cluster "dev" has no owner`, "bob froze it beside\n", "end the freeze, too", "[y/N]"); failure != "nothing was changed" {
			t.Errorf("it ends with %q", failure)
		}
	})
	s.writes(t, 1, func() { // a freeze leaves the trip
		holds(t, first(works(t, s.alice, "", "freeze", "--reason", "x", "-o", "json")), `"tripped": "cluster \"dev\" has no owner"`)
	})
	s.writes(t, 1, func() { holds(t, first(works(t, s.alice, "y\n", "resume")), "Not frozen: the planner decides") })
	s.stands(t, map[string]string{plan.AnnotationPaused: "", plan.AnnotationPausedBy: "", plan.AnnotationTripped: ""})
	s.plans(t, steered(nil), stopped)
	s.writes(t, 1, func() { works(t, s.alice, "", "resume", "--yes") })
	s.stands(t, map[string]string{plan.AnnotationPaused: "", plan.AnnotationPausedBy: "", plan.AnnotationTripped: ""})
	s.plans(t, steered(nil), map[string]string{plan.AnnotationPaused: "true"})
	works(t, s.alice, "", "resume") // a freeze alone asks nothing
	s.stands(t, map[string]string{plan.AnnotationPaused: ""})
}

func first(a, _ string) string { return a }

// whenAsked answers yes, after something happened.
type whenAsked struct {
	happens func()
	asked   bool
}

func (w *whenAsked) Read(p []byte) (int, error) {
	if w.asked {
		return 0, io.EOF
	}
	w.asked = true
	w.happens()
	return copy(p, "y\n"), nil
}

// connected are a command's options on the site's cluster.
func (s *steerSite) connected() steerOptions {
	return steerOptions{cluster: clusterOptions{kubeconfig: s.alice, namespace: "argocd"}, plan: site.PlanConfigMap, output: "table", now: func() time.Time { return noon }}
}

func (s *steerSite) annotates(t *testing.T, name, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{name: orNil(value)}}})
	mustDo(t, err)
	mustDo(t, s.planner.Patch(t.Context(), s.stored(t), client.RawPatch(types.MergePatchType, patch)))
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func clearsNoNewTrip(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), map[string]string{plan.AnnotationTripped: "a cluster has no owner"})
	o := &freezeOptions{steerOptions: s.connected()}
	err := o.resume(t.Context(), &whenAsked{happens: func() { s.annotates(t, plan.AnnotationTripped, "a pod was killed for its memory") }}, io.Discard)
	if !errors.Is(err, errTrippedAnew) {
		t.Errorf("got %v, want %v", err, errTrippedAnew)
	}
	s.stands(t, map[string]string{plan.AnnotationTripped: "a pod was killed for its memory"})
}

// liftsNoNewFreeze: who looks at a trip has not seen the freeze that came while they were asked.
func liftsNoNewFreeze(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), map[string]string{plan.AnnotationTripped: "a cluster has no owner"})
	o := &freezeOptions{steerOptions: s.connected()}
	err := o.resume(t.Context(), &whenAsked{happens: func() { s.annotates(t, plan.AnnotationPaused, "true") }}, io.Discard)
	if !errors.Is(err, errFrozenAnew) {
		t.Errorf("got %v, want %v", err, errFrozenAnew)
	}
	s.stands(t, map[string]string{plan.AnnotationTripped: "a cluster has no owner", plan.AnnotationPaused: "true"})
	o.yes = true
	if err := o.resume(t.Context(), &whenAsked{}, io.Discard); err != nil {
		t.Error(err)
	}
	s.stands(t, map[string]string{plan.AnnotationTripped: "", plan.AnnotationPaused: ""})
}

func evacuates(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), cordonAnnotation("2=2126-11-20T17:00:00Z,1=2026-01-01T00:00:00Z"))
	s.writes(t, 0, func() {
		out, _ := works(t, s.alice, "", "evacuate", "0", "--dry-run")
		holds(t, out, "Replica 0 would take nothing", "prod-eu", "Nothing was changed.")
	})
	s.stands(t, nil)
	before := time.Now().Truncate(time.Second)
	s.writes(t, 1, func() { works(t, s.alice, "", "evacuate", "0", "--for", "90m") })
	cordons, err := stateOf(s.stored(t)).cordons(time.Now())
	mustDo(t, err)
	if len(cordons) != 2 || cordons[0].Until.Before(before.Add(90*time.Minute)) || cordons[0].Until.After(time.Now().Add(90*time.Minute)) {
		t.Fatalf("cordons are %v", cordons)
	}
	s.stands(t, cordonAnnotation("0="+cordons[0].Until.Format(time.RFC3339)+",2=2126-11-20T17:00:00Z"))
	s.writes(t, 0, func() { holds(t, first(works(t, s.alice, "", "evacuate", "0")), "It was cordoned so before") })
	s.writes(t, 0, func() {
		if _, _, failure := steer(t, s.alice, "", "evacuate", "1"); !strings.HasPrefix(failure, "REPLICA: 1 is the last one that is not cordoned") {
			t.Errorf("the last replica: %q", failure)
		}
	})
	holds(t, first(works(t, s.alice, "", "evacuate")), "0         "+cordons[0].Until.Format(time.RFC3339), "2         2126-11-20T17:00:00Z")
	s.writes(t, 1, func() {
		holds(t, first(works(t, s.alice, "", "evacuate", "0", "--off")), "Replica 0 is no longer cordoned")
	})
	s.stands(t, cordonAnnotation("2=2126-11-20T17:00:00Z"))
	s.writes(t, 0, func() { holds(t, first(works(t, s.alice, "", "evacuate", "0", "--off")), "Replica 0 was not cordoned") })
	s.writes(t, 1, func() { works(t, s.alice, "", "evacuate", "2", "--off") })
	s.stands(t, cordonAnnotation(""))
}

func showsWhatStays(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), nil)
	yes := true
	s.has(t, "dev", "2", func(secret *corev1.Secret) { secret.Immutable = &yes })
	s.has(t, "lab", "2", func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationPin: "2"} })
	s.has(t, "own", "2", func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
	s.has(t, "prod-ap", "2", func(*corev1.Secret) {})
	out, notes := works(t, s.alice, "", "evacuate", "2", "--dry-run")
	if holds(t, out, "1 cluster leaves it", "prod-ap   0.2    2", `"dev" stays`, "immutable", `"lab" stays`, `"stage-eu" stays`,
		`"own" stays on replica 2, for its Secret is immutable, unmanaged or not of discover.selector`); notes != "" {
		t.Errorf("it notes %q", notes)
	}
}

// has is a cluster Secret until the test ends.
func (s *steerSite) has(t *testing.T, name, shard string, change func(*corev1.Secret)) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		Data: map[string][]byte{"name": []byte(name), "server": []byte("https://" + name), "shard": []byte(shard)}}
	change(secret)
	s.makes(t, secret)
	return secret
}

// leaves is the plan of steered without what replica 2 has.
func leaves(p *plan.Plan) {
	for _, name := range []string{"dev", "lab", "prod-ap", "stage-eu"} {
		delete(p.Clusters, name)
	}
}

// endsWithThree: an opted-out Secret and one that discover.selector leaves out have no row, and their clusters work all the same.
func endsWithThree(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(leaves), nil)
	optOut := func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} }
	s.has(t, "elsewhere", "1", optOut)
	s.has(t, "other", "2", func(*corev1.Secret) {})
	s.makes(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-config"}, Data: map[string]string{"config.yaml": "apiVersion: ballast.argoproj.io/v1alpha1\n" +
		"kind: PlannerConfig\ndiscover:\n  selector:\n    matchLabels: {argocd.argoproj.io/secret-type: cluster, team: ours}\n"}})
	lab := s.has(t, "lab", "2", optOut)
	ends := func(want string, code int) {
		t.Helper()
		o, notes := s.evacuator(), &bytes.Buffer{}
		o.config = "ballast-config"
		err := o.run(t.Context(), "2", io.Discard, notes)
		if err == nil || err.Error() != want || exitCode(err) != code {
			t.Errorf("it ends with %v\nwant %s", err, want)
		}
		if strings.Contains(notes.String(), "is empty") {
			t.Errorf("told %q", notes)
		}
	}
	const mend = ": create it anew, or take the annotation ballast.argoproj.io/unmanaged off, or let the selector have it; then evacuate it again"
	ends("replica 2 is not empty: 2 clusters stay there because the Secret is immutable, unmanaged or not of discover.selector (lab, other)"+mend, 3)

	// A Secret that comes while it waits counts, and one that goes does not.
	s.plans(t, steered(nil), nil)
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- s.evacuator().run(t.Context(), "2", io.Discard, w) }()
	w.next(t)
	mustDo(t, s.planner.Delete(t.Context(), lab.DeepCopy()))
	s.has(t, "late", "2", optOut)
	lab.ResourceVersion, lab.UID, lab.Data["shard"] = "", "", []byte("1")
	mustDo(t, s.planner.Create(t.Context(), lab))
	s.goesOn(t, revision(18, func(p *plan.Plan) { leaves(p); p.Clusters["other"] = plan.Row{Replica: 2, Pinned: true} }))
	err := <-ended
	const want = `replica 2 is not empty: 1 cluster stays there by a pin (other): take the pin out of data.pins of ConfigMap "ballast-plan", ` +
		"or the annotation ballast.argoproj.io/pin off the Secret, or pin to another replica; " +
		"1 cluster stays there because the Secret is immutable, unmanaged or not of discover.selector (late)" + mend
	if err == nil || err.Error() != want || exitCode(err) != 3 {
		t.Errorf("it ends with %v\nwant %s", err, want)
	}

	// The cluster that Argo CD adds by itself is on replica 0.
	s.plans(t, steered(func(p *plan.Plan) { p.Clusters = nil }), nil)
	o := s.evacuator()
	err = o.run(t.Context(), "0", io.Discard, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "replica 0 is not empty: 1 cluster stays there because it has no Secret (in-cluster)") || exitCode(err) != 3 {
		t.Errorf("the in-cluster: it ends with %v", err)
	}
}

// endsWithOne: who may not list Secrets is not told that a replica is empty.
func endsWithOne(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(leaves), nil)
	s.has(t, "lab", "2", func(secret *corev1.Secret) { secret.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
	mary := s.granted("mary", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}})
	_, notes, failure := steer(t, mary, "", "evacuate", "2", "--wait")
	const want = "no cluster of the plan is to leave replica 2 any more, and whether it is empty cannot be told: " +
		"not seen are the cluster Secrets and Argo CD's settings: list on secrets and get on configmaps is needed; then evacuate it again"
	if holds(t, notes, "note: without the right to list Secrets"); failure != want || strings.Contains(notes, "is empty") {
		t.Errorf("it ends with %q\nwant %q\n%s", failure, want, notes)
	}
	nora := s.granted("nora", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "patch"}})
	_, _, failure = steer(t, nora, "", "evacuate", "2", "--wait")
	holds(t, failure, "whether it is empty cannot be told: not seen are the workload's settings", "list on statefulsets or deployments is needed")
}

// wave is the next plan of a live rollout that empties replica 2.
func wave(revision int64, number int, left map[string]int, moves map[string]int) plan.Plan {
	return steered(func(p *plan.Plan) {
		p.Revision = revision
		for name, replica := range left {
			p.Clusters[name] = plan.Row{Replica: replica, Load: "0.1"}
		}
		if number == 0 {
			return
		}
		was := map[string]int{}
		for name := range moves {
			was[name] = 2
		}
		p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: noon, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 3, ControllerReplicas: 16,
			Wave: number, Waves: 2, Moves: moves, Was: was}
	})
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
	case <-time.After(20 * time.Second):
		t.Fatal("nothing more is told")
		return ""
	}
}

func (s *steerSite) evacuator() *evacuateOptions {
	return &evacuateOptions{steerOptions: s.connected(), keep: 2 * time.Hour, wait: true, timeout: time.Minute, poll: 10 * time.Millisecond}
}

func waitsForWaves(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), nil)
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- s.evacuator().run(t.Context(), "2", io.Discard, w) }()
	moves := map[string]int{"dev": 0, "lab": 1}
	for _, step := range []struct {
		next plan.Plan
		want string
	}{
		{plan.Plan{}, "12:00:00  3 clusters to go, 0 on the way"},
		{wave(18, 1, moves, moves), "12:00:00  1 cluster to go, 2 on the way; live, Moving, wave 1 of 2, 2 moves"},
		{wave(19, 2, map[string]int{"dev": 0, "lab": 1, "prod-ap": 0}, map[string]int{"prod-ap": 0}), "12:00:00  0 clusters to go, 1 on the way; live, Moving, wave 2 of 2, 1 move"},
		{wave(20, 0, map[string]int{"dev": 0, "lab": 1, "prod-ap": 0}, nil), "12:00:00  0 clusters to go, 0 on the way"},
	} {
		if step.next.Revision > 0 {
			s.goesOn(t, step.next)
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
	if err == nil || err.Error() != want || exitCode(err) != 3 {
		t.Errorf("it ends with %v, want %s", err, want)
	}
}

func waitsItOut(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), cordonAnnotation("2=2126-11-20T17:00:00Z"))
	w, ended, broken := told{make(chan string, 100)}, make(chan error, 1), atomic.Bool{}
	m := &planMap{key: client.ObjectKey{Namespace: "argocd", Name: site.PlanConfigMap}, Client: interceptor.NewClient(s.planner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if broken.Load() {
				return apierrors.NewServiceUnavailable("etcd has no leader")
			}
			return c.Get(ctx, key, o, opts...)
		}})}
	go func() { ended <- s.evacuator().follow(t.Context(), m, 2, w) }()
	steps := []struct {
		happens func()
		want    string
	}{
		{func() {}, "12:00:00  3 clusters to go, 0 on the way"},
		{func() { broken.Store(true) }, `12:00:00  reading the plan ConfigMap "ballast-plan" in "argocd": etcd has no leader`},
		{func() { broken.Store(false) }, "12:00:00  3 clusters to go, 0 on the way"},
		{func() { s.annotates(t, plan.AnnotationDigest, "0") }, "12:00:00  the plan cannot be read: the plan does not match its digest annotation; the planner mends it within a cycle, see `ballast status`"},
		{func() { s.goesOn(t, wave(18, 0, map[string]int{"dev": 0, "lab": 1, "prod-ap": 0, "stage-eu": 1}, nil)) }, "12:00:00  0 clusters to go, 0 on the way"},
	}
	for _, step := range steps {
		step.happens()
		if got := w.next(t); got != step.want {
			t.Fatalf("told %q, want %q", got, step.want)
		}
	}
	stageEUStays(t, <-ended)
}

func waitsNoLonger(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), map[string]string{plan.AnnotationEnforcement: "off"})
	o, notes := s.evacuator(), &bytes.Buffer{}
	o.timeout = 300 * time.Millisecond
	err := o.run(t.Context(), "2", io.Discard, notes)
	const want = "replica 2 is not empty after 300ms: 3 clusters to go (dev, lab, prod-ap), 0 on the way; the evacuation goes on"
	if err == nil || err.Error() != want {
		t.Errorf("it ends with %v, want %s", err, want)
	}
	if got := notes.String(); got != "12:00:00  3 clusters to go, 0 on the way; it waits: enforcement is off (annotation ballast.argoproj.io/enforcement), and the planner moves nothing until that is removed\n" {
		t.Errorf("told %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- s.evacuator().run(ctx, "2", io.Discard, w) }()
	w.next(t)
	cancel()
	if err := <-ended; err == nil || err.Error() != "interrupted; the evacuation goes on, and ballast evacuate 2 --off ends it" {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

func mustOpen(t *testing.T, o *evacuateOptions) *planMap {
	t.Helper()
	m, err := o.open()
	mustDo(t, err)
	return m
}

func waitsForACordonOnly(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), nil)
	w, ended := told{make(chan string, 100)}, make(chan error, 1)
	go func() { ended <- s.evacuator().run(t.Context(), "2", io.Discard, w) }()
	w.next(t)
	s.annotates(t, plan.AnnotationCordon, "")
	const want = "the cordon of replica 2 was taken away or is over, with 3 clusters to go (dev, lab, prod-ap)"
	if err := <-ended; err == nil || err.Error() != want {
		t.Errorf("it ends with %v, want %s", err, want)
	}
}

// revision is the plan of steered as it is after a change, under another number.
func revision(n int64, change func(*plan.Plan)) plan.Plan {
	p := steered(change)
	p.Revision = n
	return p
}

func listsPlans(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	s.keeps(t, steered(nil), wave(16, 1, nil, map[string]int{"dev": 0}), revision(14, four))
	out, notes := works(t, s.alice, "", "rollback", "-o", "json")
	var got keptList
	mustDo(t, json.Unmarshal([]byte(out), &got))
	moves := func(n int) *int { return &n }
	want := keptList{InForce: 17, Hidden: 1, Plans: []keptPlan{
		{Revision: 17, DecidedAt: noon, DecidedBy: "planner-0", Reason: "reason 17", Replicas: 3, Moves: moves(0), InForce: true},
		{Revision: 14, DecidedAt: noon.Add(-2 * time.Minute), DecidedBy: "planner-0", Reason: "reason 14", Replicas: 4, Moves: moves(2)},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(keptList{}, keptPlan{})); diff != "" || notes != "" {
		t.Errorf("it notes %q and lists (-want +got):\n%s", notes, diff)
	}
	holds(t, first(works(t, s.alice, "", "rollback", "--all")), "16 ", "(Moving) reason 16")
	s.stands(t, nil)
}

func rollsBack(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	s.keeps(t, steered(nil), revision(14, four))
	s.writes(t, 0, func() {
		holds(t, first(works(t, s.alice, "", "rollback", "14", "--dry-run")), "From revision 17 back to 14: 2 moves, with 4 replicas instead of 3.", "Nothing was changed.")
		out, notes, failure := steer(t, s.alice, "no\n", "rollback", "14")
		if holds(t, notes, "dev       0.02   2      3", "Go back from revision 17 to 14? [y/N]"); failure != "nothing was changed" || out != "" {
			t.Errorf("it ends with %q, %q", failure, out)
		}
		if _, _, failure := steer(t, s.alice, "", "rollback", "9", "--yes"); failure != "REVISION: 9 is not kept; choose one of 14" {
			t.Errorf("it ends with %q", failure)
		}
	})
	s.stands(t, nil)
	s.writes(t, 1, func() {
		holds(t, first(works(t, s.alice, "y\n", "rollback", "14")), "The planner begins within its interval")
	})
	s.stands(t, map[string]string{plan.AnnotationRollback: "14"})
	s.writes(t, 0, func() {
		var got difference
		out, _ := works(t, s.alice, "", "rollback", "14", "--yes", "-o", "json")
		mustDo(t, json.Unmarshal([]byte(out), &got))
		if got.Changed || got.Asked != "14" || got.To != 14 || len(got.Moves) != 2 {
			t.Errorf("asked for again: %s", out)
		}
	})
	holds(t, first(works(t, s.alice, "", "rollback")), "Going back to revision 14 was asked for")
	s.writes(t, 1, func() {
		holds(t, first(works(t, s.alice, "", "rollback", "--off")), "Going back to revision 14 is no longer asked for.")
	})
	s.stands(t, map[string]string{plan.AnnotationRollback: ""})
	s.writes(t, 0, func() { holds(t, first(works(t, s.alice, "", "rollback", "--off")), "No rollback was asked for") })
	s.plans(t, revision(17, four), nil)
	s.writes(t, 0, func() { holds(t, first(works(t, s.alice, "", "rollback", "14", "--yes")), "Nothing would move") })
}

func rollsBackWhatWasSeen(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	s.keeps(t, steered(nil), revision(14, four))
	o := &rollbackOptions{steerOptions: s.connected(), history: "ballast-history"}
	err := o.back(t.Context(), mustOpen(t, &evacuateOptions{steerOptions: s.connected()}), 14, &whenAsked{happens: func() { s.goesOn(t, revision(18, nil)) }}, io.Discard, io.Discard)
	if err == nil || err.Error() != "the plan became revision 18 while you looked at 17: look again; nothing was changed" {
		t.Errorf("it ends with %v", err)
	}
	if got, asked := s.stored(t).Annotations[plan.AnnotationRollback]; asked {
		t.Errorf("revision %s is asked for", got)
	}
}

// racing is the plan ConfigMap with somebody who writes it before each of the first n patches.
func (s *steerSite) racing(t *testing.T, n int, other func()) *planMap {
	t.Helper()
	return &planMap{key: client.ObjectKey{Namespace: "argocd", Name: site.PlanConfigMap}, Client: interceptor.NewClient(s.planner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if n > 0 {
				n--
				other()
			}
			return c.Patch(ctx, o, p, opts...)
		}})}
}

func decidesAnew(t *testing.T, s *steerSite) {
	s.makes(t, quietWorld().workload)
	s.plans(t, steered(nil), nil)
	m := s.racing(t, 1, func() { s.annotates(t, plan.AnnotationCordon, "0=2126-11-20T17:00:00Z") })
	o := s.evacuator()
	o.until = noon.Add(2 * time.Hour)
	if _, err := o.begin(t.Context(), m, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	s.stands(t, cordonAnnotation("0=2126-11-20T17:00:00Z,1=2026-11-20T14:00:00Z"))
	s.plans(t, steered(nil), nil)
	m = s.racing(t, 1, func() { s.annotates(t, plan.AnnotationCordon, "0=2126-11-20T17:00:00Z,1=2126-11-20T17:00:00Z") })
	if _, err := o.begin(t.Context(), m, 2, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "REPLICA: 2 is the last one") {
		t.Errorf("the last replica, cordoned by a race: %v", err)
	}
	s.stands(t, cordonAnnotation("0=2126-11-20T17:00:00Z,1=2126-11-20T17:00:00Z"))
}

func tellsOfLostRaces(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	n := 0
	m := s.racing(t, 100, func() { n++; s.annotates(t, "somebody/else", strings.Repeat("x", n)) })
	yes := "true"
	_, written, err := m.annotate(t.Context(), func(planState) (edits, error) { return edits{plan.AnnotationPaused: &yes}, nil })
	if !apierrors.IsConflict(err) || written || n < 3 {
		t.Errorf("after %d tries: written %t, %v", n, written, err)
	}
	if _, frozen := s.stored(t).Annotations[plan.AnnotationPaused]; frozen {
		t.Error("it is frozen all the same")
	}
	m = s.racing(t, 1, func() { s.plans(t, revision(18, nil), nil) }) // deleted and made anew: another one
	if _, written, err = m.annotate(t.Context(), func(planState) (edits, error) { return edits{plan.AnnotationPaused: &yes}, nil }); err != nil || !written {
		t.Errorf("over one that was made anew: written %t, %v", written, err)
	}
	s.stands(t, map[string]string{plan.AnnotationPaused: "true"})
}

func tellsOfChangedWrites(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	m := &planMap{key: client.ObjectKey{Namespace: "argocd", Name: site.PlanConfigMap}, Client: interceptor.NewClient(s.planner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
			return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{}`)), opts...) // as a webhook that takes it out
		}})}
	yes := "true"
	_, written, err := m.annotate(t.Context(), func(planState) (edits, error) { return edits{plan.AnnotationPaused: &yes}, nil })
	const want = `annotating the plan ConfigMap "ballast-plan" in "argocd": something changed the annotations on their way; look for other webhooks on ConfigMaps`
	if written || err == nil || err.Error() != want {
		t.Errorf("written %t, %v", written, err)
	}
}

func namesRights(t *testing.T, s *steerSite) {
	s.plans(t, steered(nil), nil)
	s.keeps(t, steered(nil), revision(14, four))
	carol := s.granted("carol", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"ballast-plan"}, Verbs: []string{"get", "patch"}})
	works(t, carol, "", "freeze", "--reason", "a sale")
	s.stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale", plan.AnnotationPausedBy: "carol"})
	works(t, carol, "", "resume")
	_, notes := works(t, carol, "", "evacuate", "2", "--dry-run")
	holds(t, notes, "note: without the right to list Secrets")
	if _, _, failure := steer(t, carol, "", "rollback", "14", "--yes"); !strings.Contains(failure, `"ballast-history"`) || !strings.HasSuffix(failure, "\nthis needs get on that ConfigMap") {
		t.Errorf("without the right to read the history: %q", failure)
	}
	dave := s.granted("dave", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	works(t, dave, "", "rollback", "14", "--dry-run")
	for _, args := range [][]string{{"freeze"}, {"evacuate", "1"}, {"rollback", "14", "--yes"}} {
		if _, _, failure := steer(t, dave, "", args...); !strings.HasPrefix(failure, `annotating the plan ConfigMap "ballast-plan" in "argocd": `) || !strings.HasSuffix(failure, "\nthis needs get and patch on that ConfigMap, and no other right to write") {
			t.Errorf("%v without the right to patch: %q", args, failure)
		}
	}
	s.stands(t, nil)
}

func needsAPlan(t *testing.T, s *steerSite) {
	for want, args := range map[string][]string{
		"reading the plan ConfigMap \"other\" in \"argocd\": configmaps \"other\" not found\nis ballast installed there? --namespace and --plan-configmap say where to look":                {"freeze", "--plan-configmap", "other"},
		"reading the plan ConfigMap \"ballast-plan\" in \"nowhere\": configmaps \"ballast-plan\" not found\nis ballast installed there? --namespace and --plan-configmap say where to look": {"evacuate", "-n", "nowhere"},
	} {
		if _, _, failure := steer(t, s.alice, "", args...); failure != want {
			t.Errorf("%v: %q\nwant %q", args, failure, want)
		}
	}
	s.plans(t, steered(func(p *plan.Plan) { p.Mode = plan.Observe }), nil)
	s.keeps(t, steered(nil), revision(14, four))
	for _, args := range [][]string{{"evacuate", "1"}, {"rollback", "14", "--yes"}} {
		if _, _, failure := steer(t, s.alice, "", args...); failure != "the mode is Observe, in which nothing moves: set mode: Enforce in the planner's configuration" {
			t.Errorf("%v: %q", args, failure)
		}
	}
	works(t, s.alice, "", "freeze") // which holds whatever the mode is
}
