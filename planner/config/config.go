// Package config is what the planner's configuration file says: its types, its defaults, and what follows from them.
// Package configfile reads it, package validation judges it.
package config

import (
	"time"

	promconfig "github.com/prometheus/common/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/config/httpclient"
	"ballast/planner/plan"
)

// Kind is the configuration file's kind; its apiVersion is the plan's.
const Kind = "PlannerConfig"

// PlannerConfig is the configuration file. In every phase exactly one of the fields tagged `phase:"implementation"` is
// set.
type PlannerConfig struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Mode       plan.Mode   `json:"mode"`
	Interval   Duration    `json:"interval"`
	Target     plan.Target `json:"target"` // kind, name and container may be empty: found by label, by command
	Plan       Objects     `json:"plan"`
	Discover   Discover    `json:"discover"`
	Poll       Poll        `json:"poll"`
	Normalize  Normalize   `json:"normalize"`
	Index      Index       `json:"index"`
	Partition  Partition   `json:"partition"`
	Evaluate   Evaluate    `json:"evaluate"`
	Size       Size        `json:"size,omitzero"`
	Change     Change      `json:"change"`
	Rollout    Rollout     `json:"rollout"`
	Failover   *Failover   `json:"failover" null:"off"` // nil: no replica's clusters move because it is unwell
	Telemetry  Telemetry   `json:"telemetry,omitzero"`
}

// Objects names the ConfigMaps in the target's namespace that the planner writes.
type Objects struct {
	ConfigMap string `json:"configMap"`
	History   string `json:"history"`
}

// Discover says which Secrets are clusters.
type Discover struct {
	Selector  metav1.LabelSelector `json:"selector" merge:"no"` // given, it replaces the default whole
	MaxShrink Percent              `json:"maxShrink"`
}

// Poll says how metrics are read, and how much of the fleet they must cover to be believed.
type Poll struct {
	MinCoverage Decimal     `json:"minCoverage"` // share of the clusters with a value last time, 0 to 1
	MaxDrop     Percent     `json:"maxDrop"`
	Prometheus  *Prometheus `json:"prometheus,omitempty" phase:"implementation"`
	Pods        *Pods       `json:"pods,omitempty" phase:"implementation"`
}

// Pods reads the default metrics of the application-controllers' own pods, where there is no Prometheus.
type Pods struct{}

// Mend says what is to be done about a field that poll.pods does not have.
func (*Pods) Mend(field string) string {
	if field == "metrics" {
		return "is not a field: queries of your own need a Prometheus: write them in poll.prometheus, instead of poll.pods"
	}
	return "is not a field: poll.pods has no settings: write pods: {}"
}

// podsMaxAge is how old what a pod showed last may be: the default of a Prometheus.
const podsMaxAge = 10 * time.Minute

// MaxAge is how old a sample may be and count.
func (o Poll) MaxAge() time.Duration {
	if o.Prometheus == nil {
		return podsMaxAge
	}
	return time.Duration(o.Prometheus.MaxAge)
}

// WithPrometheus is the poll with a Prometheus of its own to change: the configured one, else the default in the pods'
// place.
func (o Poll) WithPrometheus() Poll {
	p := Default().Poll.Prometheus
	if o.Prometheus != nil {
		*p = *o.Prometheus
	}
	o.Prometheus, o.Pods = p, nil
	return o
}

// Timeout bounds one query; there is none without a Prometheus.
func (o Poll) Timeout() time.Duration {
	if o.Prometheus == nil {
		return 0
	}
	return time.Duration(o.Prometheus.Timeout)
}

// Prometheus is a Prometheus server, or anything that answers its query API. A nil Metrics is the default set.
type Prometheus struct {
	URL         string            `json:"url"`
	Timeout     Duration          `json:"timeout"`
	Concurrency int               `json:"concurrency"`
	MaxAge      Duration          `json:"maxAge"`
	HTTP        httpclient.Config `json:"http"`

	PodLabel string            `json:"podLabel,omitempty"`                // of the series, with the pod's name
	Matchers map[string]string `json:"matchers,omitempty" null:"default"` // labels that every series has which is of this Argo CD
	Recorded bool              `json:"recorded,omitempty"`                // the default set by the recording rule of components/recording-rules
	Metrics  []Metric          `json:"metrics" null:"default"`
}

