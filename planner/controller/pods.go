package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/poll/pods"
	"ballast/planner/telemetry"
)

// askPods looks at the pods once: for who owns what, and for what each cluster makes. Loads are made of that look and
// those before it.
func (l *Loop) askPods(ctx context.Context, in *input.Inputs) {
	l.phase = telemetry.PhaseObserve
	observed, reports := l.asks.observe(ctx, nil, *in)
	in.Observed = observed
	l.phase = telemetry.PhaseFetch
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, in.Now) // nothing known, so nothing is lost
	if !observed.Known && len(observed.Trouble) > 0 {
		reports = []scrape.PodReport{{Err: observed.Trouble[0]}}
	}
	now := l.Clock.Now()
	window := &l.archive.window
	window.Take(reports, pods.Servers(fleet), now)
	if window.Empty(now) {
		window.Seed(in.Memory.LastGood, fleet, now)
	}
	in.Fetched, in.Owners = l.asks.once(*in, func() ([]poll.Fetched, poll.Fetched) {
		return window.Fetched(now), ownersOf(reports)
	})
}

// ownersOf is which pod reconciles which server, by the reports, as ownerMetric asks a Prometheus.
func ownersOf(reports []scrape.PodReport) poll.Fetched {
	owners := poll.Fetched{Metric: ownerMetric().ID}
	for _, r := range reports {
		for server, shown := range r.Servers {
			if shown.Apps > 0 {
				owners.Samples = append(owners.Samples, poll.Sample{Key: r.Name + "|" + server, Value: 1})
			}
		}
	}
	slices.SortFunc(owners.Samples, func(a, b poll.Sample) int { return strings.Compare(a.Key, b.Key) })
	return owners
}

// takeOverWindow goes on with what the last leader saw of the pods.
func (a *archive) takeOverWindow() {
	part, kept := a.history.Parts[pods.HistoryPart]
	if !kept {
		return
	}
	if err := a.window.UnmarshalBinary(part); err != nil {
		a.Log.Error(err, "what the pods showed the last leader was dropped; its last good values stand for it")
	}
}

// saveWindow keeps what the pods showed for the next leader, where loads are made of it.
func (a *archive) saveWindow(parts map[string][]byte) error {
	if a.Config().Poll.Pods == nil {
		delete(parts, pods.HistoryPart)
		return nil
	}
	part, err := a.window.MarshalBinary()
	if err != nil {
		return fmt.Errorf("packing what the pods showed: %w", err)
	}
	parts[pods.HistoryPart] = part
	return nil
}
