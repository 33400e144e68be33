package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/memo"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/measure/lastgood"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/poll"
	"ballast/planner/probe"
	"ballast/planner/sim"
	"ballast/planner/store"
)

const (
	crashWorkload = "argocd-application-controller"
	// crashPeace is how long nothing changes before a goal counts as reached: two elections and a look of repairs.
	crashPeace = 5 * time.Minute
	// crashPatience bounds the simulated time of one goal: a rollout that turns back at each stage's deadline, the half
	// hour of peace after it, and another try.
	crashPatience = 3 * time.Hour
)

// errAway is what a call gets from an API server that is gone.
var errAway = fmt.Errorf("dialing the API server: %w", syscall.ECONNREFUSED)

// crashRun is one fleet in a namespace of a real API server, with one leader after another. All of it runs in one
// goroutine and on a fake clock, so that a seed and its faults give the same run again: what goes on at the same time in a
// real leader, a cycle and repairs, is interleaved where the seed says so.
type crashRun struct {
	*testing.T
	ctx       context.Context
	memo      *memo.Memo       // of both clients
	client    client.WithWatch // may do everything
	planner   client.WithWatch // what leaders work with
	namespace string
	clock     *clocktesting.FakeClock
	config    config.PlannerConfig
	fetcher   func(config.PlannerConfig, plan.Target) (poll.Fetcher, error)
	probe     func(context.Context, probe.Held) probe.Result // nil: never asked
	planned   func()                                         // after each write of the plan; may be nil
	fleet     *crashFleet
	watch     crashWatch
	faults    *crashFaults
	coin      *rand.Rand // interleavings

	leader  *crashLeader // nil: nobody leads
	leaders int
	next    time.Time  // when the next leader is elected
	stands  crashCache // what stands in the API server
	cache   crashCache // what the leader's watches have told of it
	lag     time.Time  // until when they are behind
	news    crashNews
	status  sim.Status // as the API server has it
	faulty  int        // faults that are to come
	emptied int        // the replica that people want empty, or that is ill
	before  crashEnd   // how the fleet stood before
	saved   crashSaved
	told    map[string]int
	trace   []string
}

// crashSaved is what a version of the history says: when a rollout failed last, and what was measured of clusters.
type crashSaved struct {
	version  string
	heldOff  time.Time
	measured measure.LastGood
}

// crashNews is what watches have not told the leader yet.
type crashNews struct{ objects, plan bool }

func newCrashRun(t *testing.T, server *rest.Config, c crashCase, faults ...crashFault) *crashRun {
	t.Helper()
	cl, err := client.NewWithWatch(server, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "argocd-"}}
	if err := cl.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	r := newCrashRunIn(t, cl, namespace.Name, c, faults...)
	r.config = c.config(r.namespace)
	return r
}

// newCrashRunIn is a run in a namespace that is there. It has no configuration yet.
func newCrashRunIn(t *testing.T, cl client.WithWatch, namespace string, c crashCase, faults ...crashFault) *crashRun {
	t.Helper()
	m := memo.New()
	cl = m.Over(cl)
	r := &crashRun{T: t, ctx: t.Context(), memo: m, client: cl, planner: cl, namespace: namespace, clock: clocktesting.NewFakeClock(epoch),
		fleet: newCrashFleet(c.seed, maps.Clone(c.loads)), coin: rand.New(rand.NewPCG(c.seed, 7)), told: map[string]int{},
		stands: crashCache{secrets: map[string]*corev1.Secret{}}}
	r.fetcher = func(config.PlannerConfig, plan.Target) (poll.Fetcher, error) { return crashPrometheus{r}, nil }
	r.faulty = len(faults)
	r.faults = &crashFaults{run: r, due: faults, refuses: map[string]time.Time{}}
	r.watch = newCrashWatch(r)
	r.populate(c)
	return r
}

func (r *crashRun) must(err error) {
	r.Helper()
	if err != nil {
		r.fatal("the test itself failed: %v", err)
	}
}

// fatal ends the run with what led there.
func (r *crashRun) fatal(format string, args ...any) {
	r.Helper()
	const last = 120
	r.Fatalf("%s\nfaults: %v\n%s", fmt.Sprintf(format, args...), r.faults.met, strings.Join(r.trace[max(len(r.trace)-last, 0):], "\n"))
}

func (r *crashRun) note(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf("%8s  ", r.clock.Since(epoch))+fmt.Sprintf(format, args...))
}

