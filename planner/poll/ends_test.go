package poll

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"ballast/planner/poll/promql"
)

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	})
	return listener.Addr().String()
}

// withTokens is a client that gets its tokens there.
func withTokens(t *testing.T, prometheus, tokenURL string) *Prometheus {
	t.Helper()
	c := config.DefaultHTTPClientConfig
	c.OAuth2 = &config.OAuth2{ClientID: "ballast", ClientSecret: "CANARY", TokenURL: tokenURL}
	p, err := New(Config{URL: prometheus, Timeout: time.Second, Within: 2 * time.Second, Pods: `pod=~"c-.*"`, Namespace: "argocd", HTTP: c})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fetchOrFail fails where a Fetch of the default metrics lasts longer than it may.
func fetchOrFail(t *testing.T, p *Prometheus) []Fetched {
	t.Helper()
	came := make(chan []Fetched, 1)
	go func() { came <- p.Fetch(t.Context(), DefaultMetrics(), fleetOf("https://a"), noon) }()
	select {
	case got := <-came:
		return got
	case <-time.After(30 * time.Second):
		t.Fatal("the Fetch has 2 s, and goes on after 30")
		return nil
	}
}

// prometheus/common asks for a token under no deadline, and every query waits for it.
func TestATokenEndpointThatHangsEndsNoPlanner(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, labelled("server", "a")) }))
	defer prometheus.Close()
	p := withTokens(t, prometheus.URL, "http://"+silent(t)+"/token")
	for range 2 {
		for _, f := range fetchOrFail(t, p) {
			if !strings.Contains(f.Err, "asking poll.prometheus.http.oauth2.token_url for a token: context deadline exceeded") {
				t.Errorf("%s: %q", f.Metric, f.Err)
			}
		}
	}
}

// A token that ends is asked for again, by a planner that ran for long.
func TestATokenEndpointThatHangsLaterEndsNoPlanner(t *testing.T) {
	var with atomic.Value
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		with.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	defer prometheus.Close()
	release := make(chan struct{})
	var asked atomic.Int32
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			<-release
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"T1","token_type":"Bearer","expires_in":1}`)
	}))
	defer tokens.Close()
	defer close(release)
	p := withTokens(t, prometheus.URL, tokens.URL)
	hangs := 0
	for _, f := range fetchOrFail(t, p) {
		if strings.Contains(f.Err, "for a token: context deadline exceeded") {
			hangs++
		}
	}
	if hangs != len(DefaultMetrics()) || with.Load() != "Bearer T1" {
		t.Errorf("%d metrics tell of it, and Prometheus was asked with %q", hangs, with.Load())
	}
}

// deaf is a Querier that no context ends.
type deaf struct {
	release chan struct{}
	asked   atomic.Int32
}

func (d *deaf) Query(context.Context, string, time.Time, ...promv1.Option) (model.Value, promv1.Warnings, error) {
	d.asked.Add(1)
	<-d.release
	return model.Vector{}, nil, nil
}

// Whatever keeps a request from ending keeps neither the Fetch from it nor, without end, goroutines.
func TestAFetchEndsWhateverItsRequestsDo(t *testing.T) {
	d := &deaf{release: make(chan struct{})}
	p := NewWith(d, Config{Timeout: 20 * time.Millisecond, Within: time.Hour, Concurrency: 1})
	fetch := func() string {
		return p.Fetch(t.Context(), []Metric{{ID: "m", QueryPerCluster: "q"}}, bigFleet(1), noon)[0].Err
	}
	for range 4 {
		if got := fetch(); !strings.Contains(got, "no answer within 20ms: the request does not end: context deadline exceeded") {
			t.Errorf("%q", got)
		}
	}
	if got := fetch(); !strings.Contains(got,
		"no answer within 20ms: requests of before do not end: context deadline exceeded") || d.asked.Load() != 4 {
		t.Errorf("%d were asked: %q", d.asked.Load(), got)
	}
	close(d.release)
	for range cap(p.slots) { // those of before give theirs back
		p.slots <- struct{}{}
	}
	for range cap(p.slots) {
		<-p.slots
	}
	if got := fetch(); got != "" {
		t.Errorf("once requests end: %q", got)
	}
}

// Each rendering is within its bounds, and so are all of them: neither is one kept before its turn.
func TestAllTemplatesTogetherAreBounded(t *testing.T) {
	const spent = "of 5000 clusters were not asked: the query templates of all metrics and clusters together take more than 128 MiB of text " +
		"or 512 Mi steps of regular expressions: shorten them, or ask for all clusters by one query"
	for name, test := range map[string]struct {
		template string
		asked    int32
	}{
		"long ones":                  {`{{ repeat 65000 "a" }}`, 33}, // 65,000 bytes are made, and rendered
		"regular expressions":        {`{{ if regexMatch "(a|aa|[ab]*a){0,60}b" (repeat 4000 "a") }}{{ end }}q`, 5},
		"what fails has a cost, too": {`{{ $x := repeat 65000 "a" }}{{ $x }}{{ $x }}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := &longest{}
			p := NewWith(q, Config{Timeout: time.Hour, Within: time.Hour, Concurrency: 1})
			p.budget = func() *promql.Budget { return promql.NewBudgetOf(4<<20, 16<<20) }
			metrics := []Metric{{ID: "a", QueryPerCluster: test.template}, {ID: "b", QueryPerCluster: test.template}}
			for _, f := range p.Fetch(t.Context(), metrics, bigFleet(5000), noon) {
				if !strings.HasSuffix(f.Err, spent) || f.Samples != nil {
					t.Errorf("%s: %q, %d samples", f.Metric, f.Err, len(f.Samples))
				}
			}
			if got := q.asked.Load(); got != test.asked {
				t.Errorf("%d queries were asked, want %d", got, test.asked)
			}
		})
	}
}

