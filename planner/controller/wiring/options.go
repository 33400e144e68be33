// Package wiring is what the loop and its parts are given to work with: clients, the clock, metrics, and whom to ask
// and to tell.
package wiring

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/probe"
	"ballast/planner/size/inputs"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// Options are what a Loop works with.
type Options struct {
	Config     func() config.PlannerConfig // the newest good one
	Reader     client.Reader               // the cache of Secrets and workloads
	Store      *store.Store
	Applier    *apply.Applier
	NewFetcher func(config.PlannerConfig, plan.Target) (poll.Fetcher, error)
	// Whether the webhooks hold the plan; nil: never asked.
	Probe func(context.Context, probe.Held) probe.Result
	// The pods; nil: nothing is known of them.
	Observe func(context.Context, poll.Fetcher, discover.Workload, discover.Fleet) (input.Observed, []scrape.PodReport)
	// Whether anything else steers the same workload or Secrets; nil: never asked.
	Conflicts func(context.Context, plan.Plan) ([]conflicts.Finding, error)
	// What of the installation differs from what was shipped; nil: never asked.
	Installed func(context.Context, installation.Names) (installation.Seen, error)
	// Whether the API server has pods/resize; nil: never asked.
	Resizes func(context.Context) (bool, error)
	// What size rules read beside loads; nil: never asked.
	Surround    func(context.Context, plan.Target, inputs.Wants) (inputs.Surroundings, error)
	Emit        func(discover.Workload, ...telemetry.Event)
	Metrics     *telemetry.Metrics
	Log         logr.Logger
	Clock       clock.Clock
	Identity    string
	PlannerUser string
}

// Tell tells people, and the log.
func (o *Options) Tell(in input.Inputs, events ...telemetry.Event) {
	for _, e := range events {
		o.Log.Info("told people", "reason", e.Reason, "message", e.Message)
	}
	o.Emit(in.Workload, events...)
}

// TellSwitchedOff names who it was, as far as the plan ConfigMap tells.
func (o *Options) TellSwitchedOff(ctx context.Context, w discover.Workload) {
	var manager string
	var at time.Time
	if s, err := o.Store.Read(ctx); err == nil {
		manager, at = s.SetBy(plan.AnnotationEnforcement)
	}
	o.Tell(input.Inputs{Workload: w}, telemetry.BreakGlassSeen(manager, at))
}