// populate makes the fleet as it was before ballast came: no Secret has a shard.
func (r *crashRun) populate(c crashCase) {
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	container := corev1.Container{Name: "application-controller", Image: "argocd", Command: []string{"argocd-application-controller"}}
	if c.env != "" {
		container.Env = []corev1.EnvVar{{Name: plan.EnvReplicas, Value: c.env}}
	}
	replicas := int32(c.replicas)
	r.must(r.client.Create(r.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: crashWorkload, Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}},
	}))
	r.must(r.client.Create(r.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "argocd-cm"},
		Data: map[string]string{"cluster.inClusterEnabled": "false"}}))
	r.must(client.IgnoreAlreadyExists(r.client.Create(r.ctx, newKeySecret(r.namespace)))) // where the shipped manifests are installed
	for _, name := range r.fleet.Clusters {
		r.must(r.client.Create(r.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data:       map[string][]byte{"name": []byte(name), "server": []byte(server(name)), "config": []byte("{}")},
		}))
	}
	for _, name := range r.fleet.Clusters {
		r.readSecret(name)
	}
	r.readWorkload()
	r.watch.replicas = r.fleet.Replicas
	r.fleet.Populate(r.clock.Now())
	r.writeStatus()
}

func (r *crashRun) get(o client.Object, name string) {
	r.must(r.client.Get(r.ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, o))
}

// readWorkload shows the fleet the StatefulSet as it stands.
func (r *crashRun) readWorkload() {
	set := &appsv1.StatefulSet{}
	r.get(set, crashWorkload)
	r.stands.set, r.news.objects = set, true
	f := r.fleet
	f.Replicas, f.Env, f.Generation = int(*set.Spec.Replicas), "", set.Generation
	f.RestartedAt = set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]
	for _, e := range set.Spec.Template.Spec.Containers[0].Env {
		f.Env = e.Value
	}
}

func (r *crashRun) readSecret(name string) {
	s := &corev1.Secret{}
	r.get(s, name)
	r.stands.secrets[name], r.news.objects = s, true
	if v := discover.ParseShard(s.Data[plan.ShardKey]); v.State == discover.ShardValid {
		r.fleet.Shards[name] = v.N
	} else {
		delete(r.fleet.Shards, name)
	}
}

// planMap is the plan ConfigMap, nil without one.
func (r *crashRun) planMap() *corev1.ConfigMap {
	var cm corev1.ConfigMap
	err := r.client.Get(r.ctx, client.ObjectKey{Namespace: r.namespace, Name: r.config.Plan.ConfigMap}, &cm)
	if client.IgnoreNotFound(err) != nil {
		r.must(err)
	}
	if err != nil {
		return nil
	}
	return &cm
}

func (r *crashRun) readPlan() {
	if cm := r.planMap(); cm != nil {
		r.watch.planSeen(configmap.Parse(cm.Data, cm.Annotations))
	}
}

// writeStatus is the StatefulSet controller's only write.
func (r *crashRun) writeStatus() {
	s := r.fleet.Status(r.clock.Now())
	if s == r.status {
		return
	}
	patch := fmt.Sprintf(`{"status":{"replicas":%d,"readyReplicas":%d,"updatedReplicas":%d,"observedGeneration":%d}}`,
		s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.ObservedGeneration)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: crashWorkload}}
	r.must(r.client.Status().Patch(r.ctx, set, client.RawPatch("application/merge-patch+json", []byte(patch))))
	r.status, r.stands.set, r.news.objects = s, set, true
}

// annotate is a person's write to the plan ConfigMap; an empty value takes the annotation away.
func (r *crashRun) annotate(name, value string) {
	r.Helper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	r.note("a person writes %s=%s", name, text)
	r.patchPlan(fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, name, text))
}

func (r *crashRun) patchPlan(patch string) {
	r.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.config.Plan.ConfigMap}}
	r.must(r.client.Patch(r.ctx, cm, client.RawPatch("application/merge-patch+json", []byte(patch))))
	r.news.plan = true
	r.readPlan()
}

// configure is a person's change of the configuration file.
func (r *crashRun) configure(change func(*config.PlannerConfig)) {
	change(&r.config)
	if r.leader != nil {
		r.leader.loop.ConfigChanged(nil)
	}
}

// second lets a second pass, with all that is due in it.
func (r *crashRun) second() {
	for acts := 0; ; acts++ {
		r.deliver()
		if r.leader == nil || !r.leader.act() {
			break
		}
		r.judge()
		if acts > 40 {
			r.fatal("the leader does not come to rest")
		}
	}
	r.clock.Step(time.Second)
	now := r.clock.Now()
	r.faults.pass(now)
	if !r.faults.away(now) {
		r.fleet.Control(now)
		r.writeStatus()
		if r.leader == nil && !now.Before(r.next) {
			r.lead()
		}
	}
	r.fleet.Own(now)
	r.watch.second(now)
	r.judge()
}

func (r *crashRun) judge() {
	if wrong := r.watch.wrong; wrong != "" {
		r.fatal("%s", wrong)
	}
}

// deliver tells the leader what its watches saw, once the API server can be reached.
func (r *crashRun) deliver() {
	if now := r.clock.Now(); r.leader == nil || r.faults.away(now) || now.Before(r.lag) {
		return
	}
	news := r.news
	r.news = crashNews{}
	if news.objects {
		r.sync()
		r.leader.loop.Changed()
	}
	if !news.plan {
		return
	}
	if cm := r.planMap(); cm != nil {
		r.leader.loop.PlanSeen(cm)
	}
}