// longest is a Querier that answers 2.
type longest struct{ asked atomic.Int32 }

func (q *longest) Query(context.Context, string, time.Time, ...promv1.Option) (model.Value, promv1.Warnings, error) {
	q.asked.Add(1)
	return &model.Scalar{Value: 2}, nil, nil
}

// A Fetch whose time is over renders nothing more.
func TestNothingIsRenderedOnceTheTimeIsOver(t *testing.T) {
	q := &longest{}
	p := NewWith(q, Config{Timeout: time.Hour, Within: time.Nanosecond})
	got := p.Fetch(t.Context(), []Metric{{ID: "each", QueryPerCluster: "q"}, {ID: "all", Query: "q", Match: Match{Label: "server"}}},
		bigFleet(1000), noon)
	want := []Fetched{
		{Metric: "each", Err: "1000 of 1000 clusters were not asked in time, since their queries take too long: " +
			"ask for all of them by one query, or set a longer interval"},
		{Metric: "all", Err: errLate.Error()},
	}
	if diff := cmp.Diff(want, got); diff != "" || q.asked.Load() != 0 {
		t.Errorf("%d were asked (-want +got):\n%s", q.asked.Load(), diff)
	}
}

// As many queries as there are clusters, for each metric, take room before one is asked.
func TestAllQueriesAreBounded(t *testing.T) {
	var metrics []Metric
	for i := range 64 {
		metrics = append(metrics, Metric{ID: fmt.Sprint(i), QueryPerCluster: "q"})
	}
	refused, late := 0, 0
	for _, f := range NewWith(&longest{}, Config{Within: time.Nanosecond}).Fetch(t.Context(), metrics, bigFleet(5000), noon) {
		switch {
		case f.Err == "its queries, with all others, would take more than 64 MiB of memory: ask for all clusters by one query":
			refused++
		case strings.HasPrefix(f.Err, "5000 of 5000 clusters were not asked in time"):
			late++
		default:
			t.Errorf("%s: %q", f.Metric, f.Err)
		}
	}
	if refused != 11 || late != 53 { // 5,000 of 250 bytes are 1.2 MiB
		t.Errorf("%d metrics are refused, %d are asked for", refused, late)
	}
}

// complaining is a Querier that says at length why it does not answer.
type complaining struct{}

func (complaining) Query(context.Context, string, time.Time, ...promv1.Option) (model.Value, promv1.Warnings, error) {
	return nil, nil, errors.New(strings.Repeat("x", 2000))
}

// Why each query failed takes room until all are asked.
func TestAllErrorsTogetherAreBounded(t *testing.T) {
	var metrics []Metric
	for i := range 13 {
		metrics = append(metrics, Metric{ID: fmt.Sprint(i), QueryPerCluster: "q"})
	}
	told, untold := 0, 0
	for _, f := range NewWith(complaining{}, Config{Within: time.Hour, Concurrency: 1}).Fetch(t.Context(), metrics, bigFleet(5000), noon) {
		switch {
		case strings.HasSuffix(f.Err, "xxx…"):
			told++
		case strings.HasSuffix(f.Err, ": no answer, and the reasons of all queries together would take more than 64 MiB of memory"):
			untold++
		default:
			t.Errorf("%s: %q", f.Metric, f.Err)
		}
	}
	if told != 11 || untold != 2 { // beside 16 MiB of queries 51,000 of 1,003 bytes
		t.Errorf("of %d metrics the first error is told, of %d not", told, untold)
	}
}

// What remains of a round of renderings is what its budget has left.
func TestABudgetIsOfOneRound(t *testing.T) {
	fleet := fleetOf("https://a")
	q := &longest{}
	p := NewWith(q, Config{Within: time.Hour})
	p.budget = func() *promql.Budget { return promql.NewBudgetOf(1, 1) } // of which one rendering leaves nothing
	for range 3 {
		if got := p.Fetch(t.Context(), []Metric{{ID: "m", QueryPerCluster: "q"}}, fleet, noon)[0]; len(got.Samples) != 1 {
			t.Errorf("%+v", got)
		}
	}
}
