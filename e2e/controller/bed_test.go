package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/apiserver"
	"ballast/e2e/memo"
	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/controller/wiring"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/poll"
	"ballast/planner/sharding"
	"ballast/planner/sim"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// anyServer is a real API server. Every test that asks it works in namespaces of its own.
var anyServer apiserver.Shared

// bed is a namespace of a real API server with a fleet in it, a fake clock and a fake Prometheus; nothing runs there but the
// loops of the test. No watch tells them anything: the test does, where a watch would.
type bed struct {
	*testing.T
	ctx        context.Context
	client     client.WithWatch // of everybody in the test
	api        client.WithWatch // reads what another process writes
	namespace  string
	clock      *clocktesting.FakeClock
	config     config.PlannerConfig
	prometheus *prometheusFake

	mu       sync.Mutex
	events   []telemetry.Event
	failing  map[string]error           // what a write or read of that object fails with, by "verb name"
	attempts map[string]int             // by "verb name"
	meddle   map[string]func(tries int) // what somebody else does just before that, by "verb name"
	lose     map[string]error           // how an answer is lost that the API server gave, by "verb name"
	woken    []string                   // clusters whose owner was nudged
	logged   []string                   // by the loops
}

// What these tests expect of the planner, by value.
const (
	keySecret   = "ballast-plan-key"
	ownerMetric = "owner"          // which asks who owns what
	quiet       = time.Second      // after a change, until a cycle
	lookSoon    = time.Second      // until repairs look again at what may be lost
	lookAgain   = 30 * time.Second // and at what nobody told of
	barredFor   = 25 * time.Minute // after refusals, until a Secret is written again
	mostTries   = 10               // of a cycle, where somebody else writes the plan meanwhile
	broughtBack = "brought the replicas back that rollout.x0y had stopped: the plan's key is missing, and without it no rollout goes on"
)

// Names of the simulation that every test here uses.
var (
	epoch     = sim.Epoch
	server    = sim.Server
	lognormal = sim.Lognormal
)

func namesIn[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// newKeySecret is the Secret as it is shipped: a planner fills it.
func newKeySecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keySecret}}
}

// Nudge makes the bed a Nudger: every cluster has an Application.
func (b *bed) Nudge(_ context.Context, _, cluster, _, _ string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = append(b.woken, cluster)
	return "argocd/app-of-" + cluster, nil
}

func (b *bed) nudged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.woken)
}

func newBed(t *testing.T, server *rest.Config, mode plan.Mode, loads ...float64) *bed {
	t.Helper()
	api, err := client.NewWithWatch(server, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := memo.New().Over(api) // nobody else writes to the namespace
	b := &bed{T: t, ctx: t.Context(), client: c, api: api, clock: clocktesting.NewFakeClock(epoch), prometheus: &prometheusFake{loads: map[string]float64{}},
		failing: map[string]error{}, attempts: map[string]int{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "argocd-"}}
	b.must(c.Create(b.ctx, namespace))
	b.namespace = namespace.Name
	b.must(c.Create(b.ctx, newKeySecret(b.namespace)))
	b.config = sim.Config()
	b.config.Mode, b.config.Target.Namespace = mode, b.namespace
	b.addWorkload(3)
	for i, load := range loads {
		b.addCluster(fmt.Sprintf("c%03d", i), load)
	}
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) addWorkload(replicas int32) {
	b.Helper()
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "argocd-application-controller", Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Image: "argocd",
				Env: []corev1.EnvVar{{Name: plan.EnvReplicas, Value: strconv.Itoa(int(replicas))}}}}}}},
	}
	b.must(b.client.Create(b.ctx, set))
	b.settle()
}

// settle does what Kubernetes would: as many pods are there, new and ready, as the workload asks for.
func (b *bed) settle() {
	b.Helper()
	set := b.workload()
	n := *set.Spec.Replicas
	want := appsv1.StatefulSetStatus{Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, CurrentReplicas: n, ObservedGeneration: set.Generation}
	if s := set.Status; s.ReadyReplicas == n && s.Replicas == n && s.ObservedGeneration == set.Generation {
		return
	}
	set.Status = want
	b.must(b.client.Status().Update(b.ctx, set))
}

