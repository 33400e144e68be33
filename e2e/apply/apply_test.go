package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/apiserver"
	"ballast/planner/apply"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// TestApplier runs every case against one real API server, each in its own namespace.
func TestApplier(t *testing.T) {
	config := apiserver.Start(t)
	cases := map[string]func(*testing.T, *world){
		"a stamp changes nothing but the shard":                      stampsNothingElse,
		"a fleet's stamps are one burst, a write to each Secret":     stampsInOneBurst,
		"thousands of managers keep no stamp away":                   stampsInACrowd,
		"what must not be written is refused by what is read now":    refusesByWhatIsRead,
		"a write between read and stamp is kept":                     keepsConcurrentSecretWrite,
		"writes before each stamp, without end, do not keep it away": stampsBetweenWrites,
		"a Secret that opts out between read and stamp is left":      leavesConcurrentOptOut,
		"a failure stops no other step":                              failsOneByOne,
		"a second writer is waited for, then named":                  namesTheSecondWriter,
		"the budget defers what goes beyond it":                      defersBeyondTheBudget,
		"a Secret that etcd takes no more of is refused for good":    knowsAFullSecret,
		"the env is written in its place":                            writesEnvInPlace,
		"an env that is absent is appended once":                     appendsEnv,
		"an env by reference is replaced":                            replacesReference,
		"a restart is marked once, whatever annotations there are":   marksRestart,
		"a Deployment is scaled and restarted":                       writesDeployment,
		"a nudge follows the write of its own Secret":                patchesFirst,
		"a repair is nudged until its owner has the cluster":         nudgesRepairs,
		"a write between read and patch of the workload is kept":     keepsConcurrentWorkloadWrite,
		"a workload that is gone, unmanaged or strange is an answer": refusesWorkload,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, newWorld(t, config)) })
	}
}

// world is a namespace of a real API server with an Applier on it.
type world struct {
	t       *testing.T
	ctx     context.Context
	client  client.WithWatch
	clock   *clocktesting.FakePassiveClock
	target  plan.Target
	options apply.Options
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
	w := &world{t: t, ctx: t.Context(), client: c, clock: clocktesting.NewFakePassiveClock(start)}
	w.target = plan.Target{Kind: plan.StatefulSet, Namespace: namespace.Name, Name: "argocd-application-controller", Container: "application-controller"}
	w.options = apply.Options{Client: c, Reader: c, Clock: w.clock}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// intercept runs a function once, after the first read of an object of that kind and before what follows it.
func (w *world) intercept(after func()) {
	done := false
	w.options.Reader = interceptor.NewClient(w.client, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if !done {
			done = true
			after()
		}
		return err
	}})
}

func (w *world) secret(name, shard string, change func(*corev1.Secret)) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		Data:       map[string][]byte{"name": []byte(name), "server": []byte("https://" + name), "config": []byte("{}")},
	}
	if shard != "" {
		s.Data[plan.ShardKey] = []byte(shard)
	}
	if change != nil {
		change(s)
	}
	w.must(w.client.Create(w.ctx, s, client.FieldOwner("a-person")))
	return s
}

func (w *world) read(o client.Object, name string) {
	w.t.Helper()
	w.must(w.client.Get(w.ctx, types.NamespacedName{Namespace: w.target.Namespace, Name: name}, o))
}

func (w *world) shard(name string) string {
	w.t.Helper()
	var s corev1.Secret
	w.read(&s, name)
	return string(s.Data[plan.ShardKey])
}

func (w *world) outcomes(r apply.Report) []apply.Outcome {
	var outcomes []apply.Outcome
	for _, result := range r.Results {
		outcomes = append(outcomes, result.Outcome)
	}
	return outcomes
}

func (w *world) equal(want, got any, opts ...cmp.Option) {
	w.t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		w.t.Errorf("(-want +got):\n%s", diff)
	}
}

// managers are the field managers of an object, sorted.
func managers(o client.Object) []string {
	var names []string
	for _, e := range o.GetManagedFields() {
		names = append(names, e.Manager)
	}
	slices.Sort(names)
	return names
}

