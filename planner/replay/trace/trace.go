// Package trace is a recorded load: which clusters there were, and what each metric said of them, step by step. It
// reads and writes the two formats that a trace has, and makes synthetic ones.
package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"ballast/planner/plan"
)

// Kind is what the first line of a trace says it is.
const Kind = "LoadTrace"

// LoadMetric is the one metric of a trace that holds loads which somebody has worked out already.
const LoadMetric = "load"

// The bounds of a trace: more is a mistake, or somebody who wants the memory.
const (
	MostClusters = 100_000
	MostMetrics  = 64
	maxLine      = 64 << 20 // 100,000 clusters with 64 metrics take some 60 MB
	longestWord  = 2048     // of a name, and of a server's URL
	mostReplicas = 10_000
	longestGap   = 31 * 24 * time.Hour // cycles run in it all the same
)

// Header is what holds for all of a trace. Step is how long a sample stands; Replicas is how many there were when it
// began, 0 where nobody wrote it.
type Header struct {
	Step     time.Duration
	Metrics  []string
	Replicas int
}

// Cluster is a destination cluster. Replica is where it was when it was seen first, NoReplica where nobody wrote it.
type Cluster struct {
	Name, Server, UID string
	Replica           int
}

// Step is all samples of one time. Roster counts how often the clusters changed: of two steps with the same number they
// are the same. Values has a row for each metric and a value for each cluster, NaN where there is none. Neither is
// written to again.
type Step struct {
	At       time.Time
	Roster   int
	Clusters []Cluster
	Values   [][]float64
}

// Source is a trace as it is read, whatever it is read from. Next ends with io.EOF. Share is how much of it was read, 0
// to 1.
type Source interface {
	Header() Header
	Next() (Step, error)
	Share() float64
}

// named fills in what follows from the name.
func (c Cluster) named() Cluster {
	if c.Server == "" {
		c.Server = "https://" + c.Name
	}
	if c.UID == "" {
		c.UID = "uid-" + c.Name
	}
	c.Server = plan.NormalizeServer(c.Server)
	return c
}

func (c Cluster) check() error {
	for _, word := range []struct{ what, is string }{{"name", c.Name}, {"server", c.Server}, {"uid", c.UID}} {
		if len(word.is) > longestWord {
			return fmt.Errorf("cluster %q: its %s has %d bytes, more than the %d that any has",
				c.Name[:min(len(c.Name), 60)], word.what, len(word.is), longestWord)
		}
	}
	switch {
	case c.Name == "":
		return fmt.Errorf("a cluster has no name: write that of its Secret")
	case c.Replica < plan.NoReplica || c.Replica >= mostReplicas:
		return fmt.Errorf("cluster %q: replica %d is none from 0 to %d; leave it out where it is not known", c.Name,
			c.Replica, mostReplicas-1)
	}
	return nil
}

// checkRoster refuses clusters that a fleet cannot have, and sorts them by name.
func checkRoster(clusters []Cluster) error {
	if len(clusters) > MostClusters {
		return fmt.Errorf("it has %d clusters, more than %d", len(clusters), MostClusters)
	}
	seen := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		if err := c.check(); err != nil {
			return err
		}
		if seen[c.Name] {
			return fmt.Errorf("cluster %q stands twice: give each a name of its own", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

func (h Header) check() error {
	switch {
	case h.Step < time.Second || h.Step > 24*time.Hour:
		return fmt.Errorf("step: %s is none from 1s to 24h", h.Step)
	case len(h.Metrics) == 0:
		return fmt.Errorf("metrics: there is none; name the columns, as [%q]", LoadMetric)
	case len(h.Metrics) > MostMetrics:
		return fmt.Errorf("metrics: there are %d, more than %d", len(h.Metrics), MostMetrics)
	case h.Replicas < 0 || h.Replicas > mostReplicas:
		return fmt.Errorf("replicas: %d is none from 1 to %d; leave it out where it is not known", h.Replicas,
			mostReplicas)
	}
	for i, id := range h.Metrics {
		if id == "" || len(id) > longestWord || slices.Contains(h.Metrics[:i], id) {
			return fmt.Errorf("metrics[%d]: each has a name of its own", i)
		}
	}
	return nil
}

// checkValue refuses what is no measurement; NaN is none at all.
func checkValue(metric, cluster string, v float64) error {
	if math.IsInf(v, 0) || v < 0 {
		return fmt.Errorf("metric %q of cluster %q: %v is no measurement; a value is finite and not negative, and null or empty where there is none",
			metric, cluster, v)
	}
	return nil
}

// follows refuses a step that is not after the one before.
func follows(before, at time.Time) error {
	if at.Year() < 1970 || at.Year() > 9999 {
		return fmt.Errorf("the time %s is none of a recording", at.Format(time.RFC3339))
	}
	if !before.IsZero() && at.Sub(before) > longestGap {
		return fmt.Errorf("%s comes %s after the step before, more than %s: make two traces of it",
			at.Format(time.RFC3339), at.Sub(before), longestGap)
	}
	if !before.IsZero() && !at.After(before) {
		return fmt.Errorf("%s comes after %s: steps stand in the order of time, each once", at.Format(time.RFC3339),
			before.Format(time.RFC3339))
	}
	return nil
}

// All reads a source to its end: what a test, or whoever looks at a short trace, wants of it.
func All(s Source) (steps []Step, err error) {
	for {
		step, err := s.Next()
		if errors.Is(err, io.EOF) {
			return steps, nil
		}
		if err != nil {
			return steps, err
		}
		steps = append(steps, step)
	}
}
