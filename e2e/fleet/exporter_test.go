package fleet

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/google/go-cmp/cmp"
)

// clock is a time that a test sets.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
func testPod(name, uid string, n int) pod {
	return pod{name: name, uid: uid, ip: "10.64.0.7", replicas: n, running: true}
}

// secretsOf are the fleet's with the names for UIDs, all on the shard.
func secretsOf(f *Fleet, shard string) []Secret {
	var secrets []Secret
	for _, c := range f.Clusters {
		secrets = append(secrets, Secret{UID: c.Name, Name: c.Name, Server: c.Server, Shard: shard})
	}
	return append(secrets, Secret{Name: "in-cluster", Server: InClusterServer})
}

func get(t *testing.T, e *Exporter, pod string) (map[string]*dto.MetricFamily, string) {
	t.Helper()
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	response, err := http.Get(server.URL + "/pods/" + pod + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, error %v", response.StatusCode, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		t.Fatalf("parsing what the pod shows: %v", err)
	}
	return families, string(body)
}

// sum adds up a family over its series with that value of a label; a histogram counts its observations.
func sum(family *dto.MetricFamily, label, value string) float64 {
	total := 0.0
	for _, m := range family.GetMetric() {
		for _, l := range m.Label {
			if l.GetName() == label && l.GetValue() == value {
				total += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return total
}

func TestMetricsAreArgoCDs(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "0"), []pod{testPod("c-0", "a", 2)})
	c.pass(time.Minute)
	families, text := get(t, e, "c-0")
	type shape struct {
		Type   string
		Labels string
	}
	got := map[string]shape{}
	for name, family := range families {
		var labels []string
		for _, l := range family.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		got[name] = shape{family.GetType().String(), strings.Join(labels, " ")}
	}
	want := map[string]shape{
		"argocd_app_info":                     {"GAUGE", "autosync_enabled dest_namespace dest_server health_status name namespace operation project repo sync_status"},
		"argocd_app_reconcile":                {"HISTOGRAM", "dest_server namespace"},
		"argocd_cluster_events_total":         {"COUNTER", "group kind server"},
		"argocd_cluster_info":                 {"GAUGE", "k8s_version name server"},
		"argocd_cluster_api_resource_objects": {"GAUGE", "server"},
		"argocd_cluster_api_resources":        {"GAUGE", "server"},
		"argocd_cluster_cache_age_seconds":    {"GAUGE", "server"},
		"argocd_cluster_connection_status":    {"GAUGE", "k8s_version server"},
		"process_resident_memory_bytes":       {"GAUGE", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if strings.Contains(text, Canary) {
		t.Error("a token shows in the metrics")
	}
	if server := trim(f.Of("https://dev-eu-1.clusters.example.com:6443").Server); sum(families["argocd_cluster_info"], "server", server) != 1 {
		t.Errorf("the server %q does not show without its slash", server)
	}
	if n := sum(families["argocd_cluster_info"], "name", Idle); n != 0 {
		t.Errorf("the idle cluster shows %v times, want none", n)
	}
}

func TestAPodShowsTheWorkOfItsClusters(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "1"), []pod{testPod("c-0", "a", 2), testPod("c-1", "b", 2)})
	c.pass(10 * time.Minute)
	families, _ := get(t, e, "c-1")
	giant := f.Of("https://prod-us-1.clusters.example.com:6443")
	got := Work{
		Objects:             int(sum(families["argocd_cluster_api_resource_objects"], "server", giant.Server)),
		EventsPerMinute:     int(sum(families["argocd_cluster_events_total"], "server", giant.Server)) / 10,
		ReconcilesPerMinute: int(sum(families["argocd_app_reconcile"], "dest_server", giant.Server)) / 10,
		Apps:                int(sum(families["argocd_app_info"], "dest_server", giant.Server)),
	}
	if diff := cmp.Diff(giant.Work, got); diff != "" {
		t.Errorf("the giant's work (-want +got):\n%s", diff)
	}
	families, _ = get(t, e, "c-0")
	if n := sum(families["argocd_cluster_info"], "name", "in-cluster"); n != 1 {
		t.Errorf("shard 0 shows the in-cluster %v times, want once", n)
	}
	if n := sum(families["argocd_cluster_info"], "name", Giant); n != 0 {
		t.Errorf("shard 0 shows the giant %v times, want none", n)
	}
}

func TestAMovedClusterKeepsItsCountersAndLosesItsGauges(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	pods := []pod{testPod("c-0", "a", 2), testPod("c-1", "b", 2)}
	giant := f.Of("https://prod-us-1.clusters.example.com:6443")
	e.observe(secretsOf(f, "0"), pods)
	c.pass(10 * time.Minute)
	e.observe(secretsOf(f, "1"), pods)
	c.pass(5 * time.Minute)
	for pod, want := range map[string][3]float64{
		"c-0": {float64(10 * giant.Work.EventsPerMinute), 0, 0},
		"c-1": {float64(5 * giant.Work.EventsPerMinute), float64(giant.Work.Objects), 300},
	} {
		families, _ := get(t, e, pod)
		got := [3]float64{
			sum(families["argocd_cluster_events_total"], "server", giant.Server),
			sum(families["argocd_cluster_api_resource_objects"], "server", giant.Server),
			sum(families["argocd_cluster_cache_age_seconds"], "server", giant.Server),
		}
		if got != want {
			t.Errorf("%s shows events, objects, cache age %v, want %v", pod, got, want)
		}
	}
	e.observe(secretsOf(f, "0"), pods)
	c.pass(time.Minute)
	families, _ := get(t, e, "c-0")
	if got, want := sum(families["argocd_cluster_events_total"], "server", giant.Server), float64(11*giant.Work.EventsPerMinute); got != want {
		t.Errorf("back on c-0 the events are %v, want %v", got, want)
	}
}

// What is late stays with the process that has it, and goes once it is not.
func TestALateClusterStaysWhereItIs(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	pods := []pod{testPod("c-0", "a", 2), testPod("c-1", "b", 2)}
	e.observe(secretsOf(f, "0"), pods)
	giant := f.Of("https://prod-us-1.clusters.example.com:6443")
	has := func() (all [2]Work) {
		load := e.Load()
		return [2]Work{load["c-0"], load["c-1"]}
	}
	whole := has()
	e.Late(giant)
	e.observe(secretsOf(f, "1"), pods)
	stays := giant.Work.Total(f.InCluster.Work)
	if got := has(); got[0] != stays || got[1] == (Work{}) {
		t.Errorf("c-0 has %v, want %v; c-1 has %v", got[0], stays, got[1])
	}
	e.Late()
	if got := has(); got[0] != f.InCluster.Work || got[0].Total(got[1]) != whole[0] {
		t.Errorf("the processes have %v, want all of %v but the in-cluster on c-1", got, whole[0])
	}
}

func TestARestartedProcessCountsFromZero(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	before, down, after := testPod("c-0", "a", 1), testPod("c-0", "a", 1), testPod("c-0", "a", 1)
	down.running, after.restarts = false, 1
	giant := f.Of("https://prod-us-1.clusters.example.com:6443")
	e.observe(secretsOf(f, "0"), []pod{before})
	c.pass(10 * time.Minute)
	e.observe(secretsOf(f, "0"), []pod{down})
	recorder := httptest.NewRecorder()
	e.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/pods/c-0/metrics", nil))
	if recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("a pod without a process answers %d, want %d", recorder.Code, http.StatusServiceUnavailable)
	}
	e.observe(secretsOf(f, "0"), []pod{after})
	c.pass(time.Minute)
	families, _ := get(t, e, "c-0")
	if got, want := sum(families["argocd_cluster_events_total"], "server", giant.Server), float64(giant.Work.EventsPerMinute); got != want {
		t.Errorf("after the restart the events are %v, want %v", got, want)
	}
	after.restarts = 2 // seen only when it was up again
	e.observe(secretsOf(f, "0"), []pod{after})
	families, _ = get(t, e, "c-0")
	if got := sum(families["argocd_cluster_events_total"], "server", giant.Server); got != 0 {
		t.Errorf("right after the next restart the events are %v, want none", got)
	}
}