func stampsNothingElse(t *testing.T, w *world) {
	before := w.secret("a", "1", func(s *corev1.Secret) { s.Annotations = map[string]string{"theirs": "kept"} })
	bare := w.secret("bare", "", func(s *corev1.Secret) { s.Data = nil })
	report := apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}, diff.PatchShard{Secret: "bare", Shard: 0}, diff.PatchShard{Secret: "a", Shard: 3}})
	w.equal([]apply.Outcome{apply.Applied, apply.Applied, apply.Unchanged}, w.outcomes(report), cmpopts.SortSlices(func(a, b apply.Outcome) bool { return a < b }))
	for name, want := range map[string]*corev1.Secret{"a": before, "bare": bare} {
		var after corev1.Secret
		w.read(&after, name)
		if want.Data == nil {
			want.Data = map[string][]byte{}
		}
		want.Data[plan.ShardKey] = map[string][]byte{"a": []byte("3"), "bare": []byte("0")}[name]
		w.equal(want, &after, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "ManagedFields"), cmpopts.IgnoreTypes(metav1.TypeMeta{}))
		w.equal([]string{"a-person", plan.FieldManager}, managers(&after))
	}
}

// stampsInOneBurst: Argo CD looks again at every ApplicationSet with a cluster generator for each write of a cluster Secret.
func stampsInOneBurst(t *testing.T, w *world) {
	const secrets, bystander = 300, "zz"
	var steps []diff.Step
	for i := range secrets {
		steps = append(steps, diff.PatchShard{Secret: w.secret(fmt.Sprintf("c%03d", i), "", nil).Name, Shard: i % 3})
	}
	last := w.secret(bystander, "", nil)
	var list corev1.SecretList
	w.must(w.client.List(w.ctx, &list, client.InNamespace(w.target.Namespace)))
	watch, err := w.client.Watch(w.ctx, &corev1.SecretList{}, client.InNamespace(w.target.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	w.must(err)
	defer watch.Stop()

	began := time.Now()
	for _, result := range apply.New(w.options).Apply(w.ctx, w.target, steps).Results {
		w.equal(apply.Applied, result.Outcome)
	}
	t.Logf("%d stamps took %s", secrets, time.Since(began).Round(time.Millisecond))
	for _, result := range apply.New(w.options).Apply(w.ctx, w.target, steps).Results {
		w.equal(apply.Unchanged, result.Outcome)
	}
	last.Data["name"] = []byte("the last write")
	w.must(w.client.Update(w.ctx, last))
	writes := map[string]int{}
	for event := range watch.ResultChan() {
		name := event.Object.(*corev1.Secret).Name
		if writes[name]++; name == bystander {
			break
		}
	}
	want := map[string]int{bystander: 1}
	for _, step := range steps {
		want[step.(diff.PatchShard).Secret] = 1
	}
	w.equal(want, writes)
}

// stampsInACrowd: the API server would merge two thousand managers with the write, for longer than it lasts.
func stampsInACrowd(_ *testing.T, w *world) {
	crowded := w.secret("a", "1", func(s *corev1.Secret) { s.Data["name"] = []byte("a") })
	crowded.ManagedFields = apiserver.Crowd("v1", `{"f:data":{"f:name":{}}}`, 2000)
	w.must(w.client.Update(w.ctx, crowded))
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}})))
	w.equal("3", w.shard("a"))
}

func refusesByWhatIsRead(t *testing.T, w *world) {
	immutable := true
	w.secret("immutable", "1", func(s *corev1.Secret) { s.Immutable = &immutable })
	w.secret("unmanaged", "1", func(s *corev1.Secret) { s.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
	w.secret("other", "1", func(s *corev1.Secret) { s.Labels = nil })
	w.secret("going", "1", func(s *corev1.Secret) { s.Finalizers = []string{"example.org/stays"} })
	w.must(w.client.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: "going"}}))
	var got []string
	names := []string{"immutable", "unmanaged", "other", "going", "gone"}
	for _, name := range names {
		result := apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: name, Shard: 3}}).Results[0]
		got = append(got, fmt.Sprintf("%s: %s", result.Outcome, strings.ReplaceAll(result.Err.Error(), w.target.Namespace+"/", "")))
		if name != "gone" {
			w.equal("1", w.shard(name))
		}
	}
	w.equal([]string{
		`Refused: writing the shard of Secret "immutable": it is immutable: it must not be written`,
		`Refused: writing the shard of Secret "unmanaged": it is annotated as unmanaged: it must not be written`,
		`Refused: writing the shard of Secret "other": it is no cluster Secret of Argo CD any more: it must not be written`,
		`Refused: writing the shard of Secret "going": it is being deleted: it must not be written`,
		`Refused: writing the shard of Secret "gone": it is gone: it must not be written`,
	}, got)
}

