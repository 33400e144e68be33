package planner

import (
	"context"
	"time"

	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/probe"
)

const (
	// probeEvery is how long the answer of a probe is believed; one that failed is asked again at the next cycle.
	probeEvery = 5 * time.Minute
	// probeFresh is how old an answer may be on which a rollout begins.
	probeFresh = 10 * time.Second
)

// probed is the last answer of a probe.
type probed struct {
	at    time.Time
	holds bool
}

// enforcement is whether the webhooks hold the plan in force, nil where that cannot be asked: nothing is enforced, or
// there is nothing to hold. Where they do not, it says which. The answer is as old as fresh allows.
func (l *Loop) enforcement(ctx context.Context, in Inputs, fresh time.Duration) (*bool, []string) {
	enforced := in.InForce != nil && in.InForce.Mode.Enforced() && !in.BreakGlass
	if l.Probe == nil || !enforced {
		return l.notAsked()
	}
	age := l.Clock.Since(l.probed.at)
	if l.probed.holds && age >= 0 && age < fresh {
		return &l.probed.holds, nil
	}
	found := l.Probe(ctx, held(in))
	if found.Asked == 0 {
		return l.notAsked()
	}
	holds := len(found.Unheld) == 0
	if !holds {
		l.Log.Info("a probe of the webhooks failed", "unheld", found.Unheld)
	}
	l.probed = probed{at: l.Clock.Now(), holds: holds}
	l.Metrics.enforcement.WithLabelValues().Set(boolGauge(holds))
	return &holds, found.Unheld
}

// held is what the webhooks hold while nobody has switched them off.
func held(in Inputs) probe.Held {
	fleet := standingFleet(in.Discovered)
	h := probe.Held{View: plan.NewView(*in.InForce, allPins(in.Pins, fleet.Clusters)), Workload: in.Workload,
		ConfigMap: in.Config.Plan.ConfigMap, Now: in.Now}
	for _, c := range fleet.Clusters {
		if managed(c) && !c.Immutable {
			h.Secrets = append(h.Secrets, c.Shard.ID)
		}
	}
	return h
}

func (l *Loop) notAsked() (*bool, []string) {
	l.probed = probed{}
	l.Metrics.enforcement.Reset()
	return nil, nil
}

// installation is where the cluster differs from what ballast was made for. It keeps nothing from being done: the probe
// says whether the webhooks hold the plan, whatever they are configured as.
func (l *Loop) installation(ctx context.Context, in Inputs) []installation.Finding {
	if l.Installed == nil {
		return nil
	}
	w := in.Workload
	names := installation.Names{Namespace: w.Namespace, Workload: w.Name, Plan: in.Config.Plan.ConfigMap}
	seen, err := l.Installed(ctx, names)
	if err != nil {
		l.Log.Error(err, "looking at the installation; it is tried again")
	}
	l.Metrics.configured.Reset()
	if seen.Matches != nil {
		l.Metrics.configured.WithLabelValues().Set(boolGauge(*seen.Matches))
	}
	return seen.Findings
}
