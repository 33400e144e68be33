package fleet

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample is a line of OpenMetrics text.
type sample struct {
	at    float64
	value float64
}

// parseHistory reads the samples of each series; a series is its name with all its labels.
func parseHistory(t *testing.T, text string) map[string][]sample {
	t.Helper()
	series := map[string][]sample{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line[strings.LastIndex(line, "}")+1:])
		if len(fields) != 2 {
			t.Fatalf("line %q has no value and time", line)
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		at, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		name := line[:strings.LastIndex(line, "}")+1]
		series[name] = append(series[name], sample{at, value})
	}
	return series
}

// matching sums what a rule gives for each series that has that name and every one of the labels.
func matching(series map[string][]sample, rule func([]sample) float64, name string, labels ...string) float64 {
	total := 0.0
	for s, samples := range series {
		if strings.HasPrefix(s, name+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(s, l) }) {
			total += rule(samples)
		}
	}
	return total
}

// perMinute is the exact rate over a whole series.
func perMinute(samples []sample) float64 {
	first, last := samples[0], samples[len(samples)-1]
	return (last.value - first.value) / (last.at - first.at) * 60
}

func written(t *testing.T, e *Exporter, from, to time.Time) string {
	t.Helper()
	var b bytes.Buffer
	if err := e.WriteHistory(&b, from, to, time.Minute); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHistoryHasExactlyTheFleetsRates(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "1"), []pod{testPod("c-0", "a", 2), testPod("c-1", "b", 2)})
	series := parseHistory(t, written(t, e, c.at.Add(-4*time.Hour), c.at))
	last := func(samples []sample) float64 { return samples[len(samples)-1].value }
	for _, cluster := range append(slices.Clone(f.Clusters), f.InCluster) {
		server := trim(cluster.Server)
		got := [4]float64{
			matching(series, last, "argocd_cluster_api_resource_objects", `server="`+server+`"`),
			matching(series, perMinute, "argocd_cluster_events_total", `server="`+server+`"`),
			matching(series, perMinute, "argocd_app_reconcile_count", `dest_server="`+server+`"`),
			matching(series, last, "argocd_app_info", `dest_server="`+server+`"`),
		}
		w := cluster.Work
		want := [4]float64{float64(w.Objects), float64(w.EventsPerMinute), float64(w.ReconcilesPerMinute), float64(w.Apps)}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9*want[i] {
				t.Errorf("cluster %q: objects, events, reconciles, apps %v, want %v", cluster.Name, got, want)
				break
			}
		}
	}
}

func TestHistoryIsLabelledAsItWasScraped(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 1}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "0"), []pod{testPod("c-0", "a", 2)})
	text := written(t, e, c.at.Add(-time.Minute), c.at)
	server := trim(f.Clusters[0].Server)
	want := fmt.Sprintf(`argocd_app_reconcile_count{dest_server="%s",exported_namespace="argocd",container="argocd-application-controller",`+
		`endpoint="metrics",instance="10.64.0.7:8082",job="argocd-metrics",namespace="argocd",pod="c-0",service="argocd-metrics"}`, server)
	series := parseHistory(t, text)
	if _, ok := series[want]; !ok {
		t.Errorf("no series %s", want)
	}
	if diff := cmp.Diff([]float64{float64(c.at.Add(-time.Minute).Unix()), float64(c.at.Unix())}, times(series[want])); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(text, "# EOF\n") || strings.Contains(text, Canary) {
		t.Error("the text does not end as OpenMetrics does, or shows a token")
	}
}

func times(samples []sample) []float64 {
	var at []float64
	for _, s := range samples {
		at = append(at, s.at)
	}
	return at
}

func TestHistoryGoesOnInWhatThePodsShow(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "0"), []pod{testPod("c-0", "a", 2)})
	series := parseHistory(t, written(t, e, c.at.Add(-time.Hour), c.at))
	giant := f.Of("https://prod-us-1.clusters.example.com:6443")
	last := func(samples []sample) float64 { return samples[len(samples)-1].value }
	before := matching(series, last, "argocd_cluster_events_total", `server="`+giant.Server+`"`)
	c.pass(2 * time.Minute)
	families, _ := get(t, e, "c-0")
	got := sum(families["argocd_cluster_events_total"], "server", giant.Server) - before
	if want := float64(2 * giant.Work.EventsPerMinute); got != want {
		t.Errorf("2 minutes after the history the events grew by %v, want %v", got, want)
	}
}

func TestHistoryShowsApplicationsOnlyLately(t *testing.T) {
	f, c := New(Options{Seed: 1, Clusters: 9}), newClock()
	e := f.NewExporter(c.now)
	e.observe(secretsOf(f, "0"), []pod{testPod("c-0", "a", 2)})
	for s, samples := range parseHistory(t, written(t, e, c.at.Add(-time.Hour), c.at)) {
		want := 61
		if strings.HasPrefix(s, "argocd_app_info{") {
			want = 16
		}
		if len(samples) != want {
			t.Errorf("%d samples, want %d, of %s", len(samples), want, s)
		}
	}
}
