package source

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"ballast/planner/plan"
	"ballast/webhook/fixture"
)

// decided is when these tests begin.
var decided = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func configMap(t testing.TB, uid, version string, revision int64) *corev1.ConfigMap {
	t.Helper()
	p := fixture.Fleet()
	p.Revision = revision
	data, annotations := fixture.Written(t, p, "")
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ballast-plan", Namespace: "argocd", UID: types.UID(uid), ResourceVersion: version, Annotations: annotations}, Data: data}
}

// newSource is one whose live reads wait for a busy machine.
func newSource(objects ...runtime.Object) (*Source, *fake.Clientset) {
	client := fake.NewSimpleClientset(objects...)
	s := New(Options{Client: client, Namespace: "argocd", ConfigMap: "ballast-plan", Planner: fixture.ShippedUser,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	s.reads.timeout = time.Minute
	return s, client
}

// TestTheSourceKnowsSinceWhenAPlanStopsAll by its own clock: a time in the future counts as when the plan was seen first.
func TestTheSourceKnowsSinceWhenAPlanStopsAll(t *testing.T) {
	now := decided
	s := New(Options{Client: fake.NewSimpleClientset(), Namespace: "argocd", ConfigMap: "ballast-plan", Planner: fixture.ShippedUser,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(), Now: func() time.Time { return now }})
	p := fixture.Fleet()
	fixture.StopAll(&p, decided.AddDate(99, 0, 0))
	for i, pins := range []string{"", "prod-eu: 1\n", "prod-eu: 2\n"} {
		cm := configMap(t, "a", strconv.Itoa(100+i), 17)
		cm.Data, cm.Annotations = fixture.Written(t, p, pins)
		if err := s.Add(cm); err != nil {
			t.Fatal(err)
		}
		if got := s.State().Stopped; !got.Equal(decided) {
			t.Errorf("write %d: stopped since %s, want %s", i, got, decided)
		}
		now = now.Add(10 * time.Minute)
	}
	cm := configMap(t, "a", "110", 18)
	if err := s.Add(cm); err != nil {
		t.Fatal(err)
	}
	if got := s.State().Stopped; !got.IsZero() {
		t.Errorf("with replicas again: stopped since %s", got)
	}
}

// TestADeletedPlanIsEnforcedForAWhile: whoever deletes it over and over switches nothing off, and one that stays away is given up.
func TestADeletedPlanIsEnforcedForAWhile(t *testing.T) {
	now := decided
	s := New(Options{Client: fake.NewSimpleClientset(), Namespace: "argocd", ConfigMap: "ballast-plan", Planner: fixture.ShippedUser,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(), Now: func() time.Time { return now }})
	type seen struct {
		Revision int64
		Stale    bool
		Missing  time.Duration // for how long
	}
	look := func() seen {
		state := s.State()
		got := seen{Revision: state.Revision(), Stale: state.Stale}
		if !state.Missing.IsZero() {
			got.Missing = now.Sub(state.Missing)
		}
		return got
	}
	bare := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ballast-plan", Namespace: "argocd", ResourceVersion: "13"}, Data: map[string]string{plan.KeyPins: "prod-eu: 1\n"}}
	for _, step := range []struct {
		name string
		do   func() error
		want seen
	}{
		{"it is there", func() error { return s.Add(configMap(t, "a", "7", 17)) }, seen{17, false, 0}},
		{"it is deleted", func() error { return s.Delete(configMap(t, "a", "8", 17)) }, seen{17, true, 0}},
		{"four minutes later", func() error { now = now.Add(4 * time.Minute); s.lapse(); return nil }, seen{17, true, 4 * time.Minute}},
		{"a list without it", func() error { return s.Replace(nil, "9") }, seen{17, true, 4 * time.Minute}},
		{"it is there again", func() error { return s.Add(configMap(t, "b", "10", 18)) }, seen{18, false, 0}},
		{"it is deleted again", func() error { return s.Delete(configMap(t, "b", "11", 18)) }, seen{18, true, 0}},
		{"somebody makes it anew with pins alone", func() error { return s.Add(bare) }, seen{18, true, 0}},
		{"and deletes it", func() error { gone := bare.DeepCopy(); gone.ResourceVersion = "14"; return s.Delete(gone) }, seen{18, true, 0}},
		{"five minutes later", func() error { now = now.Add(5 * time.Minute); s.lapse(); return nil }, seen{0, false, 0}},
		{"it comes back after all", func() error { return s.Add(configMap(t, "c", "15", 19)) }, seen{19, false, 0}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, look()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestSourceKeepsTheNewestPlanWhateverTheOrder(t *testing.T) {
	s, _ := newSource()
	if s.Ready() == nil {
		t.Error("ready before the first list")
	}
	other := configMap(t, "a", "9", 9)
	other.Name = "another"
	for _, step := range []struct {
		name string
		do   func() error
		want int64
	}{
		{"an empty list", func() error { return s.Replace(nil, "5") }, 0},
		{"the plan appears", func() error { return s.Add(configMap(t, "a", "7", 17)) }, 17},
		{"another ConfigMap", func() error { return s.Add(other) }, 17},
		{"an older event after a live read", func() error { return s.Update(configMap(t, "a", "6", 16)) }, 17},
		{"the next plan", func() error { return s.Update(configMap(t, "a", "8", 18)) }, 18},
		{"its deletion", func() error { return s.Delete(configMap(t, "a", "10", 18)) }, 18},
		{"a new ConfigMap", func() error { return s.Add(configMap(t, "b", "11", 19)) }, 19},
		{"an older event of the ConfigMap before", func() error { return s.Update(configMap(t, "a", "9", 18)) }, 19},
		{"an older deletion", func() error { return s.Delete(configMap(t, "a", "10", 18)) }, 19},
		{"a list after a lost watch", func() error { return s.Replace([]any{configMap(t, "b", "14", 21)}, "15") }, 21},
		{"a list without it", func() error { return s.Replace(nil, "20") }, 21},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := s.State().Revision(); got != step.want {
			t.Errorf("%s: revision %d, want %d", step.name, got, step.want)
		}
	}
	if err := s.Ready(); err != nil {
		t.Errorf("not ready after a list: %v", err)
	}
	if err := s.Add("a word"); err == nil {
		t.Error("a word was taken for a ConfigMap")
	}
}

// TestSourceFollowsAnAPIServerThatWentBack: etcd restored from a backup knows nothing of the newest versions and plans. A
// read that began after the newest was seen, and answers an older one, tells of that; one that was overtaken does not.
func TestSourceFollowsAnAPIServerThatWentBack(t *testing.T) {
	live := func(s *Source) error { _, err := s.Fresh(context.Background()); return err }
	list := func(s *Source) error {
		got, err := s.list(context.Background(), metav1.ListOptions{ResourceVersion: "100"})
		if err != nil {
			return err
		}
		var items []any
		for i := range got.(*corev1.ConfigMapList).Items {
			items = append(items, &got.(*corev1.ConfigMapList).Items[i])
		}
		return s.Replace(items, "90")
	}
	for name, tc := range map[string]struct {
		stands *corev1.ConfigMap
		read   func(*Source) error
		during func(*Source) error // while the answer is on its way
		want   int64
		next   string // the version of an event that is taken afterwards
	}{
		"a list of an older version":              {configMap(t, "a", "60", 15), list, nil, 15, "61"},
		"a live read of an older version":         {configMap(t, "a", "60", 15), live, nil, 15, "61"},
		"a list of an older ConfigMap":            {configMap(t, "b", "60", 15), list, nil, 15, "61"},
		"a live read of an older ConfigMap":       {configMap(t, "b", "60", 15), live, nil, 15, "61"},
		"a list without it":                       {nil, list, nil, 17, "91"},
		"a live read without it":                  {nil, live, nil, 17, "101"},
		"a list that was overtaken":               {configMap(t, "a", "100", 17), list, func(s *Source) error { return s.Update(configMap(t, "a", "101", 18)) }, 18, "102"},
		"a live read that was overtaken":          {configMap(t, "a", "100", 17), live, func(s *Source) error { return s.Update(configMap(t, "a", "101", 18)) }, 18, "102"},
		"a live read of one that was deleted":     {configMap(t, "a", "100", 17), live, func(s *Source) error { return s.Delete(configMap(t, "a", "101", 17)) }, 17, "102"},
		"a live read of one that was made anew":   {configMap(t, "a", "100", 17), live, renewed(t), 18, "103"},
		"a list of one that was made anew":        {configMap(t, "a", "100", 17), list, renewed(t), 18, "103"},
		"a live read between the two":             {nil, live, renewed(t), 18, "103"},
		"a live read that is ahead of the events": {configMap(t, "a", "105", 20), live, func(s *Source) error { return s.Update(configMap(t, "a", "101", 18)) }, 20, "106"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.stands != nil {
				objects = append(objects, tc.stands)
			}
			s, client := newSource(objects...)
			if err := s.Add(configMap(t, "a", "100", 17)); err != nil {
				t.Fatal(err)
			}
			if tc.during != nil {
				client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return false, nil, tc.during(s) })
			}
			if err := tc.read(s); err != nil {
				t.Fatal(err)
			}
			if got := s.State().Revision(); got != tc.want {
				t.Errorf("revision %d, want %d", got, tc.want)
			}
			if err := s.Update(configMap(t, "c", tc.next, 30)); err != nil || s.State().Revision() != 30 {
				t.Errorf("the next event, of version %s: revision %d, %v", tc.next, s.State().Revision(), err)
			}
		})
	}
}

// renewed is a ConfigMap that goes and comes again.
func renewed(t *testing.T) func(*Source) error {
	return func(s *Source) error {
		return errors.Join(s.Delete(configMap(t, "a", "101", 17)), s.Add(configMap(t, "b", "102", 18)))
	}
}

// TestAWatchIsNotResumedOnAnAPIServerThatWentBack: the reflector would go on from the version that it has, and hear nothing
// until the API server has counted up to it again.
func TestAWatchIsNotResumedOnAnAPIServerThatWentBack(t *testing.T) {
	s, client := newSource()
	type served struct {
		version string
		plan    *corev1.ConfigMap
	}
	var now atomic.Pointer[served]
	now.Store(&served{"100", configMap(t, "a", "99", 17)})
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		at := now.Load()
		return true, &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: at.version}, Items: []corev1.ConfigMap{*at.plan}}, nil
	})
	watches := make(chan *watch.FakeWatcher, 10)
	client.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFake()
		watches <- w
		return true, w, nil
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	defer func() { stop(); <-ended }()
	first := <-watches
	if got := s.State().Revision(); got != 17 {
		t.Fatalf("revision %d, want 17", got)
	}
	// The plan of the backup stands at a version that a reader of events only would wait for.
	now.Store(&served{"80", configMap(t, "a", "60", 15)})
	first.Modify(configMap(t, "a", "101", 18)) // the last that was heard
	first.Stop()
	second := <-watches
	fixture.Eventually(t, "the plan of the backup", 5*time.Second, func() bool { return s.State().Revision() == 15 })
	second.Modify(configMap(t, "a", "81", 16))
	fixture.Eventually(t, "the next plan", 5*time.Second, func() bool { return s.State().Revision() == 16 })
	// And one that has counted beyond it, while nobody watched.
	now.Store(&served{"300", configMap(t, "a", "70", 14)})
	second.Stop()
	<-watches
	fixture.Eventually(t, "the plan of another backup", 5*time.Second, func() bool { return s.State().Revision() == 14 })
}

