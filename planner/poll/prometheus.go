package poll

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"ballast/planner/discover"
	"ballast/planner/poll/meter"
	"ballast/planner/poll/promql"
)

// Querier is what of Prometheus's API is asked.
type Querier interface {
	Query(ctx context.Context, query string, ts time.Time, opts ...promv1.Option) (model.Value, promv1.Warnings, error)
}

var _ Querier = promv1.API(nil)

// Config says which Prometheus is asked, and how.
type Config struct {
	URL         string
	Timeout     time.Duration // of one query
	Within      time.Duration // all queries of a Fetch
	Concurrency int           // queries at once
	Pods        string        // fills {{.pods}} of fleet queries; promql.PodsMatcher writes it
	PodLabel    string        // that these are matched by; fills {{.pod}}, and is pod where it is empty
	Namespace   string        // of these pods; none is any
	HTTP        config.HTTPClientConfig
}

// Fetcher asks for metrics, as a Prometheus does.
type Fetcher interface {
	Fetch(ctx context.Context, metrics []Metric, fleet discover.Fleet, now time.Time) []Fetched
}

var _ Fetcher = (*Prometheus)(nil)

// Prometheus asks a Prometheus for metrics.
type Prometheus struct {
	http    *http.Client                   // nil where the querier was given
	querier func(*meter.Allowance) Querier // of one query
	large   meter.Semaphore                // of large answers
	slots   chan struct{}                  // of requests, those too that nobody waits for any more
	budget  func() *promql.Budget          // of a Fetch
	config  Config
	hung    hung
}

// New makes the client; nothing is asked yet.
func New(c Config) (*Prometheus, error) {
	caller, err := meter.NewHTTPClient(c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("setting up the HTTP client for Prometheus: %w", err)
	}
	client, err := promapi.NewClient(promapi.Config{Address: c.URL, Client: caller})
	if err != nil {
		return nil, fmt.Errorf("setting up the client for Prometheus: %w", err)
	}
	p := NewWith(nil, c)
	p.http = caller
	p.querier = func(a *meter.Allowance) Querier { return promv1.NewAPI(meter.NewClient(client, caller, a)) }
	return p, nil
}

// NewWith asks the given querier; Config's URL and HTTP are not looked at.
func NewWith(q Querier, c Config) *Prometheus {
	c.PodLabel = cmp.Or(c.PodLabel, "pod")
	c.Timeout = cmp.Or(max(c.Timeout, 0), 10*time.Second)
	c.Within = cmp.Or(max(c.Within, 0), time.Minute)
	c.Concurrency = cmp.Or(max(c.Concurrency, 0), 4)
	return &Prometheus{
		querier: func(*meter.Allowance) Querier { return q }, large: meter.NewSemaphore(), slots: make(chan struct{}, 4*c.Concurrency),
		budget: promql.NewBudget, config: c,
	}
}
