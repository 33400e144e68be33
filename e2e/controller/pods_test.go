package controller_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll/pods"
	"ballast/planner/trend"
)

// argoCD is the application-controller's pods, as they answer at /metrics: replica n has each cluster whose number leaves n by three.
type argoCD struct {
	b        *bed
	clusters int
	began    time.Time
	counted  map[string]float64 // events so far, by server
	times    float64            // what a cluster makes, beside its number
}

// work lets a time pass: cluster n makes n+1 events a second, and half as many reconciliations.
func (a *argoCD) work(d time.Duration) {
	for i := range a.clusters {
		a.counted[server(fmt.Sprintf("c%03d", i))] += a.times * float64(i+1) * d.Seconds()
	}
	a.b.clock.Step(d)
}

func (a *argoCD) RoundTrip(r *http.Request) (*http.Response, error) {
	var text bytes.Buffer
	text.WriteString("process_resident_memory_bytes 1e9\n")
	for i := range a.clusters {
		url := server(fmt.Sprintf("c%03d", i))
		if r.URL.Host != fmt.Sprintf("10.0.0.%d:8082", i%3+1) {
			continue
		}
		fmt.Fprintf(&text, "argocd_app_info{dest_server=%[1]q,name=\"x\",namespace=\"argocd\"} 1\nargocd_cluster_api_resource_objects{server=%[1]q} %[2]d\n", url, 100*(i+1))
		fmt.Fprintf(&text, "argocd_cluster_events_total{group=\"\",kind=\"Pod\",server=%[1]q} %[2]g\nargocd_cluster_events_total{group=\"apps\",kind=\"Deployment\",server=%[1]q} %[2]g\n",
			url, a.counted[url]/2)
		fmt.Fprintf(&text, "argocd_app_reconcile_count{dest_server=%q,namespace=\"argocd\"} %g\n", url, a.counted[url]/2)
		fmt.Fprintf(&text, "argocd_cluster_cache_age_seconds{server=%[1]q} 5\nargocd_cluster_connection_status{server=%[1]q} 1\n", url)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&text), Header: http.Header{}, Request: r}, nil
}

// pods are three that run.
func (a *argoCD) pods(set *appsv1.StatefulSet) client.Client {
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for i := range 3 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, i),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
		pod.Spec.Containers = []corev1.Container{{Name: "application-controller"}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", i+1), Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "application-controller",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(a.began)}}}}}
		b = b.WithObjects(pod)
	}
	return b.Build()
}

// TestWithoutAPrometheusLoadsAreOfThePodsOwnMetrics runs leaders on a real API server, with pods that answer and no Prometheus: the
// loads are what the clusters make, a plan is written, and the next leader neither forgets them nor takes its first minutes for them.
func TestWithoutAPrometheusLoadsAreOfThePodsOwnMetrics(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Observe, 0, 0, 0, 0, 0)
	b.config.Poll.Prometheus, b.config.Poll.Pods, b.config.Index.PNorm.Weights = nil, &config.Pods{}, nil
	b.config.Interval = config.Duration(2 * time.Minute)
	a := &argoCD{b: b, clusters: 5, began: b.clock.Now().Add(-time.Hour), counted: map[string]float64{}, times: 1}
	observer := &gather.Observer{Reader: a.pods(b.workload()), Clock: b.clock, Scrape: scrape.NewScraper(scrape.Options{Client: &http.Client{Transport: a}})}
	lead := func(cycles int) {
		l := b.newLoop()
		l.Observe = observer.Observe
		for range cycles {
			if result, err := l.Once(b.ctx); err != nil {
				t.Fatalf("a cycle is %s: %v", result, err)
			}
			a.work(2 * time.Minute)
		}
	}
	measured := func(since time.Time) map[string][]float64 {
		_, history, m := b.history()
		if history.SavedAt.Before(since) {
			t.Errorf("the history is of %s, before %s", history.SavedAt, since)
		}
		got := map[string][]float64{}
		for _, c := range m.LastGood.Columns {
			for i, v := range c.Values {
				if !strings.HasPrefix(m.LastGood.IDs[i], "c0") { // the in-cluster
					continue
				}
				if !c.Measured[i] {
					t.Errorf("%s of %s was not measured", c.ID, m.LastGood.IDs[i])
				}
				got[c.ID] = append(got[c.ID], math.Round(v*100)/100)
			}
		}
		return got
	}
	want := map[string][]float64{"objects": {100, 200, 300, 400, 500}, "events": {1, 2, 3, 4, 5}, "reconciles": {0.5, 1, 1.5, 2, 2.5}, "apps": {1, 1, 1, 1, 1}}
	lead(35)
	if diff := cmp.Diff(want, measured(b.clock.Now().Add(-10*time.Minute))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := slices.Sorted(maps.Keys(b.plan().References)); !slices.Equal(got, []string{"apps", "events", "objects", "reconciles"}) {
		t.Errorf("the plan has references of %q", got)
	}
	var history corev1.ConfigMap
	b.get(&history, b.config.Plan.History)
	if len(history.BinaryData[pods.HistoryPart]) == 0 {
		t.Error("the history has nothing of what the pods showed")
	}
	var carried trend.Trend
	b.must(carried.UnmarshalBinary(history.BinaryData[trend.HistoryPart]))
	if n := len(carried.Levels); n < 2 || carried.Levels[n-1].Fullest <= 0 || carried.Levels[n-1].Replicas != b.plan().Replicas {
		t.Errorf("what replicas carried is %+v", carried)
	}
	a.times = 10 // for a few minutes
	began := b.clock.Now()
	lead(4)
	near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 0.02*y })
	if diff := cmp.Diff(want, measured(began), near); diff != "" {
		t.Errorf("by the next leader (-want +got):\n%s", diff)
	}
	if n := b.prometheus.asked(); n > 0 {
		t.Errorf("a Prometheus was asked %d times", n)
	}
	for _, line := range b.logged {
		if strings.Contains(line, "dropped") {
			t.Error(line)
		}
	}
}
