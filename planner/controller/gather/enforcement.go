// Package gather asks for what a cycle decides on, the API server, Prometheus, pods and webhooks, and believes an
// answer for a while.
package gather

import (
	"context"
	"maps"
	"slices"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/probe"
	"ballast/planner/telemetry"
)

const (
	// ProbeEvery is how long the answer of a probe is believed; one that failed is asked again at the next cycle.
	ProbeEvery = 5 * time.Minute
	// ProbeFresh is how old an answer may be on which a rollout begins.
	ProbeFresh = 10 * time.Second
)

const (
	// heardFor is how long what a webhook's pod said counts after it said it last: each probe asks one of them.
	heardFor = time.Hour
	// mostWebhooks bounds how many pods are remembered, the first that were heard.
	mostWebhooks = 16
)

// hear remembers what webhooks said.
func (a *Asker) hear(told []probing.PutBack) {
	a.forgetSaid()
	for _, p := range told {
		if _, known := a.putBack[p.Webhook]; !known && len(a.putBack) >= mostWebhooks {
			continue
		}
		if a.putBack == nil {
			a.putBack = map[string]said{}
		}
		a.putBack[p.Webhook] = said{p, a.Clock.Now()}
	}
}

func (a *Asker) forgetSaid() {
	now := a.Clock.Now()
	maps.DeleteFunc(a.putBack, func(_ string, h said) bool { return now.Sub(h.at) >= heardFor })
}

// PutBacks is what all webhooks' pods said together; nil where none said anything, and while nothing is enforced.
func (a *Asker) PutBacks() *probing.PutBack {
	a.forgetSaid()
	var all []probing.PutBack
	for _, webhook := range slices.Sorted(maps.Keys(a.putBack)) {
		all = append(all, a.putBack[webhook].PutBack)
	}
	return probing.Together(all)
}

// Enforcement is whether the webhooks hold the plan in force, nil where that cannot be asked: nothing is enforced, or
// there is nothing to hold. Where they do not, it says which. The answer is as old as fresh allows.
func (a *Asker) Enforcement(ctx context.Context, in input.Inputs, fresh time.Duration) (*bool, []string) {
	enforced := in.InForce != nil && in.InForce.Mode.Enforced() && !in.BreakGlass
	if !enforced {
		a.putBack = nil
	}
	if a.Probe == nil || !enforced {
		return a.notAsked()
	}
	age := a.Clock.Since(a.probed.at)
	if a.probed.holds && age >= 0 && age < fresh {
		return &a.probed.holds, nil
	}
	found := a.Probe(ctx, Held(in))
	a.hear(found.PutBack)
	if found.Asked == 0 {
		return a.notAsked()
	}
	holds := len(found.Unheld) == 0
	if !holds {
		a.Log.Info("a probe of the webhooks failed", "unheld", found.Unheld)
	}
	a.probed = probed{at: a.Clock.Now(), holds: holds}
	a.Metrics.Enforcement.WithLabelValues().Set(telemetry.BoolGauge(holds))
	return &holds, found.Unheld
}

// Held is what the webhooks hold while nobody has switched them off: what a probe asks them for.
func Held(in input.Inputs) probe.Held {
	fleet := standing.Fleet(in)
	p := *in.InForce
	if r := p.Rollout; p.Replicas == 0 && r != nil && plan.StopLapsed(r.Since, in.Now) {
		p.FreeReplicas = true // the webhook holds them no more
	}
	h := probe.Held{View: plan.NewView(p, standing.Pins(in.Pins, fleet.Clusters)), Workload: in.Workload,
		ConfigMap: in.Config.Plan.ConfigMap, Now: in.Now}
	h.Secrets = askable(fleet.Clusters, in.Barred)
	return h
}

// askable are the Secrets that take a write, as far as is known, the oldest first: who makes some, under whatever
// names, must not be all that are asked. One that has no shard yet may be full, and comes last.
func askable(clusters []discover.Cluster, barred map[string]string) (names []string) {
	var without []string
	clusters = slices.Clone(clusters)
	slices.SortStableFunc(clusters, func(a, b discover.Cluster) int { return a.Created.Compare(b.Created) })
	for _, c := range clusters {
		takes := !c.Immutable && !c.NoText && standing.Managed(c)
		if _, refused := barred[c.Shard.ID]; refused || !takes {
			continue
		}
		if c.Explicit.State == discover.ShardAbsent {
			without = append(without, c.Shard.ID)
			continue
		}
		names = append(names, c.Shard.ID)
	}
	return append(names, without...)
}

func (a *Asker) notAsked() (*bool, []string) {
	a.probed = probed{}
	a.Metrics.Enforcement.Reset()
	return nil, nil
}

// resizesEvery is how long it is believed whether the API server has pods/resize: a control plane is upgraded while
// planners run.
const resizesEvery = time.Hour

// CanResize is whether the API server has pods/resize; nil where nobody knows.
func (a *Asker) CanResize(ctx context.Context) *bool {
	if a.Resizes == nil {
		return nil
	}
	if age := a.Clock.Since(a.resizableAt); a.resizable != nil && age >= 0 && age < resizesEvery {
		return a.resizable
	}
	has, err := a.Resizes(ctx)
	if err != nil {
		a.Log.Error(err, "asking whether the API server has pods/resize; it is asked again")
		return a.resizable
	}
	a.resizable, a.resizableAt = &has, a.Clock.Now()
	return a.resizable
}

// Installation is where the cluster differs from what ballast was made for. It keeps nothing from being done: the probe
// says whether the webhooks hold the plan, whatever they are configured as.
func (a *Asker) Installation(ctx context.Context, in input.Inputs) (found []input.Finding) {
	if a.Installed == nil {
		return nil
	}
	w := in.Workload
	names := installation.Names{Namespace: w.Namespace, Workload: w.Name, Plan: in.Config.Plan.ConfigMap,
		Planner: in.PlannerUser}
	seen, err := a.Installed(ctx, names)
	if err != nil {
		a.Log.Error(err, "looking at the installation; it is tried again")
	}
	a.Metrics.Configured.Reset()
	if seen.Matches != nil {
		a.Metrics.Configured.WithLabelValues().Set(telemetry.BoolGauge(*seen.Matches))
	}
	for _, f := range seen.Findings {
		found = append(found, input.Finding{Kind: string(f.Kind), Subject: f.Subject, Message: f.Message})
	}
	return found
}
