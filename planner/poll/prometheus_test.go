package poll

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"ballast/planner/discover"
)

// answers is a Querier that knows some queries, counts them all, and sees how many run at once.
type answers struct {
	mu      sync.Mutex
	asked   []string
	running int
	most    int
	values  map[string]model.Value
	hold    chan struct{} // if set, every query waits until as many run as it has room for
	held    sync.Once
}

func (a *answers) Query(ctx context.Context, query string, _ time.Time, _ ...promv1.Option) (model.Value, promv1.Warnings, error) {
	a.mu.Lock()
	a.asked = append(a.asked, query)
	a.running++
	a.most = max(a.most, a.running)
	full := a.hold != nil && a.running == cap(a.hold)
	value, found := a.values[query]
	a.mu.Unlock()
	if full {
		a.held.Do(func() { close(a.hold) })
	}
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	a.running--
	a.mu.Unlock()
	if !found {
		return nil, nil, errors.New("no such query")
	}
	return value, promv1.Warnings{"of " + query}[:len(query)%2], nil
}

func series(label, value string, v float64) *model.Sample {
	return &model.Sample{Metric: model.Metric{model.LabelName(label): model.LabelValue(value)}, Value: model.SampleValue(v)}
}

func TestFetchReadsAnswers(t *testing.T) {
	fleetMetric := Metric{ID: "m", Query: "qq", Match: Match{Label: "server"}}
	aged := fleetMetric
	aged.AgeQuery = "aa"
	each := Metric{ID: "m", QueryPerCluster: "{{.id}}{{.id}}"}
	at := time.Date(2026, 8, 1, 11, 59, 59, 500_000_000, time.UTC)
	tests := map[string]struct {
		metric Metric
		values map[string]model.Value
		want   Fetched
	}{
		"a vector, sorted, without series of nobody": {
			metric: fleetMetric, values: map[string]model.Value{"qq": model.Vector{series("server", "b", 2), series("server", "", 7), series("x", "y", 8), series("server", "a", math.Inf(1))}},
			want: Fetched{Metric: "m", Samples: []Sample{{Key: "a", Value: math.Inf(1)}, {Key: "b", Value: 2}}},
		},
		"with the age of each, where there is one": {
			metric: aged, values: map[string]model.Value{
				"qq": model.Vector{series("server", "a", 1), series("server", "b", 2), series("server", "c", 3)},
				"aa": model.Vector{series("server", "a", float64(at.UnixMilli())/1000), series("server", "b", math.NaN())}},
			want: Fetched{Metric: "m", Samples: []Sample{{"a", 1, at}, {Key: "b", Value: 2}, {Key: "c", Value: 3}}},
		},
		"a failed age query leaves the age unknown": {
			metric: aged, values: map[string]model.Value{"qq": model.Vector{series("server", "a", 1)}},
			want: Fetched{Metric: "m", Samples: []Sample{{Key: "a", Value: 1}}, Warnings: []string{`the samples' age is unknown: age query "aa": no such query`}},
		},
		"a failed query": {metric: fleetMetric, want: Fetched{Metric: "m", Err: `query "qq": no such query`}},
		"a range vector": {
			metric: fleetMetric, values: map[string]model.Value{"qq": model.Matrix{}},
			want: Fetched{Metric: "m", Err: `query "qq": it answers with a range vector (take rate, max_over_time or the like of it); ` +
				`a query for the fleet must answer with an instant vector that has the label "server"`},
		},
		"a scalar for a fleet": {
			metric: fleetMetric, values: map[string]model.Value{"qq": &model.Scalar{}},
			want: Fetched{Metric: "m", Err: `query "qq": it answers with a scalar; a query for the fleet must answer with an instant vector that has the label "server"`},
		},
		"another label": {
			metric: fleetMetric, values: map[string]model.Value{"qq": model.Vector{series("dest_server", "a", 1)}},
			want: Fetched{Metric: "m", Err: `query "qq": none of its 1 series has the label "server": the first one has "dest_server"`},
		},
		"a native histogram": {
			metric: fleetMetric, values: map[string]model.Value{"qq": model.Vector{{Histogram: &model.SampleHistogram{}}}},
			want: Fetched{Metric: "m", Err: `query "qq": it answers with a native histogram: take histogram_sum, histogram_count or histogram_quantile of it`},
		},
		"a key that no fleet query has": {
			metric: Metric{ID: "m", Query: "{{.server}}"},
			want:   Fetched{Metric: "m", Err: `rendering a query for the fleet: template: query:1:2: executing "query" at <.server>: map has no entry for key "server"`},
		},
		"one for each cluster: scalars, vectors, none and too many": {
			metric: each, values: map[string]model.Value{
				"aa": &model.Scalar{Value: 3}, "bb": model.Vector{series("x", "y", 4)}, "cc": model.Vector{},
				"dd": model.Vector{series("x", "y", 4), series("x", "z", 4)}, "ee": &model.String{}},
			want: Fetched{Metric: "m", Samples: []Sample{{Key: "a", Value: 3}, {Key: "b", Value: 4}}, Warnings: []string{
				`cluster "d": it answers with 2 series: aggregate them into one`,
				`cluster "e": it answers with a string; a query must answer with an instant vector of one series or a scalar`}},
		},
		"every one fails": {
			metric: each, want: Fetched{Metric: "m", Err: `every query failed, the first: cluster "a": no such query`},
		},
		"no template": {metric: Metric{ID: "m", QueryPerCluster: "{{"}, want: Fetched{Metric: "m", Err: "parsing the query template: template: query:1: unclosed action"}},
		"warnings come along": {
			metric: Metric{ID: "m", Query: "q", Match: Match{Label: "server"}}, values: map[string]model.Value{"q": model.Vector{}},
			want: Fetched{Metric: "m", Samples: []Sample{}, Warnings: []string{"of q"}},
		},
	}
	fleet := fleetOf("https://a", "https://b", "https://c", "https://d", "https://e", "-https://f")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewWith(&answers{values: test.values}, Config{Timeout: time.Minute, Concurrency: 1})
			got := p.Fetch(t.Context(), []Metric{test.metric}, fleet, noon)
			if len(got) != 1 {
				t.Fatalf("%d answers", len(got))
			}
			if test.want.Warnings == nil && len(got[0].Warnings) == 0 {
				got[0].Warnings = nil
			}
			if diff := cmp.Diff(test.want, got[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The peer asks once a metric and cluster: 30,000 queries where these are 6: metrics with one age query share its answer.
func TestAFleetOfAnySizeCostsAsManyQueriesAsMetrics(t *testing.T) {
	fleet := bigFleet(5000)
	a := &answers{}
	const pods = `pod=~"argocd-application-controller-[0-9]+"`
	a.values = map[string]model.Value{targetsQuery("pod", pods, "argocd"): model.Vector{}, doubtsQuery("pod", pods, "argocd"): model.Vector{}}
	NewWith(a, Config{Pods: pods, Namespace: "argocd", Concurrency: 1}).Fetch(t.Context(), DefaultMetrics(), fleet, noon)
	want, vars := []string{targetsQuery("pod", pods, "argocd"), doubtsQuery("pod", pods, "argocd")}, newFleetVars("pod", pods, "argocd")
	for _, m := range DefaultMetrics() {
		for _, query := range []string{m.Query, m.AgeQuery} {
			query = strings.NewReplacer("{{.pods}}", pods, "{{.targets}}", vars.Targets, "{{.ofTargets}}", vars.OfTargets).Replace(query)
			if !slices.Contains(want, query) {
				want = append(want, query)
			}
		}
	}
	if len(want) != 8 { // two of them for the targets
		t.Errorf("%d queries are asked", len(want))
	}
	if diff := cmp.Diff(want, a.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// Metrics that share an age query have the ages that it gives, each by its own label.
func TestMetricsShareAnAgeQuery(t *testing.T) {
	at := float64(noon.Unix() - 60)
	a := &answers{values: map[string]model.Value{
		"q": model.Vector{series("server", "https://a", 1)}, "r": model.Vector{series("server", "https://a", 2)}, "s": model.Vector{series("to", "https://a", 3)},
		"age": model.Vector{{Metric: model.Metric{"server": "https://a", "to": "https://a"}, Value: model.SampleValue(at)}}}}
	metric := func(id, query, label string) Metric {
		return Metric{ID: id, Query: query, AgeQuery: "age", Match: Match{Label: label}}
	}
	got := NewWith(a, Config{Concurrency: 1}).Fetch(t.Context(), []Metric{metric("q", "q", "server"), metric("r", "r", "server"), metric("s", "s", "to")}, fleetOf("https://a"), noon)
	for i, f := range got {
		if diff := cmp.Diff([]Sample{{"https://a", float64(i + 1), noon.Add(-time.Minute).UTC()}}, f.Samples); diff != "" || f.Err != "" {
			t.Errorf("%s: %s (-want +got):\n%s", f.Metric, f.Err, diff)
		}
	}
	if diff := cmp.Diff([]string{"q", "age", "r", "s", "age"}, a.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// The peer asks for one cluster after the other. Here each query waits until as many run as may: with one fewer at a
// time the test would time out, with one more it would be seen.
func TestQueriesForEachClusterRunSideBySide(t *testing.T) {
	fleet := bigFleet(1000)
	a := &answers{hold: make(chan struct{}, 8)}
	NewWith(a, Config{Concurrency: 8, Timeout: time.Minute}).Fetch(t.Context(), []Metric{{ID: "m", QueryPerCluster: "{{.id}}"}}, fleet, noon)
	if a.most != 8 || len(a.asked) != 1000 {
		t.Errorf("%d queries, at most %d at once; want 1000 and 8", len(a.asked), a.most)
	}
}

func testClient(t *testing.T, handler http.HandlerFunc, timeout time.Duration) *Prometheus {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	// Within is no test's clock but of those that set it: a loaded machine takes minutes for what takes a second elsewhere.
	p, err := New(Config{URL: server.URL, Timeout: timeout, Within: time.Hour, Concurrency: 2, HTTP: config.DefaultHTTPClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The peer waits for ever for a Prometheus that hangs.
func TestAPrometheusThatHangsIsGivenUpOn(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	release := make(chan struct{})
	p := testClient(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		mu.Unlock()
		_ = r.ParseForm()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, 50*time.Millisecond)
	defer close(release)
	fleet := bigFleet(1000)
	metrics := []Metric{{ID: "each", QueryPerCluster: "{{.id}}"}, {ID: "all", Query: "q", Match: Match{Label: "server"}}}
	fetched := p.Fetch(t.Context(), metrics, fleet, noon)
	mu.Lock()
	defer mu.Unlock()
	if asked > 3 { // two at once; a third may have started while the second was being counted
		t.Errorf("%d of 1001 queries were asked", asked)
	}
	first := fmt.Sprintf("every query failed, the first: cluster %q: no answer within 50ms", fleet.Clusters[0].Shard.ID)
	if !strings.HasPrefix(fetched[0].Err, first) {
		t.Errorf("for each cluster: %s", fetched[0].Err)
	}
	if !strings.HasPrefix(fetched[1].Err, `query "q": no answer within 50ms`) {
		t.Errorf("for all: %s", fetched[1].Err)
	}
}

// hanging is a Querier that does not answer some queries, and answers the others with 2.
type hanging map[string]bool

func (h hanging) Query(ctx context.Context, query string, _ time.Time, _ ...promv1.Option) (model.Value, promv1.Warnings, error) {
	if h[query] {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return &model.Scalar{Value: 2}, nil, nil
}

// Clusters whose queries hang, the first of all, keep the others from being asked once, and not for good.
func TestQueriesThatHangKeepNoOthersForGood(t *testing.T) {
	fleet := bigFleet(50)
	h := hanging{}
	for _, c := range fleet.Clusters[:6] {
		h["a"+c.Shard.ID] = true
	}
	p := NewWith(h, Config{Timeout: 20 * time.Millisecond, Within: time.Hour, Concurrency: 4})
	metrics := []Metric{{ID: "a", QueryPerCluster: "a{{.id}}"}, {ID: "b", QueryPerCluster: "b{{.id}}"}}
	samples := func(minute int) [2]int {
		fetched := p.Fetch(t.Context(), metrics, fleet, noon.Add(time.Duration(minute)*time.Minute))
		return [2]int{len(fetched[0].Samples), len(fetched[1].Samples)}
	}
	samples(0) // four hang
	samples(1) // and two
	for minute := 2; minute < 6; minute++ {
		if got := samples(minute); got != [2]int{44, 50} {
			t.Errorf("after %d minutes, %v clusters have a value", minute, got)
		}
	}
	clear(h)
	for minute := 6; minute < 8; minute++ {
		if got := samples(minute); got != [2]int{50, 50} {
			t.Errorf("after %d minutes none hangs, and %v clusters have a value", minute, got)
		}
	}
	if len(p.hung.at) != 0 {
		t.Errorf("%d are remembered", len(p.hung.at))
	}
}

// TestAPrometheusThatAnswersJustInTimeEndsInTime: each query well within its timeout, and all of them within theirs. What
// is asked of the whole fleet comes first; a metric of which some clusters were not asked for is refused.
func TestAPrometheusThatAnswersJustInTimeEndsInTime(t *testing.T) {
	const answer = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"s"},"value":[1,"2"]}]}}`
	var asked atomic.Int64
	p := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked.Add(1)
		select {
		case <-time.After(400 * time.Millisecond):
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		case <-r.Context().Done():
		}
	}, time.Minute)
	p.config.Within = 5 * time.Second
	began := time.Now()
	fetched := p.Fetch(t.Context(), []Metric{{ID: "each", QueryPerCluster: "{{.id}}"}, {ID: "all", Query: "q", Match: Match{Label: "server"}}}, bigFleet(1000), noon)
	if took := time.Since(began); took > 30*time.Second || asked.Load() > 100 {
		t.Errorf("it took %s, and %d of 1001 queries were asked", took, asked.Load())
	}
	if err := fetched[0].Err; !strings.Contains(err, "of 1000 clusters were not asked in time") || fetched[0].Samples != nil {
		t.Errorf("for each cluster: %q, %d samples", err, len(fetched[0].Samples))
	}
	if diff := cmp.Diff(Fetched{Metric: "all", Samples: []Sample{{Key: "s", Value: 2}}}, fetched[1]); diff != "" {
		t.Errorf("for all (-want +got):\n%s", diff)
	}
}

func TestAnEndedContextEndsTheFetch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := testClient(t, func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		cancel()
		<-r.Context().Done()
	}, time.Hour)
	fetched := p.Fetch(ctx, []Metric{{ID: "all", Query: "q"}}, discover.Fleet{}, noon)
	if !strings.Contains(fetched[0].Err, "context canceled") {
		t.Errorf("error %q", fetched[0].Err)
	}
}

func TestWhatPrometheusSaysReachesTheReader(t *testing.T) {
	big := `{"status":"success","data":{"resultType":"vector","result":[]},"x":"` + strings.Repeat("x", 1<<20)
	tests := map[string]struct {
		handler http.HandlerFunc
		want    Fetched
		wantErr string
	}{
		"a vector, asked at the time given": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, `{"status":"success","warnings":["partial"],"data":{"resultType":"vector","result":[{"metric":{"server":%q},"value":[%s,"1.5"]}]}}`,
					r.FormValue("query"), r.FormValue("time"))
			},
			want: Fetched{Metric: "m", Samples: []Sample{{Key: "q", Value: 1.5}}, Warnings: []string{"partial"}},
		},
		"a bad query": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected }"}`)
			},
			wantErr: `query "q": bad_data: parse error: unexpected }`,
		},
		"no Prometheus": {
			handler: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusNotFound) },
			wantErr: `query "q": client_error: client error: 404`,
		},
		"an answer without end": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				for _, err := fmt.Fprint(w, big); err == nil; {
					_, err = fmt.Fprint(w, big)
				}
			},
			wantErr: `query "q": the answer would take more than 72 MiB of memory: let the query aggregate by the label that it is matched by`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fetched := testClient(t, test.handler, time.Minute).Fetch(t.Context(), []Metric{{ID: "m", Query: "q", Match: Match{Label: "server"}}}, discover.Fleet{}, noon)
			if test.wantErr != "" {
				test.want = Fetched{Metric: "m", Err: test.wantErr}
			}
			if diff := cmp.Diff(test.want, fetched[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHTTPOptionsAreUsed(t *testing.T) {
	var mu sync.Mutex
	var user, password string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		user, password, _ = r.BasicAuth()
	}))
	defer server.Close()
	http := config.DefaultHTTPClientConfig
	http.BasicAuth = &config.BasicAuth{Username: "u", Password: "p"}
	p, err := New(Config{URL: server.URL, HTTP: http})
	if err != nil {
		t.Fatal(err)
	}
	p.Fetch(t.Context(), []Metric{{ID: "m", Query: "q"}}, discover.Fleet{}, noon)
	mu.Lock()
	defer mu.Unlock()
	if user != "u" || password != "p" {
		t.Errorf("user %q, password %q", user, password)
	}
	http.TLSConfig.CAFile = "testdata/none.pem"
	if _, err := New(Config{URL: "https://x", HTTP: http}); err == nil || !strings.Contains(err.Error(), "setting up the HTTP client for Prometheus") {
		t.Errorf("a missing CA file: %v", err)
	}
	if _, err := New(Config{URL: "://"}); err == nil {
		t.Error("a URL that is none is taken")
	}
}

func TestTheDefaultWeightsFitTheDefaultMetrics(t *testing.T) {
	weights, sum := DefaultWeights(), 0.0
	var ids []string
	for _, m := range DefaultMetrics() {
		ids = append(ids, m.ID)
		sum += weights[m.ID]
	}
	if len(weights) != len(ids) || sum != 1 || !slices.IsSorted([]float64{weights["apps"], weights["events"], weights["objects"]}) {
		t.Errorf("weights %v of metrics %v sum to %v", weights, ids, sum)
	}
}