// sync fills the leader's cache.
func (r *crashRun) sync() {
	r.cache = crashCache{maps.Clone(r.stands.secrets), r.stands.set}
}

// settle lets time pass until the leader has nothing left to do, and answers how the fleet stands then.
func (r *crashRun) settle() crashEnd {
	r.Helper()
	r.until("everything is settled", crashPatience, r.settled)
	return r.end()
}

func (r *crashRun) until(what string, most time.Duration, holds func() bool) {
	r.Helper()
	for began := r.clock.Now(); !holds(); r.second() {
		if r.clock.Since(began) > most {
			r.fatal("waited %s in vain: %s", most, what)
		}
	}
}

// settled reports whether nothing is under way, nothing differs from the plan, nothing waits for a hold-off, the leader goes by
// the loads that there are, and nothing of it has changed for long enough.
func (r *crashRun) settled() bool {
	now, p := r.clock.Now(), r.watch.plan
	if p != nil && r.misjudges() { // of what has just moved it believes no lower load for 20 minutes, and decides by the one before
		r.watch.changed = now
	}
	if r.leader == nil || !r.leader.leads || p == nil || p.Rollout != nil || now.Sub(r.watch.changed) < crashPeace || r.faults.busy(now) {
		return false
	}
	if r.differs() != "" {
		return false
	}
	off := r.remembered().heldOff
	return off.IsZero() || now.Sub(off) > heldOffFor+crashPeace
}

// misjudges reports whether the values of the history are not the loads.
func (r *crashRun) misjudges() bool {
	measured := r.remembered().measured
	column := measured.Column(loadMetric)
	if column == nil {
		return false // the run has other metrics, or nothing is saved yet
	}
	for i, name := range measured.IDs {
		if load, there := r.fleet.loads[name]; there && column.Values[i] != lastgood.Round(load) {
			return true
		}
	}
	return false
}

// remembered is what a leader has saved; nothing where there is no history yet.
func (r *crashRun) remembered() crashSaved {
	cm := &corev1.ConfigMap{}
	err := r.client.Get(r.ctx, client.ObjectKey{Namespace: r.namespace, Name: r.config.Plan.History}, cm)
	if apierrors.IsNotFound(err) {
		return crashSaved{}
	}
	r.must(err)
	if r.saved.version == cm.ResourceVersion {
		return r.saved
	}
	s := store.New(store.Options{Client: r.client, Reader: r.client, Namespace: r.namespace, Plan: r.config.Plan.ConfigMap,
		History: r.config.Plan.History, Key: keySecret})
	r.must(s.Peek(r.ctx))
	history, _, err := s.ReadHistory(r.ctx)
	r.must(err)
	m, dropped := memory.Of(history.Parts)
	r.must(errors.Join(dropped...))
	r.saved = crashSaved{cm.ResourceVersion, m.HoldOff, m.LastGood}
	return r.saved
}

// differs says what differs from the plan.
func (r *crashRun) differs() string {
	p := r.watch.plan
	if r.fleet.Replicas != p.Replicas || p.ControllerReplicas > 0 && r.fleet.Env != fmt.Sprint(p.ControllerReplicas) {
		return fmt.Sprintf("the workload has %d replicas and env %q, the plan %d and %d", r.fleet.Replicas, r.fleet.Env, p.Replicas, p.ControllerReplicas)
	}
	for _, c := range r.fleet.Clusters {
		row, known := p.Clusters[c]
		if shard, stamped := r.fleet.Shards[c]; !known || !stamped || shard != row.Replica {
			return fmt.Sprintf("Secret %s carries %d (%t), its row is %+v (%t)", c, shard, stamped, row, known)
		}
	}
	return ""
}

// crashPrometheus answers with the loads, and with who owns what.
type crashPrometheus struct{ run *crashRun }

var _ poll.Fetcher = crashPrometheus{}

func (p crashPrometheus) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, now time.Time) []poll.Fetched {
	f, fetched := p.run.fleet, make([]poll.Fetched, len(metrics))
	for i, m := range metrics {
		fetched[i].Metric = m.ID
		for _, c := range f.Clusters {
			if m.ID != ownerMetric {
				fetched[i].Samples = append(fetched[i].Samples, poll.Sample{Key: server(c), Value: f.loads[c], At: now})
				continue
			}
			for ordinal, pod := range f.Pods {
				if _, owns := pod.Gained[c]; owns {
					fetched[i].Samples = append(fetched[i].Samples, poll.Sample{Key: sim.PodName(ordinal) + "|" + server(c), Value: 1, At: now})
				}
			}
		}
	}
	return fetched
}

// wantEnd compares how the fleet stands, whatever its loads are now.
func (r *crashRun) wantEnd(when string, want crashEnd) {
	r.Helper()
	got := r.end()
	want.Makespan = got.Makespan
	if diff := cmp.Diff(want, got); diff != "" {
		r.fatal("%s (-want +got):\n%s", when, diff)
	}
}

// crashed reports whether an error says that the leader's process ended meanwhile.
func crashed(err error) bool { return errors.Is(err, context.Canceled) }
