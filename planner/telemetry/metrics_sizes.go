package telemetry

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// sizeMetrics are what size policies see, compute and hold.
type sizeMetrics struct {
	input    *prometheus.GaugeVec
	computed *prometheus.GaugeVec
	decided  *prometheus.GaugeVec
	held     *prometheus.GaugeVec
	blocked  *prometheus.GaugeVec
}

func newSizeMetrics(r prometheus.Registerer) sizeMetrics {
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "ballast", Subsystem: "size", Name: name,
			Help: help}, labels)
	}
	m := sizeMetrics{
		input: gauges("rule_input", "The input that a rule of size.policies has, by replica; all where it is one for all.", "policy", "rule", "replica"),
		computed: gauges("rule_computed", "What a rule computes of its input now, in cores or bytes.", "policy", "rule",
			"replica"),
		decided: gauges("rule_decided", "What a rule decides after its delays and its smoothing, in cores or bytes.",
			"policy", "rule", "replica"),
		held: gauges("in_force", "What the plan holds each replica's container at, in cores or bytes.", "replica",
			"list", "resource"),
		blocked: gauges("blocked", "Changes of sizes that are wanted and do not happen now, by direction and reason.",
			"direction", "reason"),
	}
	r.MustRegister(m.input, m.computed, m.decided, m.held, m.blocked)
	return m
}

func (m sizeMetrics) observe(s *resize.Sizing) {
	for _, of := range []*prometheus.GaugeVec{m.input, m.computed, m.decided, m.held, m.blocked} {
		of.Reset()
	}
	if s == nil {
		return
	}
	for _, row := range s.Rules {
		if !row.Known {
			continue
		}
		rule, replica := row.Rule, replicaLabel(row.Replica)
		m.input.WithLabelValues(row.Policy, rule, replica).Set(row.Input)
		m.computed.WithLabelValues(row.Policy, rule, replica).Set(number(row.Computed))
		m.decided.WithLabelValues(row.Policy, rule, replica).Set(number(row.Value))
	}
	for _, r := range s.Replicas {
		m.observeHeld(replicaLabel(r.Replica), r.InForce)
	}
	for _, b := range s.Blocked {
		m.blocked.WithLabelValues(string(b.Direction), string(b.Reason)).Inc()
	}
}

func (m sizeMetrics) observeHeld(replica string, r plan.Resources) {
	for name, text := range r.Requests {
		m.held.WithLabelValues(replica, "requests", name).Set(number(text))
	}
	for name, text := range r.Limits {
		m.held.WithLabelValues(replica, "limits", name).Set(number(text))
	}
}

func replicaLabel(replica int) string {
	if replica == size.All {
		return "all"
	}
	return strconv.Itoa(replica)
}

// number is a quantity of the plan's; what is none is 0.
func number(text string) float64 {
	q, err := plan.ReadQuantity(text)
	if err != nil {
		return 0
	}
	return q.AsApproximateFloat64()
}