func (b *bed) addCluster(name string, load float64) {
	b.Helper()
	b.prometheus.set(server(name), load)
	b.must(b.client.Create(b.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		Data:       map[string][]byte{"name": []byte(name), "server": []byte(server(name)), "config": []byte("{}")},
	}))
}

// present are the replicas that Argo CD's legacy algorithm gives the clusters by their Secrets' UIDs, which the API server draws.
func (b *bed) present() map[string]int {
	b.Helper()
	var secrets corev1.SecretList
	b.must(b.client.List(b.ctx, &secrets, client.InNamespace(b.namespace), client.HasLabels{plan.SecretTypeLabel}))
	var clusters []discover.Cluster
	for _, s := range secrets.Items {
		clusters = append(clusters, discover.Cluster{Shard: plan.Shard{ID: s.Name, UID: string(s.UID), Server: string(s.Data["server"])}})
	}
	present := map[string]int{}
	for i, owner := range sharding.Owners(clusters, sharding.Legacy, 3, nil) {
		present[clusters[i].Shard.ID] = owner
	}
	return present
}

// newLopsidedBed is a bed with something to elect, whatever UIDs were drawn: one fleet in a hundred is level by chance. The replica with
// the most clusters has the heaviest.
func newLopsidedBed(t *testing.T, server *rest.Config, loads ...float64) *bed {
	t.Helper()
	b := newBed(t, server, plan.Enforce, loads...)
	of, has := b.present(), map[int]int{}
	for _, replica := range of {
		has[replica]++
	}
	heaviest := slices.SortedFunc(slices.Values(loads), func(x, y float64) int { return cmp.Compare(y, x) })
	names := slices.SortedFunc(maps.Keys(of), func(x, y string) int {
		return cmp.Or(cmp.Compare(has[of[y]], has[of[x]]), cmp.Compare(of[x], of[y]), strings.Compare(x, y))
	})
	for i, name := range names {
		b.prometheus.set(sim.Server(name), heaviest[i])
	}
	return b
}

// start runs a loop as a leader, until the returned function ends it, and waits for its first cycle.
func (b *bed) start() (*controller.Loop, func()) {
	b.Helper()
	l, end := b.launch()
	b.idle(l)
	return l, end
}

// newLoop is a planner that does not lead yet.
func (b *bed) newLoop() *controller.Loop {
	b.Helper()
	guarded := b.guarded()
	return controller.NewLoop(wiring.Options{
		Config:  func() config.PlannerConfig { return b.config },
		Reader:  b.client,
		Store:   store.New(store.Options{Client: guarded, Reader: guarded, Namespace: b.namespace, Plan: b.config.Plan.ConfigMap, History: b.config.Plan.History, Key: keySecret}),
		Applier: apply.New(apply.Options{Client: guarded, Reader: b.client, Nudger: b, Clock: b.clock}),
		NewFetcher: func(config.PlannerConfig, plan.Target) (poll.Fetcher, error) {
			return b.prometheus, nil
		},
		Emit:        func(_ discover.Workload, events ...telemetry.Event) { b.tell(events) },
		Metrics:     telemetry.NewMetrics(prometheus.NewRegistry()),
		Log:         logr.New(teeSink{testr.New(b.T).GetSink(), b}),
		Clock:       b.clock,
		Identity:    "planner-0",
		PlannerUser: "system:serviceaccount:argocd:ballast-planner",
	})
}

// teeSink keeps what is logged.
type teeSink struct {
	logr.LogSink
	b *bed
}

// Info implements logr.LogSink.
func (s teeSink) Info(level int, message string, fields ...any) {
	s.b.keep(message, fields)
	s.LogSink.Info(level, message, fields...)
}

// Error implements logr.LogSink.
func (s teeSink) Error(err error, message string, fields ...any) {
	s.b.keep(message, append([]any{err}, fields...))
	s.LogSink.Error(err, message, fields...)
}

func (b *bed) keep(message string, fields []any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logged = append(b.logged, fmt.Sprint(message, fields))
}