// Metric is one number a cluster: by one query for the whole fleet, whose samples are joined to clusters by a label, or
// by a query a cluster, a Go template. AgeQuery's values are the unix times of the samples behind Query.
type Metric struct {
	ID              string   `json:"id"`
	Query           string   `json:"query,omitempty"`
	QueryPerCluster string   `json:"queryPerCluster,omitempty"`
	AgeQuery        string   `json:"ageQuery,omitempty"`
	Match           *Match   `json:"match,omitempty"`
	NoData          *Decimal `json:"noData,omitempty"` // for a cluster that never had a value; nil: such a cluster has none
}

// OfClusters are the metrics that say something of clusters. nil is the default set: metrics of replicas take nothing's
// place.
func (s Prometheus) OfClusters() []Metric {
	if s.Metrics == nil || len(s.Metrics) > 0 && len(s.Metrics) == len(s.OfReplicas()) {
		return nil
	}
	out := []Metric{}
	for _, m := range s.Metrics {
		if !m.OfReplicas() {
			out = append(out, m)
		}
	}
	return out
}

// OfReplicas are the metrics that say something of replicas, by the names of their pods: inputs of size rules, and no
// load.
func (s Prometheus) OfReplicas() (out []Metric) {
	for _, m := range s.Metrics {
		if m.OfReplicas() {
			out = append(out, m)
		}
	}
	return out
}

// OfReplicas reports whether its samples are replicas', and not clusters'.
func (m Metric) OfReplicas() bool { return m.Match != nil && m.Match.To == MatchReplica }

// Match joins a sample to the cluster whose field To equals the sample's Label, after Aliases (label value: field
// value).
type Match struct {
	Label   string            `json:"label"`
	To      MatchField        `json:"to"`
	Aliases map[string]string `json:"aliases,omitempty" null:"default"`
}

// MatchField is a cluster's field that samples are joined by.
type MatchField string

// The fields: the server URL, the cluster's own name (data.name), the name of its Secret. MatchReplica is none of a
// cluster: the label has the name of a replica's pod.
const (
	MatchServer  MatchField = "server"
	MatchName    MatchField = "name"
	MatchID      MatchField = "id"
	MatchReplica MatchField = "replica"
)

// Normalize makes metrics of different units comparable.
type Normalize struct {
	Reference *Reference `json:"reference,omitempty" phase:"implementation"`
	Robust    *Robust    `json:"robust,omitempty" phase:"implementation"`
	MinMax    *MinMax    `json:"minMax,omitempty" phase:"implementation"`
	None      *None      `json:"none,omitempty" phase:"implementation"`
}

// Reference divides by the fleet's total when the first plan was made.
type Reference struct{}

// Robust scales by median and interquartile range and lifts the scores above zero.
type Robust struct {
	PositiveOffset Decimal `json:"positiveOffset"`
}

// MinMax scales to 0 to 1.
type MinMax struct{}

// None leaves a phase out.
type None struct{}

// Index makes one load of a cluster's metrics, and bounds what Dimensions there are beside it.
type Index struct {
	PNorm      *PNorm      `json:"pNorm,omitempty" phase:"implementation"`
	Dimensions *Dimensions `json:"dimensions,omitempty" null:"default"`
}

// PNorm is the weighted p-norm. Nil Weights are those of the default metrics.
type PNorm struct {
	P       Decimal            `json:"p"`
	Weights map[string]Decimal `json:"weights" null:"default"`
}

// Partition gives clusters to replicas. Nil MinReplicas is min(2, found), nil MaxReplicas max(16, found), where found
// is the replicas of the first plan; nil Replicas lets the partition choose by Capacity, and without one leaves the
// number as it is.
type Partition struct {
	Sticky                *Sticky   `json:"sticky,omitempty" phase:"implementation"`
	LPT                   *LPT      `json:"lpt,omitempty" phase:"implementation"`
	MinReplicas           *int      `json:"minReplicas" null:"default"`
	MaxReplicas           *int      `json:"maxReplicas" null:"default"`
	Replicas              *Replicas `json:"replicas" null:"default"`
	MaxClustersPerReplica int       `json:"maxClustersPerReplica"` // 0 is no cap
	Capacity              *Decimal  `json:"capacity" null:"default"`
	Groups                []Group   `json:"groups,omitempty" null:"default"`
}

