package poll_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ballast/e2e/assets"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/config"
)

// A fleet whose events are counted for each of that many kinds.
const costClusters, costKinds, costApps, costPods = 24, 60, 4, 3

// counted stands before a Prometheus, and asks it what each query went through.
type counted struct {
	url string

	mu      sync.Mutex
	samples map[string]int // by query
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Form.Set("stats", "all")
	response, err := http.Post(c.url+r.URL.Path, "application/x-www-form-urlencoded", strings.NewReader(r.Form.Encode()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	var answer struct {
		Data struct {
			Stats struct {
				Samples struct {
					Total int `json:"totalQueryableSamples"`
				} `json:"samples"`
			} `json:"stats"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err == nil {
		c.mu.Lock()
		c.samples[r.Form.Get("query")] += answer.Data.Stats.Samples.Total
		c.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(body)
}

// ask puts a query, and answers how many samples it went through.
func (c *counted) ask(t *testing.T, query string) int {
	t.Helper()
	between := httptest.NewServer(c)
	defer between.Close()
	response, err := http.PostForm(between.URL+"/api/v1/query", url.Values{"query": {query}, "time": {fmt.Sprint(now.Unix())}})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.samples[query]
}

// eachStep is how often a query over three hours in steps of five minutes looks at what it is over; the answer's own count has
// each look as one sample of each of its series.
const eachStep = 36

// cost is how many samples for each cluster the queries went through, those of the looks among them.
func (c *counted) cost(t *testing.T) (sum int) {
	t.Helper()
	for query, samples := range maps.Clone(c.samples) {
		if inner, is := strings.CutPrefix(query, "quantile_over_time(0.9, ("); is {
			samples += eachStep * c.ask(t, strings.TrimSuffix(inner, ")[3h:5m])"))
		}
		t.Logf("%7d samples a cluster: %.100s", samples/costClusters, query)
		sum += samples
	}
	return sum / costClusters
}

// costs is the past of that fleet, with what the recording rule makes of it.
func costs() *bytes.Buffer {
	h := &history{layout: layouts()["Helm's ServiceMonitor"], families: map[string]*bytes.Buffer{}}
	h.targets(1<<30, start.Add(-time.Hour))
	for i := range costClusters {
		server, pod := serverOf(i), i%costPods
		for kind := range costKinds {
			h.add("argocd_cluster_events", "_total", pod, map[string]string{"server": server, "group": fmt.Sprint(kind / 6), "kind": fmt.Sprint(kind)}, start, now, rising(float64(1+i)))
		}
		h.add(poll.EventsRule, "", pod, map[string]string{"server": server}, start.Add(10*time.Minute), now, constant(costKinds*float64(1+i)/60))
		h.objects(pod, server, start, now, 1000)
		h.reconciles(pod, server, start, now, rising(30))
		for app := range costApps {
			h.app(pod, server, "argocd", fmt.Sprintf("a%d-%d", i, app), start, now)
		}
	}
	return h.text()
}

func serverOf(i int) string { return fmt.Sprintf("https://c%d.example.com", i) }

// What the default metrics cost a Prometheus: how many samples it goes through for each cluster of sixty kinds, of which time is a
// multiple on any machine. By the recording rule it is a twentieth, and the same values.
func TestTheDefaultMetricsCost(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	in := discover.Input{Namespace: "argocd"}
	for i := range costClusters {
		name := fmt.Sprintf("c%d", i)
		in.Secrets = append(in.Secrets, discover.Secret{UID: name, Name: name, Cluster: name, Server: serverOf(i), HasData: true})
	}
	fleet, _, err := discover.Discover(in, discover.Known{}, discover.Options{}, now)
	if err != nil {
		t.Fatal(err)
	}
	prometheus := serve(t, binaries, costs())
	ask := func(metrics []poll.Metric) (*counted, []poll.Fetched) {
		c := &counted{url: prometheus, samples: map[string]int{}}
		between := httptest.NewServer(c)
		defer between.Close()
		client, err := poll.New(poll.Config{URL: between.URL, Timeout: time.Minute, HTTP: config.DefaultHTTPClientConfig,
			Pods: promql.PodsMatcher("pod", plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "rel-argocd-application-controller"}), Namespace: "argocd"})
		if err != nil {
			t.Fatal(err)
		}
		return c, client.Fetch(t.Context(), metrics, fleet, now)
	}
	raw, values := ask(poll.DefaultMetrics())
	recorded, same := ask(poll.RecordedMetrics())
	for i := range values {
		if values[i].Err != "" || len(values[i].Samples) != costClusters {
			t.Errorf("%s: %d samples, %s", values[i].Metric, len(values[i].Samples), values[i].Err)
		}
	}
	if diff := cmp.Diff(values, same, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("by the recording rule (-without +with):\n%s", diff)
	}
	for query := range raw.samples {
		if strings.Contains(query, "timestamp(argocd_cluster_events_total") {
			t.Errorf("the age of events is asked of the counter of each kind: %s", query)
		}
	}
	before, after := raw.cost(t), recorded.cost(t)
	t.Logf("%d samples a cluster without the rule, %d with it", before, after)
	if after*20 > before || after > 1000 {
		t.Errorf("%d samples a cluster with the rule, and %d without", after, before)
	}
}
