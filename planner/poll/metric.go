// Package poll asks a Prometheus for a fleet's metrics. All but prometheus.go, fetch.go and ask.go are functions of
// values.
package poll

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MatchTo says what of a cluster the label of a metric names.
type MatchTo string

// What a label may name.
const (
	ToServer MatchTo = "server" // the server URL; also the zero value's meaning
	ToName   MatchTo = "name"   // data.name
	ToID     MatchTo = "id"     // the Secret's name

	ToReplica MatchTo = "replica" // the name of a replica's pod, and nothing of a cluster
)

// Match joins the series of one answer to the clusters. Aliases says what a label's value stands for where it is no
// cluster's: a proxy's URL, an old name.
type Match struct {
	Label   string            `json:"label"`
	To      MatchTo           `json:"to,omitempty"`
	Aliases map[string]string `json:"aliases,omitempty"`
}

// Metric is one measure of work. Query asks for the whole fleet at once, QueryPerCluster for one cluster; exactly one
// of them is set. AgeQuery, for fleet queries, gives the Unix time in seconds of each cluster's newest sample under the
// same label: an instant answer carries only the time of the question. NoData is the value of a cluster that never had
// one.
type Metric struct {
	ID              string   `json:"id"`
	Query           string   `json:"query,omitempty"`
	QueryPerCluster string   `json:"queryPerCluster,omitempty"`
	AgeQuery        string   `json:"ageQuery,omitempty"`
	Match           Match    `json:"match,omitzero"`
	NoData          *float64 `json:"noData,omitempty"`
}

// PerCluster reports whether each cluster is asked for alone.
func (m Metric) PerCluster() bool { return m.QueryPerCluster != "" }

// ByDestination reports whether the metric tells clusters apart by the destination of their Applications, which Argo CD
// 3.0.0 to 3.0.5 leaves empty where those give their cluster's name.
func (m Metric) ByDestination() bool {
	return m.Match.Label == destination || slices.ContainsFunc([]string{destination, "argocd_app_info", "argocd_app_reconcile"}, func(name string) bool {
		return strings.Contains(m.Text(), name)
	})
}

// destination is the label of an Application's destination in Argo CD's metrics.
const destination = "dest_server"

// Text is the metric's query as it is written.
func (m Metric) Text() string {
	if m.PerCluster() {
		return m.QueryPerCluster
	}
	return m.Query
}

// Sample is one value of an answer. Key is the label's value, or the cluster's ID where it was asked for alone. At is
// when it was scraped; zero is unknown.
type Sample struct {
	Key   string
	Value float64
	At    time.Time
}

// sampleJSON carries the value as text, since JSON has no NaN.
type sampleJSON struct {
	Key   string    `json:"key"`
	Value string    `json:"value"`
	At    time.Time `json:"at,omitzero"`
}

// MarshalJSON writes every float64, NaN and the infinities too.
func (s Sample) MarshalJSON() ([]byte, error) {
	return json.Marshal(sampleJSON{s.Key, strconv.FormatFloat(s.Value, 'g', -1, 64), s.At})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Sample) UnmarshalJSON(text []byte) error {
	var j sampleJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("reading a sample: %w", err)
	}
	v, err := strconv.ParseFloat(j.Value, 64)
	if err != nil {
		return fmt.Errorf("reading the sample of %q: %w", j.Key, err)
	}
	*s = Sample{Key: j.Key, Value: v, At: j.At}
	return nil
}

// Fetched is all that was answered for one metric, as it came: the replayable input of measure.Join. Err says why there
// is no answer; Warnings are what went wrong beside one.
type Fetched struct {
	Metric   string   `json:"metric"`
	Samples  []Sample `json:"samples,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Err      string   `json:"err,omitempty"`
}