// Group is clusters that stay on one replica, or of which no two share one, by the labels of their Secrets.
type Group struct {
	Name     string                `json:"name"`
	Together *metav1.LabelSelector `json:"together,omitempty" phase:"implementation"`
	Apart    *metav1.LabelSelector `json:"apart,omitempty" phase:"implementation"`
}

// Sticky starts from the plan in force. High, Low and Drain are shares of what a replica may carry: one above High
// gives clusters up, to others that stay at or below Low; the highest goes once all it has fits on the others at or
// below Drain, for as long as DownWindow. MaxMoves are those of one decision; 0 is no limit.
type Sticky struct {
	High       Decimal  `json:"high"`
	Low        Decimal  `json:"low"`
	Drain      Decimal  `json:"drain"`
	DownWindow Duration `json:"downWindow"`
	MaxMoves   int      `json:"maxMoves"`
}

// LPT is longest processing time first.
type LPT struct{}

// Evaluate decides when a partition becomes the plan.
type Evaluate struct {
	CostBenefit *CostBenefit `json:"costBenefit,omitempty" phase:"implementation"`
	MostWanted  *MostWanted  `json:"mostWanted,omitempty" phase:"implementation"`
	None        *None        `json:"none,omitempty" phase:"implementation"`
}

// CostBenefit takes moves that would have saved more overload over the last Horizon than they cost.
type CostBenefit struct {
	Horizon Duration `json:"horizon"`
}

// MostWanted elects the partition that was wanted most often in a window.
type MostWanted struct {
	Window     Duration `json:"window"`
	MinSamples int      `json:"minSamples"`
}

// Change says how much may change in a time.
type Change struct {
	Out      Scaling  `json:"out,omitzero"`
	In       Scaling  `json:"in,omitzero"`
	Up       Resizing `json:"up,omitzero"`
	Down     Resizing `json:"down,omitzero"`
	Moves    Moves    `json:"moves"`
	Restarts Restarts `json:"restarts"`
}

// Restarts bounds how often ballast restarts the application-controller by itself: once in Every, 0 is no limit.
type Restarts struct {
	Every Duration `json:"every"`
}

// Moves bounds the clusters that change their replica, whatever the cause. Every window of Rate holds; an empty list is
// no limit.
type Moves struct {
	Timing
	Rate []Rate `json:"rate"`
}

// Mend names what stands for a least change and for a stabilisation of moves: both would be second names, and two rules
// of one thing would each hold back what the other lets through.
func (Moves) Mend(field string) string {
	switch field {
	case "minChange":
		return "is not a field: evaluate.costBenefit says which moves are worth it: a shorter horizon takes fewer"
	case "stabilizationWindow":
		return "is not a field: how long an overload lasts before it moves clusters is evaluate's: mostWanted.window, or a shorter horizon of costBenefit"
	}
	return "is not a field: there are cooldown, mode, rate, windows"
}

// Rate allows moves of that many of a hundred clusters of the fleet in any window of Period, and one at least.
type Rate struct {
	Percent int      `json:"percent"`
	Period  Duration `json:"period"`
}

// Rollout brings a plan about.
type Rollout struct {
	Live         *LiveRollout    `json:"live,omitempty" phase:"implementation"`
	X0Y          *X0YRollout     `json:"x0y,omitempty" phase:"implementation"`
	Default      *DefaultRollout `json:"default,omitempty" phase:"implementation"`
	StageTimeout Duration        `json:"stageTimeout"`
}

// MovesRestart reports whether moves alone restart every replica in that mode.
func (r Rollout) MovesRestart() bool {
	return r.X0Y != nil || r.Default != nil && r.Default.RolloutRestart
}

// LiveRollout moves clusters in waves and restarts nothing. Nudge refreshes one Application of a moved cluster, so that
// its new owner starts at once. Adopt says when the one restart comes that sets the env.
type LiveRollout struct {
	MaxMovesPerWave int   `json:"maxMovesPerWave"`
	Nudge           bool  `json:"nudge"`
	Adopt           Adopt `json:"adopt"`
}

