package webhook

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"ballast/planner/plan"
)

func configMap(t testing.TB, uid, version string, revision int64) *corev1.ConfigMap {
	t.Helper()
	p := fleet()
	p.Revision = revision
	data, annotations := written(t, p, "")
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ballast-plan", Namespace: "argocd", UID: types.UID(uid), ResourceVersion: version, Annotations: annotations}, Data: data}
}

func newSource(objects ...runtime.Object) (*Source, *fake.Clientset) {
	client := fake.NewSimpleClientset(objects...)
	return NewSource(SourceOptions{Client: client, Namespace: "argocd", ConfigMap: "ballast-plan", Planner: shippedUser,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()}), client
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
		{"its deletion", func() error { return s.Delete(configMap(t, "a", "10", 18)) }, 0},
		{"a new ConfigMap", func() error { return s.Add(configMap(t, "b", "11", 19)) }, 19},
		{"an older deletion", func() error { return s.Delete(configMap(t, "a", "10", 18)) }, 19},
		{"a list after a lost watch", func() error { return s.Replace([]any{configMap(t, "b", "14", 21)}, "15") }, 21},
		{"a list without it", func() error { return s.Replace(nil, "20") }, 0},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := s.State().revision(); got != step.want {
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
	if err != nil || got.revision() != 17 || s.State() != got {
		t.Errorf("revision %d, %v", got.revision(), err)
	}
	if err := client.CoreV1().ConfigMaps("argocd").Delete(context.Background(), "ballast-plan", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Fresh(context.Background()); err != nil || got.revision() != 0 {
		t.Errorf("after the deletion: revision %d, %v", got.revision(), err)
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
	release := make(chan struct{})
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-release
		return true, nil, errors.New("late")
	})
	defer close(release)
	start := time.Now()
	if _, err := s.Fresh(context.Background()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*readTimeout {
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
		results <- state.revision()
	}
	wg.Go(call)
	<-began
	for range 20 {
		wg.Go(call)
	}
	eventually(t, "a joined read", time.Second, func() bool {
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
