// Package replay feeds a recorded load through the planner's own decision, at full speed: what a configuration would
// have done with it, and how level the fleet would have been. A trace goes in, a report comes out.
package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/loads"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/replay/trace"
	"ballast/planner/sharding"
)

// Setup is one of those that are compared: a configuration, or one of Argo CD's own algorithms, which the planner then
// only watches.
type Setup struct {
	Name      string
	Config    config.PlannerConfig
	Algorithm sharding.Algorithm // empty: ballast places the clusters
}

// The setups that need no file.
const (
	Shipped = "shipped" // every setting at its default
	LPT     = "lpt"     // partitions made anew and voted on, as before sticky
)

// Known is the setup of that name.
func Known(name string) (Setup, bool) {
	s := Setup{Name: name, Config: config.Default()}
	switch algorithm := sharding.Algorithm(name); {
	case name == Shipped:
	case name == LPT:
		s.Config.Partition = config.Partition{LPT: &config.LPT{}}
		s.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(24 * time.Hour),
			MinSamples: 10}}
	case slices.Contains(algorithms(), algorithm):
		s.Algorithm = algorithm
	default:
		return Setup{}, false
	}
	return s, true
}

func algorithms() []sharding.Algorithm {
	return []sharding.Algorithm{sharding.Legacy, sharding.RoundRobin, sharding.ConsistentHashing}
}

// Names are the setups that Known knows.
func Names() []string {
	names := []string{Shipped, LPT}
	for _, a := range algorithms() {
		names = append(names, string(a))
	}
	return names
}

// replayed is the configuration as it runs here: what is decided comes about, whatever mode the file is in; Argo CD's
// own algorithms are watched. Loads that somebody has worked out already take the place of the metrics.
func (s Setup) replayed(h trace.Header) config.PlannerConfig {
	c := s.Config
	if c.Mode = plan.Enforce; s.Algorithm != "" {
		c.Mode = plan.Observe
	}
	if !Worked(h) {
		return c
	}
	c.Poll = c.Poll.WithPrometheus()
	c.Poll.Prometheus.Metrics = []config.Metric{{ID: trace.LoadMetric, Query: trace.LoadMetric,
		Match: &config.Match{Label: "server", To: config.MatchServer}}}
	c.Index = config.Index{PNorm: &config.PNorm{P: "1", Weights: map[string]config.Decimal{trace.LoadMetric: "1"}}}
	return c
}

// Worked reports whether the trace has loads, and not what loads are made of.
func Worked(h trace.Header) bool { return slices.Equal(h.Metrics, []string{trace.LoadMetric}) }

// column is where the trace has a metric, and by what of a cluster its samples are joined.
type column struct {
	at int
	by poll.MatchTo
}

// columnsOf finds what the configuration asks for; what the trace does not have is an error.
func columnsOf(c config.PlannerConfig, h trace.Header) ([]column, error) {
	var columns []column
	var lacks []string
	for _, m := range loads.MetricsOf(c) {
		by := m.Match.To
		if m.PerCluster() {
			by = poll.ToID
		}
		at := slices.Index(h.Metrics, m.ID)
		if at < 0 {
			lacks = append(lacks, m.ID)
		}
		columns = append(columns, column{at, by})
	}
	if len(lacks) > 0 {
		return nil, fmt.Errorf("poll.prometheus.metrics: the configuration asks for %s, and the trace has %s: "+
			"record it with this configuration, or name in it what the trace has; one whose only metric is called %q is taken for the load itself",
			strings.Join(lacks, ", "), strings.Join(h.Metrics, ", "), trace.LoadMetric)
	}
	return columns, nil
}

// key is what a sample of a cluster is joined by.
func (c column) key(cluster trace.Cluster) string {
	if c.by == poll.ToName || c.by == poll.ToID {
		return cluster.Name
	}
	return cluster.Server
}

// sharedServers reports whether several clusters have one server: Argo CD takes them for one.
func sharedServers(clusters []trace.Cluster) bool {
	servers := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		servers[c.Server] = true
	}
	return len(servers) < len(clusters)
}