// Adopt is when the env comes that mode live holds for good.
type Adopt string

// The times of it.
const (
	AdoptNow      Adopt = "Now"             // by a restart of its own
	AdoptWithNext Adopt = "WithNextRollout" // with the next change of the pod template that anybody makes
)

// X0YRollout stops every replica while clusters change owners.
type X0YRollout struct{}

// DefaultRollout assigns, scales, and restarts if asked to.
type DefaultRollout struct {
	RolloutRestart bool `json:"rolloutRestart"`
}

// Failover says when a replica is unwell, so that its clusters move: not ready for After, and not before Settle has
// passed since a rollout of the workload.
type Failover struct {
	After  Duration `json:"after"`
	Settle Duration `json:"settle"`
}

// Telemetry says what the planner's own metrics have beside what every installation has. Clusters is of how many
// clusters, the heaviest first, they show load, values and replica; 0 is of none.
type Telemetry struct {
	Clusters int `json:"clusters"`
}

// Default is the whole configuration as it is without a file.
func Default() PlannerConfig {
	return PlannerConfig{
		APIVersion: plan.APIVersion,
		Kind:       Kind,
		Mode:       plan.Observe,
		Interval:   Duration(time.Minute),
		Target:     plan.Target{Namespace: "argocd"},
		Plan:       Objects{ConfigMap: "ballast-plan", History: "ballast-history"},
		Discover: Discover{
			Selector:  metav1.LabelSelector{MatchLabels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			MaxShrink: 50,
		},
		Poll: Poll{
			MinCoverage: "0.9",
			MaxDrop:     50,
			Prometheus: &Prometheus{
				URL:         "http://prometheus-operated.monitoring:9090",
				Timeout:     Duration(10 * time.Second),
				Concurrency: 4,
				PodLabel:    "pod",
				MaxAge:      Duration(10 * time.Minute),
				HTTP:        httpclient.Config{HTTPClientConfig: promconfig.DefaultHTTPClientConfig},
			},
		},
		Normalize: Normalize{Reference: &Reference{}},
		Index:     Index{PNorm: &PNorm{P: "1"}},
		Partition: Partition{Sticky: defaultSticky()},
		Evaluate:  Evaluate{CostBenefit: &CostBenefit{Horizon: Duration(24 * time.Hour)}},
		Size:      Size{Policies: []SizePolicy{}, Apply: InPlace, Interval: Duration(5 * time.Minute)},
		Change: Change{Down: Resizing{StabilizationWindow: Duration(30 * time.Minute)}, Moves: Moves{Rate: []Rate{
			{Percent: 10, Period: Duration(time.Hour)},
			{Percent: 25, Period: Duration(24 * time.Hour)},
		}}, Restarts: Restarts{Every: Duration(24 * time.Hour)}},
		Rollout: Rollout{Live: &LiveRollout{MaxMovesPerWave: 5, Nudge: true, Adopt: AdoptNow},
			StageTimeout: Duration(10 * time.Minute)},
		Failover: &Failover{After: Duration(5 * time.Minute), Settle: Duration(10 * time.Minute)},
	}
}

// Implementations and list items that are not part of Default start from these.
func (r *Robust) SetDefaults() { r.PositiveOffset = "0.01" }

// SetDefaults joins by the server.
func (m *Match) SetDefaults() { m.To = MatchServer }

func defaultSticky() *Sticky {
	return &Sticky{High: "0.95", Low: "0.85", Drain: "0.80", DownWindow: Duration(6 * time.Hour), MaxMoves: 10}
}

// SetDefaults makes it the shipped one.
func (s *Sticky) SetDefaults() { *s = *defaultSticky() }

// SetDefaults sets the horizon of a day.
func (c *CostBenefit) SetDefaults() { c.Horizon = Duration(24 * time.Hour) }

// SetDefaults sets a day's votes, ten at least.
func (m *MostWanted) SetDefaults() { m.Window, m.MinSamples = Duration(24*time.Hour), 10 }

// SetDefaults sets waves of five, nudges, and the one restart at once.
func (l *LiveRollout) SetDefaults() { l.MaxMovesPerWave, l.Nudge, l.Adopt = 5, true, AdoptNow }