func TestOwnersAndLoad(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 2}), newClock()
	e := f.NewExporter(c.now)
	secrets := []Secret{{UID: "x", Name: "a", Server: "https://a.b", Shard: "1"}, {UID: "y", Name: "b", Server: "https://b.b", Shard: "-1"}}
	// In the middle of a rollout from 2 to 3 replicas: c-1 has the new count, c-0 the old one.
	e.observe(append(secrets, Secret{UID: "z", Name: "c", Server: "https://c.b", Shard: "2"}),
		[]pod{testPod("c-0", "0", 2), testPod("c-1", "1", 3), testPod("c-2", "2", 3)})
	want := map[string][]string{"a": {"c-1"}, "b": {}, "c": {"c-0", "c-2"}}
	if diff := cmp.Diff(want, e.Owners()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	wantLoad := map[string]Work{"c-0": f.Of("https://c.b").Work, "c-1": f.Of("https://a.b").Work, "c-2": f.Of("https://c.b").Work}
	if diff := cmp.Diff(wantLoad, e.Load()); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
}

func TestTargetsAreLabelledAsAPodScrape(t *testing.T) {
	f := New(Options{Seed: 1})
	e := f.NewExporter(newClock().now)
	e.observe(nil, []pod{testPod("c-0", "a", 2)})
	want := []Target{{Targets: []string{"127.0.0.1:9"}, Labels: map[string]string{
		"__metrics_path__": "/pods/c-0/metrics", "job": "argocd-metrics", "service": "argocd-metrics", "namespace": "argocd",
		"pod": "c-0", "container": "argocd-application-controller", "endpoint": "metrics", "instance": "10.64.0.7:8082",
	}}}
	if diff := cmp.Diff(want, e.Targets("127.0.0.1:9")); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

// TestAClusterGetsApplications: in the process that has it, and in one that begins to have it later.
func TestAClusterGetsApplications(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "0"), []pod{testPod("c-0", "a", 2), testPod("c-1", "b", 2)})
	e.SetApps(f.Clusters[0], 40)
	e.SetApps(f.Clusters[1], 0)
	shown := func(pod string) (apps [2]float64) {
		families, _ := get(t, e, pod)
		for i := range apps {
			apps[i] = sum(families["argocd_app_info"], "dest_server", trim(f.Clusters[i].Server))
		}
		return apps
	}
	got := [][2]float64{shown("c-0")}
	e.observe(secretsOf(f, "1"), []pod{testPod("c-0", "a", 2), testPod("c-1", "b", 2)})
	got = append(got, shown("c-0"), shown("c-1"))
	if diff := cmp.Diff([][2]float64{{40, 0}, {0, 0}, {40, 0}}, got); diff != "" {
		t.Errorf("Applications of two clusters before and after they move (-want +got):\n%s", diff)
	}
}