func keepsConcurrentSecretWrite(t *testing.T, w *world) {
	w.secret("a", "1", nil)
	w.intercept(func() {
		var s corev1.Secret
		w.read(&s, "a")
		s.Data["server"], s.Data[plan.ShardKey] = []byte("https://new"), []byte("2")
		w.must(w.client.Update(w.ctx, &s))
	})
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}})))
	var after corev1.Secret
	w.read(&after, "a")
	w.equal(map[string][]byte{"name": []byte("a"), "server": []byte("https://new"), "config": []byte("{}"), "shard": []byte("3")}, after.Data)
}

// stampsBetweenWrites: whoever writes one Secret a hundred times a second must not hold waves by it.
func stampsBetweenWrites(t *testing.T, w *world) {
	w.secret("a", "1", nil)
	writes := 0
	w.options.Client = interceptor.NewClient(w.client, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		var s corev1.Secret
		w.read(&s, "a")
		writes++
		s.Labels["written"] = strconv.Itoa(writes)
		w.must(w.client.Update(w.ctx, &s))
		return c.Patch(ctx, o, p, opts...)
	}})
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}})))
	var after corev1.Secret
	w.read(&after, "a")
	w.equal([]string{"3", "4"}, []string{string(after.Data[plan.ShardKey]), after.Labels["written"]})
}

func leavesConcurrentOptOut(t *testing.T, w *world) {
	w.secret("a", "1", nil)
	w.intercept(func() {
		var s corev1.Secret
		w.read(&s, "a")
		s.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"}
		w.must(w.client.Update(w.ctx, &s))
	})
	w.equal([]apply.Outcome{apply.Refused}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}})))
	w.equal("1", w.shard("a"))
}

func failsOneByOne(t *testing.T, w *world) {
	for _, name := range []string{"a", "b", "c"} {
		w.secret(name, "0", nil)
	}
	away := errors.New("the API server is away")
	w.options.Client = interceptor.NewClient(w.client, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetName() == "b" {
			return away
		}
		return c.Patch(ctx, o, p, opts...)
	}})
	report := apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{
		diff.PatchWorkload{Replicas: ptr(2)}, diff.PatchShard{Secret: "a", Shard: 1}, diff.PatchShard{Secret: "b", Shard: 1}, diff.PatchShard{Secret: "c", Shard: 1},
	})
	w.equal([]apply.Outcome{apply.Refused, apply.Applied, apply.Failed, apply.Applied}, w.outcomes(report))
	w.equal([]string{"1", "0", "1"}, []string{w.shard("a"), w.shard("b"), w.shard("c")})
	if !errors.Is(report.Results[2].Err, away) {
		t.Errorf("the error is %v, want %v", report.Results[2].Err, away)
	}
	stopped, cancel := context.WithCancel(w.ctx)
	cancel()
	w.equal([]apply.Outcome{apply.Failed}, w.outcomes(apply.New(w.options).Apply(stopped, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 0}})))
}

func namesTheSecondWriter(t *testing.T, w *world) {
	w.secret("a", "1", nil)
	applier, step := apply.New(w.options), []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}}
	var got []apply.Contested
	for range 4 {
		report := applier.Apply(w.ctx, w.target, step)
		w.equal([]apply.Outcome{apply.Applied}, w.outcomes(report))
		got = append(got, report.Contested...)
		w.must(w.client.Patch(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.target.Namespace, Name: "a"}},
			client.RawPatch(types.MergePatchType, []byte(`{"data":{"shard":"MQ=="}}`)), client.FieldOwner("external-secrets")))
		early := applier.Apply(w.ctx, w.target, step)
		w.equal([]apply.Outcome{apply.Deferred}, w.outcomes(early))
		w.clock.SetTime(early.Results[0].Until)
	}
	w.equal([]apply.Contested{{Secret: "a", Reverted: 3, Manager: "external-secrets"}}, got)
	w.equal(start.Add(39*time.Second), w.clock.Now()) // 1 + 2 + 4 + 32 s
}

func defersBeyondTheBudget(t *testing.T, w *world) {
	w.options.BudgetPerMinute, w.options.Concurrency = 2, 1
	var steps []diff.Step
	for _, name := range []string{"a", "b", "c"} {
		w.secret(name, "0", nil)
		steps = append(steps, diff.PatchShard{Secret: name, Shard: 1})
	}
	report := apply.New(w.options).Apply(w.ctx, w.target, steps)
	w.equal([]apply.Outcome{apply.Applied, apply.Applied, apply.Deferred}, w.outcomes(report))
	w.equal(start.Add(30*time.Second), report.Results[2].Until)
	w.equal([]string{"1", "1", "0"}, []string{w.shard("a"), w.shard("b"), w.shard("c")})
}