// logs is how many lines of the log have a text.
func (b *bed) logs(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.logged {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (b *bed) launch() (*controller.Loop, func()) {
	b.Helper()
	l := b.newLoop()
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(end)
	return l, end
}

// guarded counts what goes to the API server, and lets it fail where the test says so.
func (b *bed) guarded() client.WithWatch {
	check := func(verb, name string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.attempts[verb+" "+name]++
		return b.failing[verb+" "+name]
	}
	return interceptor.NewClient(b.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := check("get", key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := check("create", o.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := check("patch", o.GetName()); err != nil {
				return err
			}
			if meddle := b.meddle["patch "+o.GetName()]; meddle != nil {
				meddle(b.tried("patch " + o.GetName()))
			}
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			return b.lost("patch " + o.GetName())
		},
	})
}

func (b *bed) fail(what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing[what] = err
}

// lost is how that answer is lost, once.
func (b *bed) lost(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.lose[what]
	delete(b.lose, what)
	return err
}

// loses has the next one answered with that, though it was done.
func (b *bed) loses(what string, answer error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose = map[string]error{what: answer}
}

func (b *bed) tried(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attempts[what]
}

func (b *bed) tell(events []telemetry.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, events...)
}

// told are the events of a reason, their messages in order.
func (b *bed) told(reason string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var messages []string
	for _, e := range b.events {
		if e.Reason == reason {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// eventually waits for a condition that the loop brings about by itself, without the clock.
func (b *bed) eventually(what string, holds func() bool) {
	b.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			b.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

// idle waits until the loop does nothing but wait for the clock: the cycle for its interval, repairs for their next look.
func (b *bed) idle(l *controller.Loop) {
	b.Helper()
	b.waiting(l, 2)
}

// stirred is idle after a change that the loop was told of: the cycle waits for quiet beside.
func (b *bed) stirred(l *controller.Loop) {
	b.Helper()
	b.waiting(l, 3)
}

// calmLooks is how often in a row, a millisecond between them, a loop looks idle before it is: a busy machine lets a goroutine wait.
const calmLooks = 20

// waiting waits for that many timers. A goroutine that took its signal and has not stopped its timer yet looks idle for a
// moment, hence the streak.
func (b *bed) waiting(l *controller.Loop, timers int) {
	b.Helper()
	streak := 0
	b.eventually(fmt.Sprintf("the loop waits on %d timers", timers), func() bool {
		if b.clock.Waiters() == timers && !stirs(l) {
			streak++
		} else {
			streak = 0
		}
		return streak >= calmLooks
	})
}

// stirs reports whether the loop was told of something that it has not taken up yet.
func stirs(l *controller.Loop) bool {
	cycles, repairs := l.Woken()
	return len(cycles)+len(repairs) > 0
}

// calm lets seconds pass until no cycle waits for quiet any more, however far the loop was when the clock was put on last.
func (b *bed) calm(l *controller.Loop) {
	b.Helper()
	streak := 0
	b.eventually("no cycle waits for quiet", func() bool {
		waiters := b.clock.Waiters()
		if streak++; waiters != 2 || stirs(l) {
			streak = 0
		}
		if waiters == 3 {
			b.clock.Step(time.Second)
		}
		return streak >= calmLooks
	})
}

// cycles lets that many intervals pass, with all that a watch would have told in between.
func (b *bed) cycles(l *controller.Loop, n int) {
	b.Helper()
	for range n {
		asked := b.prometheus.asked()
		b.clock.Step(time.Duration(b.config.Interval))
		b.eventually("a cycle at each interval", func() bool { return b.prometheus.asked() > asked })
		b.idle(l)
		b.settle()
	}
}

// cycled is how many cycles ran, however they ended.
func cycled(l *controller.Loop) (sum int) {
	for _, result := range []string{"changed", "quiet", "kept", "conflict", "failed"} {
		sum += int(testutil.ToFloat64(l.Metrics.Cycles.WithLabelValues(result)))
	}
	return sum
}

// quieten lets a second pass without a change, once the loop waits for it: the cycle that a change runs.
func (b *bed) quieten(l *controller.Loop) {
	b.Helper()
	b.stirred(l)
	b.clock.Step(quiet)
}

func (b *bed) get(o client.Object, name string) {
	b.Helper()
	b.must(b.client.Get(b.ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, o))
}

func (b *bed) workload() *appsv1.StatefulSet {
	b.Helper()
	var set appsv1.StatefulSet
	b.get(&set, "argocd-application-controller")
	return &set
}

func (b *bed) planMap() *corev1.ConfigMap {
	b.Helper()
	var cm corev1.ConfigMap
	b.get(&cm, b.config.Plan.ConfigMap)
	return &cm
}

func (b *bed) plan() plan.Plan {
	b.Helper()
	cm := b.planMap()
	d := configmap.Parse(cm.Data, cm.Annotations)
	if d.Plan == nil {
		b.Fatalf("there is no plan that can be read: %v", d.PlanErr)
	}
	return *d.Plan
}

// edit is a person's write to the plan ConfigMap; a watch would tell of it by seen.
func (b *bed) edit(change func(*corev1.ConfigMap)) {
	b.Helper()
	cm := b.planMap()
	change(cm)
	b.must(b.client.Update(b.ctx, cm))
}

func (b *bed) seen(l *controller.Loop) {
	b.Helper()
	cm := b.planMap()
	l.PlanSeen(cm)
}

func annotate(o metav1.Object, name, value string) {
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[name] = value
	o.SetAnnotations(a)
}

// shards are the Secrets' data.shard, "" where there is none.
func (b *bed) shards() map[string]string {
	b.Helper()
	var secrets corev1.SecretList
	b.must(b.client.List(b.ctx, &secrets, client.InNamespace(b.namespace), client.HasLabels{plan.SecretTypeLabel}))
	shards := map[string]string{}
	for _, s := range secrets.Items {
		shards[s.Name] = string(s.Data[plan.ShardKey])
	}
	return shards
}

// planned are the shards that the plan asks for.
func (b *bed) planned() map[string]string {
	b.Helper()
	shards := map[string]string{}
	for name, row := range b.plan().Clusters {
		shards[name] = strconv.Itoa(row.Replica)
	}
	return shards
}

// stamp writes a Secret's shard as somebody else would.
func (b *bed) stamp(name, shard, manager string) {
	b.Helper()
	patch := fmt.Sprintf(`{"stringData":{"shard":%q}}`, shard)
	b.must(b.client.Patch(b.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}},
		client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(manager)))
}

// versions are the resourceVersions of everything but the plan and the history, which a write would change.
func (b *bed) versions() map[string]string {
	b.Helper()
	versions := map[string]string{"workload": b.workload().ResourceVersion}
	var secrets corev1.SecretList
	b.must(b.client.List(b.ctx, &secrets, client.InNamespace(b.namespace), client.HasLabels{plan.SecretTypeLabel}))
	for _, s := range secrets.Items {
		versions[s.Name] = s.ResourceVersion
	}
	return versions
}

// prometheusFake answers with the loads it was given.
type prometheusFake struct {
	mu     sync.Mutex
	loads  map[string]float64
	asks   int
	during func() // runs inside the next answer
}

var _ poll.Fetcher = (*prometheusFake)(nil)

func (p *prometheusFake) set(server string, load float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loads[server] = load
}

func (p *prometheusFake) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asks
}

// once runs inside the next answer.
func (p *prometheusFake) once(during func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.during = during
}

func (p *prometheusFake) Fetch(_ context.Context, metrics []poll.Metric, fleet discover.Fleet, now time.Time) []poll.Fetched {
	p.mu.Lock()
	during := p.during
	p.asks, p.during = p.asks+1, nil
	p.mu.Unlock()
	if during != nil {
		during()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fetched := make([]poll.Fetched, len(metrics))
	for i, m := range metrics {
		fetched[i].Metric = m.ID
		if m.ID == ownerMetric {
			continue
		}
		for _, c := range fleet.Clusters {
			if load, ok := p.loads[c.Shard.Server]; ok {
				fetched[i].Samples = append(fetched[i].Samples, poll.Sample{Key: c.Shard.Server, Value: load, At: now})
			}
		}
	}
	return slices.Clip(fetched)
}