func TestSourceShowsWhatItHolds(t *testing.T) {
	s, _ := newSource()
	broken := configMap(t, "a", "3", 18)
	broken.Data[plan.KeyPlan] += "# edited\n"
	broken.Annotations[plan.AnnotationEnforcement] = "off"
	type shown struct {
		Revision, BreakGlass, Unsynced, Absent, Current, Stale float64
	}
	m := s.options.Metrics
	look := func() shown {
		cache := func(state string) float64 { return testutil.ToFloat64(m.cache.WithLabelValues(state)) }
		return shown{testutil.ToFloat64(m.revision), testutil.ToFloat64(m.breakGlass), cache(cacheUnsynced), cache(cacheAbsent), cache(cacheCurrent), cache(cacheStale)}
	}
	for _, step := range []struct {
		name string
		do   func() error
		want shown
	}{
		{"at first", func() error { return nil }, shown{Unsynced: 1}},
		{"without a plan", func() error { return s.Replace(nil, "1") }, shown{Absent: 1}},
		{"with a plan", func() error { return s.Add(configMap(t, "a", "2", 17)) }, shown{Revision: 17, Current: 1}},
		{"with a broken plan and break-glass", func() error { return s.Update(broken) }, shown{Revision: 17, Stale: 1, BreakGlass: 1}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, look()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestFreshReadsThePlanLive(t *testing.T) {
	s, client := newSource(configMap(t, "a", "7", 17))
	got, err := s.Fresh(context.Background())
	if err != nil || got.Revision() != 17 || s.State() != got {
		t.Errorf("revision %d, %v", got.Revision(), err)
	}
	if err := client.CoreV1().ConfigMaps("argocd").Delete(context.Background(), "ballast-plan", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Fresh(context.Background()); err != nil || got.Revision() != 17 || got.Missing.IsZero() {
		t.Errorf("after the deletion: revision %d, missing since %s, %v", got.Revision(), got.Missing, err)
	}
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	if _, err = s.Fresh(context.Background()); err == nil || err.Error() != `reading the plan "ballast-plan": away` {
		t.Errorf("with the API server away: %v", err)
	}
	if done, failed := testutil.ToFloat64(s.options.Metrics.reads.WithLabelValues(readDone)), testutil.ToFloat64(s.options.Metrics.reads.WithLabelValues(readFailed)); done != 2 || failed != 1 {
		t.Errorf("counted %v done, %v failed", done, failed)
	}
}

func TestFreshGivesUpOnASlowAPIServer(t *testing.T) {
	s, client := newSource()
	s.reads.timeout = readTimeout
	release := make(chan struct{})
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-release
		return true, nil, errors.New("late")
	})
	defer close(release)
	start := time.Now()
	if _, err := s.Fresh(context.Background()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*time.Second {
		t.Errorf("gave up after %s with %v", time.Since(start), err)
	}
}

// TestAJoinedReadBeginsAfterTheCall holds a read under way while others ask: they share one read, and not that one.
func TestAJoinedReadBeginsAfterTheCall(t *testing.T) {
	s, client := newSource()
	began, release := make(chan int, 10), make(chan struct{})
	var reads atomic.Int64
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		n := reads.Add(1)
		began <- int(n)
		if n == 1 {
			<-release
		}
		return true, configMap(t, "a", fmt.Sprint(n), 100+n), nil
	})
	var wg sync.WaitGroup
	results := make(chan int64, 21)
	call := func() {
		state, err := s.Fresh(context.Background())
		if err != nil {
			t.Error(err)
		}
		results <- state.Revision()
	}
	wg.Go(call)
	<-began
	for range 20 {
		wg.Go(call)
	}
	fixture.Eventually(t, "a joined read", time.Second, func() bool {
		s.reads.mu.Lock()
		defer s.reads.mu.Unlock()
		return s.reads.next != nil
	})
	close(release)
	wg.Wait()
	close(results)
	count := map[int64]int{}
	for r := range results {
		count[r]++
	}
	if count[101] != 1 || count[101]+count[102]+count[103] != 21 || reads.Load() > 3 {
		t.Errorf("reads by revision: %v after %d reads", count, reads.Load())
	}
}

func TestReadsAreBoundedInTime(t *testing.T) {
	s, client := newSource()
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, configMap(t, "a", "1", 17), nil })
	start := time.Now()
	for range 6 {
		if _, err := s.Fresh(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 5*time.Second/readsPerSecond-50*time.Millisecond {
		t.Errorf("6 reads took %s", took)
	}
}
